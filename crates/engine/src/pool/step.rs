//! The parts of the engine that a pool uses during one step, and the zios that it sends to its
//! disks.

use alloc::vec::Vec;

use super::blocks::Content;
use super::queue::PickedId;
use super::slab::Slab;
use crate::bytes::{Buf, Move};
use crate::command::Action;
use crate::event::Events;
use crate::time::Instant;
use crate::zio::{Outcome, Zio, ZioId};

pub(crate) struct Step<'a> {
    pub(crate) now: Instant,
    pub(crate) actions: &'a mut Vec<Action>,
    pub(crate) buffers: &'a mut Buffers,
    pub(crate) children: &'a mut Children,
    pub(crate) events: &'a mut Events,
}

impl Step<'_> {
    pub(super) fn move_bytes(&mut self, action: Move) {
        self.actions.push(Action::Move(action));
    }

    pub(super) fn free_content(&mut self, content: Content) {
        content.buf().into_iter().for_each(|buf| self.free(buf));
    }

    pub(super) fn free(&mut self, buf: Buf) {
        self.buffers.free(buf);
        self.move_bytes(Move::Free(buf));
    }
}

/// The names of buffers. The buffer of a name always has the same size, so that the driver can reuse the
/// buffer's memory.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// Free names, by the binary logarithm of the size of their buffers.
    free: [Vec<Buf>; u32::BITS as usize],
    /// For each name, the binary logarithm of the size of its buffer in bytes.
    sizes: Vec<u8>,
}

impl Buffers {
    /// Allocates a buffer of `size` bytes, which must be a power of two.
    pub(super) fn allocate(&mut self, size: u32) -> Buf {
        let log = size.trailing_zeros();
        self.free[log as usize].pop().unwrap_or_else(|| {
            self.sizes.push(log as u8);
            Buf(self.sizes.len() as u32 - 1)
        })
    }

    fn free(&mut self, buf: Buf) {
        let log = self.sizes[buf.0 as usize];
        self.free[usize::from(log)].push(buf);
    }

    /// The size of a buffer in bytes, if it has ever been allocated.
    pub(crate) fn size(&self, buf: Buf) -> Option<u32> {
        self.sizes.get(buf.0 as usize).map(|log| 1 << log)
    }
}

/// The zios that pools have sent to their disks.
#[derive(Debug, Default)]
pub(crate) struct Children {
    sent: Slab<Child>,
    /// Zios to be submitted to their disks.
    pub(crate) outbox: Vec<Zio>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    pub(crate) pool: u32,
    /// The index of the child's disk in the pool.
    pub(crate) disk: usize,
    pub(crate) work: Work,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// An I/O that was picked from the disk's queue.
    Picked(PickedId),
    /// A sync of the disk. As in ZFS, the sync does not go through the queue.
    Sync { who: SyncFor, covers: Covers },
    /// The child's work no longer matters, because the pool has crashed.
    Orphan,
}

/// The writes that a sync of a disk covers, as counts: those that had ended on the disk's member when the
/// sync began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Covers {
    /// How many first writes of blocks the sync covers.
    pub(super) firsts: u64,
    /// How many times a region had become quiet when the sync began.
    pub(super) quiet: u64,
}

/// The cause of a disk's sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncFor {
    /// A client's flush or durable write.
    Request(ZioId),
    Txg,
    /// A repair that is complete.
    Repair,
}

impl Children {
    /// Sends a zio to a disk, at the end of the step.
    pub(super) fn send(&mut self, child: Child, zio: Zio) {
        let id = ZioId(self.sent.insert(child));
        self.outbox.push(Zio { id, ..zio });
    }

    /// The child with this id, which must have been sent and not have ended.
    pub(crate) fn get(&self, id: ZioId) -> &Child {
        &self.sent[id.0]
    }

    /// Makes a child an orphan.
    pub(crate) fn orphan(&mut self, id: ZioId) {
        self.sent[id.0].work = Work::Orphan;
    }

    /// Removes a child that has ended.
    pub(crate) fn take(&mut self, id: ZioId) -> Child {
        self.sent.remove(id.0)
    }
}

/// A child that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) child: Child,
    pub(crate) outcome: Outcome,
}
