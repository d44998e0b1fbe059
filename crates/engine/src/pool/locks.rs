//! Range locks: from the beginning of a write's transaction until its data is dirty, no other write uses the
//! same bytes (OpenZFS: `zfs_rangelock`).
//!
//! A write that goes through to the disks locks whole blocks, because it writes whole blocks. Any other
//! write locks its bytes only. Requests get the lock of a block in the order of their arrival. A trim, a
//! zero or a long write takes one lock for each run of whole blocks, so that a trim of 1 GiB does not have to
//! lock 131072 blocks of 8 KiB.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use super::config::{VolumeConfig, WritePolicy};
use super::piece::{Piece, cut, is_long};
use super::request::Requests;
use super::table::Table;
use crate::lines::{Line, Lines};
use crate::zio::{Op, VolumeId, Zio, ZioId};

/// The range locks of a volume.
#[derive(Debug)]
pub(super) struct RangeLocks {
    block_size: u32,
    /// Whether each write locks whole blocks.
    whole: bool,
    /// The locks of blocks that belong to no run.
    blocks: Table<Lock>,
    /// For each block that requests have locked in part, the locked ranges of bytes, each as its first byte
    /// and its end.
    partly: BTreeMap<u32, Vec<(u32, u32)>>,
    /// The runs of blocks that requests have locked, each as its first block and its end. The runs do not
    /// overlap.
    runs: BTreeMap<u32, u32>,
    /// Requests that wait for the lock of a block, in the order of arrival.
    queues: BTreeMap<u32, Line>,
    /// The requests of these queues.
    lines: Lines<()>,
}

/// The lock of a block that belongs to no run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lock {
    /// Whether a write uses the block or a part of it, so that other writes wait.
    held: bool,
    /// Whether writes wait for the lock.
    wanted: bool,
}

impl RangeLocks {
    pub(super) fn new(config: &VolumeConfig) -> RangeLocks {
        RangeLocks {
            block_size: config.block_size,
            whole: config.write == WritePolicy::Through,
            blocks: Table::default(),
            partly: BTreeMap::new(),
            runs: BTreeMap::new(),
            queues: BTreeMap::new(),
            lines: Lines::default(),
        }
    }

    pub(super) fn pieces(&self, zio: &Zio<VolumeId>) -> impl Iterator<Item = Piece> + use<> {
        let has_runs = matches!(zio.op, Op::Zero | Op::Trim) || is_long(self.block_size, zio);
        cut(self.block_size, zio, 0, has_runs)
    }

    /// Whether no request uses or waits for any byte of the blocks of a zio.
    #[inline]
    pub(super) fn are_free(&self, zio: &Zio<VolumeId>) -> bool {
        let is_free = |piece: Piece| {
            if piece.is_run() {
                self.first_obstacle(piece.block, piece.end(), false)
                    .is_none()
            } else {
                !self.is_locked(piece.block)
            }
        };
        self.pieces(zio).all(is_free)
    }

    /// Locks the blocks of a piece from `first` on. If another request uses one of these blocks, or waits for
    /// one, the error names the first such block, and the blocks before it are locked.
    pub(super) fn lock_from(
        &mut self,
        first: u32,
        piece: Piece,
        has_turn: bool,
    ) -> Result<(), u32> {
        if !piece.is_run() {
            return if self.lock(piece, has_turn) {
                Ok(())
            } else {
                Err(piece.block)
            };
        }
        let obstacle = self.first_obstacle(first, piece.end(), has_turn);
        let end = obstacle.unwrap_or(piece.end());
        if end > first {
            self.runs.insert(first, end);
        }
        obstacle.map_or(Ok(()), Err)
    }

    /// The first block from `first` to `end` that a request uses or waits for. If the caller `has_turn`,
    /// other requests that only wait for the first block do not make it an obstacle.
    fn first_obstacle(&self, first: u32, end: u32, has_turn: bool) -> Option<u32> {
        let in_way = |at: &u32| {
            let lock = self.blocks.get(*at);
            lock.held || (lock.wanted && !(has_turn && *at == first))
        };
        let block = self.blocks.used(first..end).find(in_way);
        let within = self.runs.range(first..end).next();
        let run = if self.is_in_run(first) {
            Some(first)
        } else {
            within.map(|(at, _)| *at)
        };
        block.into_iter().chain(run).min()
    }

    fn is_in_run(&self, block: u32) -> bool {
        let run = self.runs.range(..=block).next_back();
        run.is_some_and(|(_, end)| *end > block)
    }

    /// Whether a request uses a block, or a part of it.
    #[inline]
    pub(super) fn is_locked(&self, block: u32) -> bool {
        self.blocks.get(block).held || self.is_in_run(block)
    }

