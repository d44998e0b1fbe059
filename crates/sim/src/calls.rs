//! Calls in progress. The index of a call in the table is also its zio's id. Ids are therefore small and
//! dense, and a free id is used again at once.

use dashpot_engine::{InFlight, Instant, Op, ZioId};

use crate::scenario::Target;

/// The I/O of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) op: Op,
    pub(crate) fua: bool,
    pub(crate) target: Target,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// A call that has begun and has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) workload: u32,
    pub(crate) thread: u32,
    pub(crate) request: Request,
    pub(crate) began: Instant,
    /// When the call reached the lab; `None` before that.
    pub(crate) submitted: Option<Instant>,
    pub(crate) failed: bool,
    pub(crate) stage: Stage,
    /// Whether the call's connection is lost. If so, the call is forgotten at its next step.
    pub(crate) orphan: bool,
}

/// The public view of a call that has begun and has not ended.
#[derive(Clone, Copy, Debug)]
pub struct Unfinished {
    /// The operation of the call.
    pub op: Op,
    /// The disk or the volume of the call.
    pub target: Target,
    /// When the call began.
    pub began: Instant,
    /// When the call reached the lab; `None` before that.
    pub submitted: Option<Instant>,
    pub(crate) zio: ZioId,
    pub(crate) stage: Stage,
}

/// The place at which a call waits, with details.
#[derive(Clone, Copy, Debug)]
pub enum CallWait {
    /// The call has been with its client or on the link to the lab since it began.
    Client,
    /// The call is at a disk or a volume.
    Lab(InFlight),
    /// The reply is on the link to the client.
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

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There is no call at this index.
    Free,
    /// The call is with its client, or on the way to the lab.
    Going,
    /// The call is in the lab.
    Lab,
    /// The reply is on the way to the client.
    Returning,
}

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

    /// The number of calls that have not ended, including orphans.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
