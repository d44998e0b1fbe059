//! A client's zio of a volume, from its submission until its reply has left.

use alloc::vec::Vec;

use crate::event::{Device, Event};
use crate::stats::{InFlight, Wait};
use crate::time::Instant;
use crate::zio::{Outcome, VolumeId, Zio, ZioId};

/// The phase of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for the lock of this block, and has the locks of all blocks before.
    Locking(u32),
    /// It reads the bytes that it asked for, or the rest of its first and last block.
    Reading,
    /// The pool admits no writes until a disk works again.
    Stalled,
    /// It waits for the throttle.
    Throttled,
    /// Its blocks are on their way to the disks.
    Writing,
    /// The disks make it durable.
    Syncing,
    /// The transport sends its reply.
    Reply,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) zio: Zio<VolumeId>,
    /// A number that is never used again, unlike the zio's id.
    pub(super) number: u64,
    /// The volume's index in its pool.
    pub(super) volume: usize,
    pub(super) phase: Phase,
    /// When the current phase began.
    since: Instant,
    pub(super) submitted: Instant,
    pub(super) admitted: Instant,
    /// When the engine asked for its reply.
    pub(super) completed: Instant,
    /// How many reads, writes, syncs or watched blocks it still waits for.
    pub(super) pending: u32,
    /// Whether it has the locks of all of its blocks.
    pub(super) locked: bool,
    /// When it had its locks: the beginning of its transaction.
    pub(super) began: Instant,
    /// Whether it needs the old content of its first or its last block.
    pub(super) has_edges: bool,
    pub(super) outcome: Outcome,
    /// Whether its connection is gone.
    pub(super) aborted: bool,
}

impl Request {
    pub(super) fn new(zio: Zio<VolumeId>, number: u64, volume: usize, now: Instant) -> Request {
        Request {
            zio,
            number,
            volume,
            phase: Phase::Reading,
            since: now,
            submitted: now,
            admitted: now,
            completed: now,
            pending: 0,
            locked: false,
            began: now,
            has_edges: false,
            outcome: Ok(()),
            aborted: false,
        }
    }

    /// Enters a phase.
    pub(super) fn go_to(&mut self, phase: Phase, now: Instant) {
        (self.phase, self.since) = (phase, now);
    }

    /// The request as reports show it.
    pub(super) fn view(&self) -> InFlight {
        InFlight {
            zio: self.zio.id,
            op: self.zio.op,
            client: self.zio.client,
            offset: self.zio.offset,
            length: self.zio.length,
            arrived: self.zio.arrived,
            wait: self.wait(),
            since: self.since,
            rule: None,
            target: None,
        }
    }

    fn wait(&self) -> Wait {
        match self.phase {
            Phase::Locking(_) => Wait::Lock,
            Phase::Reading => Wait::Read,
            Phase::Stalled => Wait::Stalled,
            Phase::Throttled => Wait::Throttle,
            Phase::Writing => Wait::Write,
            Phase::Syncing => Wait::Sync,
            Phase::Reply => Wait::Reply,
        }
    }

    /// Its event, once its reply has left.
    pub(super) fn event(&self, offered: Instant, now: Instant) -> Event {
        Event {
            number: self.number,
            outcome: self.outcome,
            submitted: self.submitted,
            admitted: self.admitted,
            issued: self.admitted,
            started: self.admitted,
            store_done: self.completed,
            target: self.completed,
            offered,
            ended: now,
            ..Event::of(&self.zio, Device::Volume(self.zio.device))
        }
    }
}

/// The requests of a pool, by the ids that the driver has chosen.
#[derive(Debug, Default)]
pub(super) struct Requests {
    slots: Vec<Option<Request>>,
}

impl Requests {
    pub(super) fn insert(&mut self, request: Request) {
        let at = request.zio.id.0 as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        debug_assert!(self.slots[at].is_none(), "zio {at} is in use");
        self.slots[at] = Some(request);
    }

    #[inline]
    pub(super) fn get(&self, id: ZioId) -> Option<&Request> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: ZioId) -> Option<&mut Request> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, id: ZioId) -> Option<Request> {
        self.slots.get_mut(id.0 as usize)?.take()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Request> {
        self.slots.iter_mut().flatten()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Request> {
        self.slots.iter().flatten()
    }
}
