//! Range locks: from the beginning of a write's transaction until its data is dirty, no other write uses the
//! same bytes (OpenZFS: `zfs_rangelock`).
//!
//! A write that goes through to the disks locks whole blocks, because it writes whole blocks. Any other
//! write locks its bytes only. Requests get the lock of a block in the order of their arrival. A trim, a
//! zero or a long write takes one lock for each run of whole blocks, so that a trim of 1 GiB does not have to
//! lock 131072 blocks of 8 KiB.

use alloc::vec::Vec;
use core::ops::Range;

use super::config::WritePolicy;
use super::pool::Pool;
use super::request::{Phase, Requests};
use super::step::Step;
use super::volume::{Piece, Volume};
use crate::lines::Line;
use crate::zio::ZioId;

impl Pool {
    /// Takes the locks of a write's blocks in their order, which prevents deadlocks. The write
    /// continues when it has all locks. `has_turn` says that the write has waited, and is next for its first
    /// lock.
    pub(super) fn lock(&mut self, id: ZioId, mut has_turn: bool, step: &mut Step<'_>) {
        let Some(request) = self.requests.get(id) else {
            return;
        };
        let Phase::Locking(from) = request.phase else {
            return;
        };
        let zio = request.zio;
        let volume = &mut self.volumes[request.volume];
        for piece in volume.lock_pieces(&zio) {
            if piece.end() <= from {
                continue;
            }
            let first = piece.block.max(from);
            if let Err(block) = volume.lock_from(first, piece, has_turn) {
                volume.queue_for_lock(id, block, has_turn && block == first);
                if let Some(request) = self.requests.get_mut(id) {
                    request.phase = Phase::Locking(block);
                }
                return;
            }
            // Perhaps the next request needs other bytes of the block, and can continue now, too.
            if has_turn {
                self.unlocked
                    .extend(volume.next_for_lock(first, &self.requests));
            }
            has_turn = false;
        }
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        (request.locked, request.began) = (true, step.now);
        self.fill(id, step);
    }

    /// Takes the locks of a write whose blocks no request uses.
    pub(super) fn lock_at_once(&mut self, id: ZioId) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        if !core::mem::replace(&mut request.locked, true) {
            let volume = &mut self.volumes[request.volume];
            for piece in volume.lock_pieces(&request.zio) {
                let locked = volume.lock_from(piece.block, piece, true);
                debug_assert!(locked.is_ok(), "a request uses {piece:?}");
            }
        }
    }

    /// Releases the locks that a request has.
    pub(super) fn unlock(&mut self, id: ZioId) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        let until = match request.phase {
            Phase::Locking(next) => next,
            _ if request.locked => u32::MAX,
            _ => return,
        };
        request.locked = false;
        let (zio, volume) = (request.zio, request.volume);
        let volume = &mut self.volumes[volume];
        for piece in volume.lock_pieces(&zio) {
            if piece.block >= until {
                break;
            }
            volume.unlock(piece, until);
            for block in volume.wanted(piece.block..piece.end().min(until)) {
                self.unlocked
                    .extend(volume.next_for_lock(block, &self.requests));
            }
        }
    }

    /// Takes a request out of the queue for a block's lock. If the request is already in `unlocked`, it stays
    /// there: no request that has ended takes a lock.
    pub(super) fn leave_lock_queue(&mut self, id: ZioId, block: u32) {
        let Some(request) = self.requests.get(id) else {
            return;
        };
        let volume = &mut self.volumes[request.volume];
        if let Some(queue) = volume.lock_queues.get_mut(&block) {
            volume.lock_lines.take(&mut [queue], id);
            // If it was this request's turn, the next request would otherwise wait for ever.
            let next = volume.next_for_lock(block, &self.requests);
            self.unlocked.extend(next);
        }
    }
}

impl Volume {
    /// Locks the blocks of a piece from `first` on. If another request uses one of these blocks, or waits for
    /// one, the error names the first such block, and the blocks before it are locked.
    fn lock_from(&mut self, first: u32, piece: Piece, has_turn: bool) -> Result<(), u32> {
        if !piece.is_run() {
            return match self.lock(piece, has_turn) {
                true => Ok(()),
                false => Err(piece.block),
            };
        }
        let obstacle = self.first_obstacle(first, piece.end(), has_turn);
        let end = obstacle.unwrap_or(piece.end());
        if end > first {
            self.locked_runs.insert(first, end);
        }
        obstacle.map_or(Ok(()), Err)
    }

