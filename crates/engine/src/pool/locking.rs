//! How writes take the locks of their blocks, and release them.

use super::pool::Pool;
use super::request::Phase;
use crate::time::Instant;
use crate::zio::ZioId;

impl Pool {
    /// Takes the locks of a write's blocks in their order, which prevents deadlocks. Returns whether the write
    /// has got all its locks now, so that it continues. `has_turn` says that the write has waited, and is next
    /// for its first lock.
    pub(super) fn lock(&mut self, id: ZioId, mut has_turn: bool, now: Instant) -> bool {
        // A request of `unlocked` may have ended since.
        let Some(request) = self.requests.get(id) else {
            return false;
        };
        let Phase::Locking(from) = request.phase else {
            return false;
        };
        let zio = request.zio;
        let locks = &mut self.volumes[request.volume].locks;
        for piece in locks.pieces(&zio) {
            if piece.end() <= from {
                continue;
            }
            let first = piece.block.max(from);
            if let Err(block) = locks.lock_from(first, piece, has_turn) {
                locks.queue(id, block, has_turn && block == first);
                let request = &mut self.requests[id];
                request.phase = Phase::Locking(block);
                return false;
            }
            // Perhaps the next request needs other bytes of the block, and can continue now, too.
            if has_turn {
                self.unlocked.extend(locks.next(first, &self.requests));
            }
            has_turn = false;
        }
        let request = &mut self.requests[id];
        (request.locked, request.began) = (true, now);
        true
    }

    /// Takes the locks of a write whose blocks no request uses.
    pub(super) fn lock_at_once(&mut self, id: ZioId) {
        let request = &mut self.requests[id];
        if !core::mem::replace(&mut request.locked, true) {
            let locks = &mut self.volumes[request.volume].locks;
            for piece in locks.pieces(&request.zio) {
                let locked = locks.lock_from(piece.block, piece, true);
                debug_assert!(locked.is_ok(), "a request uses {piece:?}");
            }
        }
    }

    /// Releases the locks that a request has.
    pub(super) fn unlock(&mut self, id: ZioId) {
        let request = &mut self.requests[id];
        let until = match request.phase {
            Phase::Locking(next) => next,
            _ if request.locked => u32::MAX,
            _ => return,
        };
        request.locked = false;
        let (zio, volume) = (request.zio, request.volume);
        let locks = &mut self.volumes[volume].locks;
        for piece in locks.pieces(&zio) {
            if piece.block >= until {
                break;
            }
            locks.unlock(piece, until);
            for block in locks.wanted(piece.block..piece.end().min(until)) {
                self.unlocked.extend(locks.next(block, &self.requests));
            }
        }
    }

    /// Takes a request out of the queue for a block's lock. If the request is already in `unlocked`, it stays
    /// there: no request that has ended takes a lock.
    pub(super) fn leave_lock_queue(&mut self, id: ZioId, block: u32) {
        let request = &self.requests[id];
        let locks = &mut self.volumes[request.volume].locks;
        self.unlocked.extend(locks.leave(id, block, &self.requests));
    }
}
