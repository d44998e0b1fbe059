//! A task of a lossy store.

use std::ops::Range;

use dashpot_engine::{Outcome, ZioId};

use super::batch::Batch;
use super::cache::Choice;

/// A task goes through a range of sectors, a batch at a time.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) kind: Kind,
    /// The sectors that are left.
    pub(super) left: Range<u64>,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Moves to the medium what a flush covers: the writes whose clients were told before it arrived.
    Flush {
        zio: Option<ZioId>,
        /// How many results clients had been told by then.
        covers: u64,
    },
    /// Moves the writes of a zio with FUA to the medium.
    Fua {
        zio: Option<ZioId>,
        numbers: Vec<u64>,
    },
    /// Moves writes to the medium because the cache is full.
    Early { begun: bool },
    /// After a power cut, gives the medium what has survived.
    Restore,
    /// Takes durable writes out of the cache.
    Clean,
    /// Lets a zio ask again that has waited for room in the cache.
    Retry { zio: ZioId, done: u64 },
}

/// The next thing to do for a store.
#[derive(Debug)]
pub(crate) enum Going {
    /// Nothing, until something is asked of the store, or a batch comes back.
    Idle,
    /// The caller must go on later. The store has moved this many bytes.
    More(u64),
    /// A worker thread must do this batch.
    Elsewhere(Batch),
}

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The work of a zio is done. `None` stands for work that no zio has asked for.
    Done(Option<ZioId>, Outcome),
    /// A parked zio must ask again. This many of its bytes are done.
    Retry(ZioId, u64),
    /// The medium has what a power cut has left.
    Restored(Outcome),
}

impl Task {
    pub(super) fn new(kind: Kind, left: Range<u64>) -> Task {
        Task { kind, left }
    }

    pub(super) fn makes_room(&self) -> bool {
        matches!(self.kind, Kind::Early { .. })
    }

    pub(super) fn parked(&self) -> Option<(ZioId, u64)> {
        match self.kind {
            Kind::Retry { zio, done } => Some((zio, done)),
            _ => None,
        }
    }

    /// Whether the medium must be synced at the end.
    pub(super) fn syncs(&self) -> bool {
        matches!(
            self.kind,
            Kind::Flush { .. } | Kind::Fua { .. } | Kind::Restore
        )
    }

    pub(super) fn choice(&self) -> Choice {
        match &self.kind {
            Kind::Flush { covers, .. } => Choice::First(*covers),
            Kind::Fua { numbers, .. } => Choice::These(numbers.clone()),
            _ => Choice::None,
        }
    }
}
