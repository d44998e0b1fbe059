//! Calls on their way. The place of a call is its zio's id: small and dense, used again at once.

use dashpot_engine::pool::VolumeWait;
use dashpot_engine::{InFlight, Instant, Op, ZioId};

use crate::scenario::Target;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) op: Op,
    pub(crate) fua: bool,
    pub(crate) target: Target,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// A call that has begun and not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) workload: u32,
    pub(crate) thread: u32,
    pub(crate) request: Request,
    pub(crate) began: Instant,
    /// When it reached the lab, if it has.
    pub(crate) submitted: Option<Instant>,
    pub(crate) failed: bool,
    pub(crate) stage: Stage,
    /// Its connection is lost: whoever meets it next lets it go.
    pub(crate) orphan: bool,
}

/// A call that has begun and not ended, as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Unfinished {
    /// What it does.
    pub op: Op,
    /// What it is for.
    pub target: Target,
    /// When it began.
    pub began: Instant,
    /// When it reached the lab, if it has.
    pub submitted: Option<Instant>,
    pub(crate) zio: ZioId,
    pub(crate) stage: Stage,
}

/// Where a call waits, and what is known of its wait.
#[derive(Clone, Copy, Debug)]
pub enum CallWait {
    /// With its client, or on the link to the lab, since it began.
    Client,
    /// At a disk.
    Disk(InFlight),
    /// At a volume, since this moment.
    Volume(VolumeWait, Instant),
    /// Its reply is on the link to the client.
    Reply,
}

impl Unfinished {
    pub(crate) fn of(id: u32, call: &Call) -> Unfinished {
        Unfinished {
            op: call.request.op,
            target: call.request.target,
            began: call.began,
            submitted: call.submitted,
            zio: ZioId(id),
            stage: call.stage,
        }
    }
}

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nowhere: the place is free.
    Free,
    /// With its client, or on the way from it.
    Going,
    /// In the lab.
    Lab,
    /// On the way to its client.
    Returning,
}

/// All calls.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    places: Vec<Call>,
    free: Vec<u32>,
}

impl Calls {
    pub(crate) fn insert(&mut self, call: Call) -> u32 {
        if let Some(id) = self.free.pop() {
            self.places[id as usize] = call;
            return id;
        }
        self.places.push(call);
        self.places.len() as u32 - 1
    }

    pub(crate) fn get(&self, id: u32) -> &Call {
        &self.places[id as usize]
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> &mut Call {
        &mut self.places[id as usize]
    }

    pub(crate) fn remove(&mut self, id: u32) -> Call {
        let call = &mut self.places[id as usize];
        let removed = *call;
        call.stage = Stage::Free;
        self.free.push(id);
        removed
    }

    /// Calls whose clients still wait, with their ids.
    pub(crate) fn alive(&self) -> impl Iterator<Item = (u32, &Call)> {
        let calls = (0..).zip(&self.places);
        calls.filter(|(_, call)| call.stage != Stage::Free && !call.orphan)
    }

    /// Calls that have not ended, orphans included.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
