//! The io_uring ring that does the work of stores on block devices.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use dashpot_engine::ZioId;
use dashpot_sys::{Completion, Ring, Work};

use crate::frontend::boundary::{Operation, Request};
use crate::store::Store;

/// The ring of a shard. A shard has no ring if it has no block devices, or if the kernel refuses a ring.
pub(super) struct DeviceRing {
    ring: Option<Ring>,
    /// Whether the ring may have completions that the shard has not taken yet.
    is_rung: bool,
}

impl DeviceRing {
    pub(super) fn new(ring: Option<Ring>) -> DeviceRing {
        DeviceRing {
            ring,
            is_rung: false,
        }
    }

    /// The descriptor that becomes readable when the ring has finished work.
    pub(super) fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.ring.as_ref().map(AsFd::as_fd)
    }

    pub(super) fn get_mut(&mut self) -> Option<&mut Ring> {
        self.ring.as_mut()
    }

    /// Gives a zio's work to the ring. For a write, the ring makes its own copy of the bytes. Returns whether
    /// the ring has accepted the work.
    pub(super) fn start(
        &mut self,
        store: Option<&Store>,
        id: ZioId,
        request: &Request,
        payload: &[u8],
    ) -> bool {
        let store = store.and_then(Store::device);
        let (Some(store), Some(ring)) = (store, &mut self.ring) else {
            return false;
        };
        let Some(work) = work(request, store.place(request.offset), payload) else {
            return false;
        };
        ring.start(store.device(), id.0.into(), work).is_ok()
    }

    /// Enables the ring for the calling thread, which must be the only one that uses it.
    pub(super) fn enable(&self) -> io::Result<()> {
        self.ring.as_ref().map_or(Ok(()), Ring::enable)
    }

    /// Clears the ring's bell, which rings when work has finished, and notes that there may be completions.
    pub(super) fn hear(&mut self) {
        if let Some(ring) = &self.ring {
            ring.hear();
            self.is_rung = true;
        }
    }

    /// Submits to the kernel the work that the ring has queued in this pass.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        self.ring.as_mut().map_or(Ok(()), Ring::submit)
    }

    /// Whether the ring has queued work to submit.
    pub(super) fn has_queued(&mut self) -> bool {
        self.ring.as_mut().is_some_and(Ring::has_queued)
    }

    /// Whether the ring may have completions for the next pass to take, or has queued work to submit.
    pub(super) fn is_busy(&mut self) -> bool {
        self.is_rung || self.has_queued()
    }

    /// The next completion that the shard has not taken yet.
    pub(super) fn next_completion(&mut self) -> Option<Completion> {
        if !self.is_rung {
            return None;
        }
        let completion = self.ring.as_mut().and_then(Ring::next_completion);
        self.is_rung = completion.is_some();
        completion
    }
}

/// The work that the ring must do for a request. `offset` is the request's place on the device. `None` if the
/// ring cannot do this work.
fn work<'a>(request: &Request, offset: u64, payload: &'a [u8]) -> Option<Work<'a>> {
    match request.operation {
        Operation::Read => Some(Work::Read {
            offset,
            length: request.length,
        }),
        Operation::Write { fua } => Some(Work::Write {
            offset,
            from: payload,
            durable: fua,
        }),
        Operation::Flush => Some(Work::Sync),
        Operation::Trim { .. }
        | Operation::Zero { .. }
        | Operation::Cache
        | Operation::Call(..) => None,
    }
}