    /// Those blocks of a range that have requests waiting for their locks.
    pub(super) fn wanted(&self, range: Range<u32>) -> Vec<u32> {
        let queues = self.queues.range(range);
        queues.map(|(block, _)| *block).collect()
    }

    /// Takes the lock of a piece of a block. Returns false if another request uses the piece's bytes, or if
    /// other requests wait for the block and it is not this request's turn.
    fn lock(&mut self, piece: Piece, has_turn: bool) -> bool {
        let whole = self.locks_whole(piece);
        let lock = self.blocks.get(piece.block);
        if (lock.wanted && !has_turn) || self.is_in_run(piece.block) {
            return false;
        }
        if !lock.held {
            self.blocks.edit(piece.block, |lock| lock.held = true);
            if !whole {
                self.partly.insert(piece.block, [piece.bytes()].into());
            }
            return true;
        }
        match self.partly.get_mut(&piece.block) {
            Some(held) if !whole && held.iter().all(|bytes| !meet(bytes, &piece)) => {
                held.push(piece.bytes());
                true
            }
            _ => false,
        }
    }

    /// Releases the locks of those blocks of a piece that are before `until`.
    pub(super) fn unlock(&mut self, piece: Piece, until: u32) {
        if piece.is_run() {
            let range = piece.block..piece.end().min(until);
            while let Some((run, _)) = self.runs.range(range.clone()).next() {
                let run = *run;
                self.runs.remove(&run);
            }
            return;
        }
        if let Some(held) = self.partly.get_mut(&piece.block) {
            held.retain(|bytes| *bytes != piece.bytes());
            if !held.is_empty() {
                return;
            }
            self.partly.remove(&piece.block);
        }
        self.blocks.edit(piece.block, |lock| lock.held = false);
    }

    pub(super) fn queue(&mut self, id: ZioId, block: u32, has_turn: bool) {
        self.blocks.edit(block, |lock| lock.wanted = true);
        let queue = self.queues.entry(block).or_insert(Line::EMPTY);
        if has_turn {
            self.lines.push_front(queue, id, ());
        } else {
            self.lines.push_back(queue, id, ());
        }
    }

    /// The next request for the lock of a block, if it can have the lock now.
    pub(super) fn next(&mut self, block: u32, requests: &Requests) -> Option<ZioId> {
        if !self.blocks.get(block).wanted {
            return None;
        }
        let queue = self.queues.get(&block)?;
        let next = queue.first().filter(|id| {
            let mut pieces = self.pieces(&requests[*id].zio);
            let piece = pieces.find(|piece| piece.end() > block);
            piece.is_none_or(|piece| self.is_free(block, piece))
        });
        let queue = self.queues.get_mut(&block)?;
        if next.is_some() {
            self.lines.pop_front(queue);
        }
        if queue.is_empty() {
            self.queues.remove(&block);
            self.blocks.edit(block, |lock| lock.wanted = false);
        }
        next
    }

    /// Whether no request uses the bytes of a block that a piece covers.
    fn is_free(&self, block: u32, piece: Piece) -> bool {
        if !self.is_locked(block) {
            return true;
        }
        let held = self.partly.get(&block);
        !self.locks_whole(piece)
            && held.is_some_and(|held| held.iter().all(|bytes| !meet(bytes, &piece)))
    }

    fn locks_whole(&self, piece: Piece) -> bool {
        self.whole || piece.is_whole(self.block_size)
    }

    /// Takes a request out of the queue for a block's lock. Returns the next request if it can have the lock
    /// now: if it was this request's turn, the next one would otherwise wait for ever.
    pub(super) fn leave(&mut self, id: ZioId, block: u32, requests: &Requests) -> Option<ZioId> {
        let queue = self.queues.get_mut(&block)?;
        self.lines.take(&mut [queue], id);
        self.next(block, requests)
    }

    /// Forgets the requests, at a power cut. Keeps the locks of blocks, which the cut frees in parts.
    pub(super) fn forget_requests(&mut self) {
        self.runs.clear();
        self.partly.clear();
        self.queues.clear();
        self.lines = Lines::default();
    }

    /// Frees the lock of the next block from this one on. Returns where to go on; `None` if no lock is left.
    pub(super) fn lose_next(&mut self, from: u32) -> Option<u32> {
        let at = self.blocks.next_used(from..u32::MAX)?;
        self.blocks.edit(at, |lock| *lock = Lock::default());
        Some(at + 1)
    }
}

fn meet(held: &(u32, u32), piece: &Piece) -> bool {
    let (start, end) = piece.bytes();
    held.0 < end && start < held.1
}
