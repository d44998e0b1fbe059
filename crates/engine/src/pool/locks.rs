//! Range locks: a write has its bytes for itself from its transaction's beginning until it is dirty
//! (OpenZFS: `zfs_rangelock`).
//!
//! A write that goes through to the disks locks whole blocks, because it writes whole blocks. Any other
//! write locks its bytes only. Requests get the lock of a block in the order of their arrival.

use super::config::WritePolicy;
use super::pool::Pool;
use super::request::{Phase, Requests};
use super::step::Step;
use super::volume::{Piece, Volume};
use crate::zio::ZioId;

impl Pool {
    /// Takes the locks of a write's blocks in their order, which prevents deadlocks. The write
    /// continues when it has all locks. `has_turn`: it waited, and is the next for its first lock.
    pub(super) fn lock(&mut self, id: ZioId, mut has_turn: bool, step: &mut Step<'_>) {
        let Some(request) = self.requests.get(id) else {
            return;
        };
        let Phase::Locking(from) = request.phase else {
            return;
        };
        let zio = request.zio;
        let volume = &mut self.volumes[request.volume];
        for piece in volume.pieces(&zio) {
            if piece.block < from {
                continue;
            }
            if !volume.lock(piece, has_turn) {
                volume.queue_for_lock(id, piece.block, has_turn);
                if let Some(request) = self.requests.get_mut(id) {
                    request.phase = Phase::Locking(piece.block);
                }
                return;
            }
            // Perhaps the next request fits beside this one.
            if has_turn {
                self.unlocked
                    .extend(volume.next_for_lock(piece.block, &self.requests));
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
            for piece in volume.pieces(&request.zio) {
                volume.lock(piece, true);
            }
        }
    }

    /// Gives back the locks that a request has.
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
        for piece in volume.pieces(&zio) {
            if piece.block >= until {
                break;
            }
            volume.unlock(piece);
            self.unlocked
                .extend(volume.next_for_lock(piece.block, &self.requests));
        }
    }

    /// Takes a request out of the queue for a block's lock.
    pub(super) fn leave_lock_queue(&mut self, id: ZioId, block: u32) {
        self.unlocked.retain(|other| *other != id);
        let Some(request) = self.requests.get(id) else {
            return;
        };
        let volume = &mut self.volumes[request.volume];
        if let Some(queue) = volume.lock_queues.get_mut(&block) {
            queue.retain(|other| *other != id);
            // Without this, the next request would wait for ever if this one had its turn.
            let next = volume.next_for_lock(block, &self.requests);
            self.unlocked.extend(next);
        }
    }
}

impl Volume {
    /// Takes the lock of a piece of a block. False if another request uses its bytes, or if others wait
    /// for the block and it is not this one's turn.
    fn lock(&mut self, piece: Piece, has_turn: bool) -> bool {
        let whole = self.locks_whole(piece);
        let block = self.blocks.get_mut(piece.block);
        if block.wanted && !has_turn {
            return false;
        }
        if !block.locked {
            block.locked = true;
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

    fn unlock(&mut self, piece: Piece) {
        if let Some(held) = self.partly_locked.get_mut(&piece.block) {
            held.retain(|bytes| *bytes != piece.bytes());
            if !held.is_empty() {
                return;
            }
            self.partly_locked.remove(&piece.block);
        }
        self.blocks.get_mut(piece.block).locked = false;
    }

    fn queue_for_lock(&mut self, id: ZioId, block: u32, has_turn: bool) {
        self.blocks.get_mut(block).wanted = true;
        let queue = self.lock_queues.entry(block).or_default();
        match has_turn {
            true => queue.push_front(id),
            false => queue.push_back(id),
        }
    }

    /// The next request for the lock of a block, if it can have the lock now.
    fn next_for_lock(&mut self, block: u32, requests: &Requests) -> Option<ZioId> {
        if !self.blocks.get(block).wanted {
            return None;
        }
        let queue = self.lock_queues.get(&block)?;
        let next = queue.front().copied().filter(|id| {
            let zio = requests.get(*id).map(|request| request.zio);
            let mut pieces = zio.into_iter().flat_map(|zio| self.pieces(&zio));
            let piece = pieces.find(|piece| piece.block == block);
            piece.is_none_or(|piece| self.is_free(piece))
        });
        let queue = self.lock_queues.get_mut(&block)?;
        if next.is_some() {
            queue.pop_front();
        }
        if queue.is_empty() {
            self.lock_queues.remove(&block);
            self.blocks.get_mut(block).wanted = false;
        }
        next
    }

    /// Whether no request uses the bytes of a piece.
    fn is_free(&self, piece: Piece) -> bool {
        if !self.blocks.get(piece.block).locked {
            return true;
        }
        let held = self.partly_locked.get(&piece.block);
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