    /// The first block from `first` to `end` that a request uses or waits for. If the caller `has_turn`,
    /// other requests that only wait for the first block do not make it an obstacle.
    pub(super) fn first_obstacle(&self, first: u32, end: u32, has_turn: bool) -> Option<u32> {
        let in_way = |at: &u32| {
            let lock = self.locks.get(*at);
            lock.held || (lock.wanted && !(has_turn && *at == first))
        };
        let block = self.locks.used(first..end).find(in_way);
        let within = self.locked_runs.range(first..end).next();
        let run = match self.is_in_run(first) {
            true => Some(first),
            false => within.map(|(at, _)| *at),
        };
        block.into_iter().chain(run).min()
    }

    fn is_in_run(&self, block: u32) -> bool {
        let run = self.locked_runs.range(..=block).next_back();
        run.is_some_and(|(_, end)| *end > block)
    }

    /// Whether a request uses a block, or a part of it.
    #[inline]
    pub(super) fn is_locked(&self, block: u32) -> bool {
        self.locks.get(block).held || self.is_in_run(block)
    }

    /// Those blocks of a range that have requests waiting for their locks.
    fn wanted(&self, range: Range<u32>) -> Vec<u32> {
        let queues = self.lock_queues.range(range);
        queues.map(|(block, _)| *block).collect()
    }

    /// Takes the lock of a piece of a block. Returns false if another request uses the piece's bytes, or if
    /// other requests wait for the block and it is not this request's turn.
    fn lock(&mut self, piece: Piece, has_turn: bool) -> bool {
        let whole = self.locks_whole(piece);
        let lock = self.locks.get(piece.block);
        if (lock.wanted && !has_turn) || self.is_in_run(piece.block) {
            return false;
        }
        if !lock.held {
            self.locks.edit(piece.block, |lock| lock.held = true);
            if !whole {
                self.partly_locked
                    .insert(piece.block, [piece.bytes()].into());
            }
            return true;
        }
        match self.partly_locked.get_mut(&piece.block) {
            Some(held) if !whole && held.iter().all(|bytes| !meet(bytes, &piece)) => {
                held.push(piece.bytes());
                true
            }
            _ => false,
        }
    }

    /// Releases the locks of those blocks of a piece that are before `until`.
    fn unlock(&mut self, piece: Piece, until: u32) {
        if piece.is_run() {
            let range = piece.block..piece.end().min(until);
            while let Some((run, _)) = self.locked_runs.range(range.clone()).next() {
                let run = *run;
                self.locked_runs.remove(&run);
            }
            return;
        }
        if let Some(held) = self.partly_locked.get_mut(&piece.block) {
            held.retain(|bytes| *bytes != piece.bytes());
            if !held.is_empty() {
                return;
            }
            self.partly_locked.remove(&piece.block);
        }
        self.locks.edit(piece.block, |lock| lock.held = false);
    }

    fn queue_for_lock(&mut self, id: ZioId, block: u32, has_turn: bool) {
        self.locks.edit(block, |lock| lock.wanted = true);
        let queue = self.lock_queues.entry(block).or_insert(Line::EMPTY);
        match has_turn {
            true => self.lock_lines.push_front(queue, id, ()),
            false => self.lock_lines.push_back(queue, id, ()),
        }
    }

    /// The next request for the lock of a block, if it can have the lock now.
    fn next_for_lock(&mut self, block: u32, requests: &Requests) -> Option<ZioId> {
        if !self.locks.get(block).wanted {
            return None;
        }
        let queue = self.lock_queues.get(&block)?;
        let next = queue.first().filter(|id| {
            let zio = requests.get(*id).map(|request| request.zio);
            let mut pieces = zio.into_iter().flat_map(|zio| self.lock_pieces(&zio));
            let piece = pieces.find(|piece| piece.end() > block);
            piece.is_none_or(|piece| self.is_free(block, piece))
        });
        let queue = self.lock_queues.get_mut(&block)?;
        if next.is_some() {
            self.lock_lines.pop_front(queue);
        }
        if queue.is_empty() {
            self.lock_queues.remove(&block);
            self.locks.edit(block, |lock| lock.wanted = false);
        }
        next
    }

    /// Whether no request uses the bytes of a block that a piece covers.
    fn is_free(&self, block: u32, piece: Piece) -> bool {
        if !self.is_locked(block) {
            return true;
        }
        let held = self.partly_locked.get(&block);
        !self.locks_whole(piece)
            && held.is_some_and(|held| held.iter().all(|bytes| !meet(bytes, &piece)))
    }

    fn locks_whole(&self, piece: Piece) -> bool {
        piece.is_whole(self.block_size) || self.write == WritePolicy::Through
    }
}

fn meet(held: &(u32, u32), piece: &Piece) -> bool {
    let (start, end) = piece.bytes();
    held.0 < end && start < held.1
}
