//! The unfinished work of stores: writes that are still to be copied, long work in pieces, and jobs on worker
//! threads.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use dashpot_engine::{Device, DiskId, ZioId};

use super::exports::Stores;
use crate::frontend::boundary::{Operation, Request};
use crate::store::{Attempt, Job, Store, Workers};

pub(super) struct Unfinished {
    pool: Arc<Workers>,
    /// Writes of this batch of requests that are still to be copied to their disks.
    copies: Vec<Copy>,
    /// The zios with work left for a later pass, and how many bytes of each are done.
    pieces: VecDeque<(ZioId, u64)>,
    /// The lossy stores that have something to do.
    tended: Vec<DiskId>,
    /// How many bytes this pass has moved between pools and their disks.
    moved: u64,
}

/// A write that is still to be copied to its disk. The engine has already been told that the write is done.
#[derive(Debug)]
struct Copy {
    device: Device,
    offset: u64,
    /// The place of the write's payload in the receive buffer.
    place: Range<usize>,
}

impl Unfinished {
    pub(super) fn new(pool: Arc<Workers>) -> Unfinished {
        Unfinished {
            pool,
            copies: Vec::new(),
            pieces: VecDeque::new(),
            tended: Vec::new(),
            moved: 0,
        }
    }

    /// Hands a job to the worker threads.
    pub(super) fn submit(&self, job: Job) {
        self.pool.submit(job);
    }

    #[inline]
    pub(super) fn copy_later(&mut self, device: Device, offset: u64, place: Range<usize>) {
        self.copies.push(Copy {
            device,
            offset,
            place,
        });
    }

    /// Makes all copies of a batch, one right after the other. A copy to cold memory fills the CPU's store
    /// buffer, and other work between two copies would have to wait until that buffer has emptied. The shard
    /// has already told the engine that the writes are done, but no client can notice, because replies leave
    /// later.
    pub(super) fn copy_now(&mut self, stores: &mut Stores, received: &[u8]) {
        for copy in self.copies.drain(..) {
            if let Some(store) = stores.of_mut(copy.device) {
                let attempt = store.write(copy.offset, &received[copy.place], false);
                debug_assert_eq!(attempt, Attempt::Done(Ok(())));
            }
        }
    }

    /// Whether a copy that is still to be made overlaps a range of a device.
    pub(super) fn overlaps(&self, device: Device, offset: u64, length: u32) -> bool {
        let end = offset + u64::from(length);
        self.copies.iter().any(|copy| {
            let copy_end = copy.offset + copy.place.len() as u64;
            copy.device == device && copy.offset < end && offset < copy_end
        })
    }

    pub(super) fn begin_pass(&mut self) {
        self.moved = 0;
    }

    /// Whether a zio that a pool has sent to a disk may move its bytes in this pass. A store in memory
    /// finishes a zio at once, and the pool then sends the next. Without a limit, a single pass would do all
    /// the work of a txg's sync.
    pub(super) fn may_move(&mut self, bytes: u32) -> bool {
        let may = self.moved < MOVED_MAX;
        if may {
            self.moved += u64::from(bytes);
        }
        may
    }

    pub(super) fn has_pieces(&self) -> bool {
        !self.pieces.is_empty() || !self.tended.is_empty()
    }

    /// Notes that a lossy store has something to do.
    pub(super) fn tend(&mut self, disk: DiskId) {
        if !self.tended.contains(&disk) {
            self.tended.push(disk);
        }
    }

    /// Takes the lossy stores that have something to do.
    pub(super) fn take_tended(&mut self) -> Vec<DiskId> {
        std::mem::take(&mut self.tended)
    }

    pub(super) fn take_pieces(&mut self) -> Vec<(ZioId, u64)> {
        self.pieces.drain(..).collect()
    }

    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Queues the next piece of a zio's work, of which `done` bytes are already done.
    pub(super) fn push_piece(&mut self, id: ZioId, done: u64) {
        self.pieces.push_back((id, done));
    }

    pub(super) fn pop_piece(&mut self) -> Option<(ZioId, u64)> {
        self.pieces.pop_front()
    }
}

/// Whether the shard does the work of a request in pieces, so that it can serve other zios in between.
#[inline]
pub(super) fn is_long(request: &Request, store: &Store) -> bool {
    let zeroes = matches!(
        request.operation,
        Operation::Trim { .. } | Operation::Zero { .. }
    );
    zeroes && u64::from(request.length) > PIECE && store.zeroes_in_memory()
}

/// The largest number of bytes to zero before the shard serves other zios.
pub(super) const PIECE: u64 = 4 << 20;
/// Once a pass has moved this many bytes between pools and their disks, it moves no more.
const MOVED_MAX: u64 = 1 << 20;
