//! The ends of requests. While a pool is degraded, its writes wait or fail (ZFS: `failmode`).

use super::pool::Pool;
use super::request::{Phase, Request};
use super::step::Step;
use crate::command::Action;
use crate::zio::{Errno, Op, Outcome, ZioId};

impl Pool {
    /// Ends a request: frees its locks and buffers, and asks for its reply.
    pub(super) fn finish(&mut self, id: ZioId, outcome: Outcome, step: &mut Step<'_>) {
        self.unlock(id);
        self.release_edges(id, step);
        let request = &mut self.requests[id];
        if request.aborted {
            let lent = self.drop_request(id, step).lent;
            lent.into_iter().for_each(|buf| step.free(buf));
            return;
        }
        request.go_to(Phase::Reply, step.now);
        request.outcome = outcome;
        request.completed = step.now;
        step.actions.push(Action::Complete(id, outcome));
    }

    /// Drops a request without a reply.
    pub(super) fn drop_request(&mut self, id: ZioId, step: &mut Step<'_>) -> Request {
        let request = self.requests.remove(id);
        let volume = &mut self.volumes[request.volume];
        volume.occupancy.leave(step.now, &mut volume.stats);
        volume.stats.aborted += 1;
        step.actions.push(Action::Drop(id));
        request
    }

    /// Notes that a request no longer needs its edges.
    pub(super) fn release_edges(&mut self, id: ZioId, step: &mut Step<'_>) {
        let request = &mut self.requests[id];
        if !core::mem::take(&mut request.has_edges) {
            return;
        }
        let volume = request.volume;
        for block in self.edges_of(id) {
            self.volumes[volume].edges.release(block, step);
        }
    }

    /// The first and the last block of a write, each only if the write does not replace the whole block.
    pub(super) fn edges_of(&self, id: ZioId) -> impl Iterator<Item = u32> + use<> {
        let request = &self.requests[id];
        let (zio, size) = (&request.zio, self.volumes[request.volume].block_size);
        let size = u64::from(size);
        let (first, end) = (zio.offset / size, zio.offset + u64::from(zio.length));
        let last = (end - 1) / size;
        let cut = zio.op != Op::Trim;
        let begins_within = cut && !zio.offset.is_multiple_of(size);
        let ends_within = cut && !end.is_multiple_of(size);
        let first_cut = begins_within || (first == last && ends_within);
        let edges = [
            first_cut.then_some(first as u32),
            (ends_within && first != last).then_some(last as u32),
        ];
        edges.into_iter().flatten()
    }

    /// Whether the pool is degraded, and the tunables say that it fails writes then.
    pub(super) fn fails_writes(&self) -> bool {
        self.failures.is_degraded() && self.tunables.fails_on_error()
    }

    /// Fails the writes that wait if the pool is degraded and the tunables say so (ZFS: `failmode`).
    pub(super) fn fail_if_asked(&mut self, step: &mut Step<'_>) {
        if self.fails_writes() {
            self.fail_held_back(Errno::Io, step);
        }
    }

    /// Fails the writes that have their locks but have not been admitted.
    pub(super) fn fail_held_back(&mut self, errno: Errno, step: &mut Step<'_>) {
        let held_back = |phase| matches!(phase, Phase::Throttled | Phase::Stalled);
        let waiting = self.requests.ids(held_back);
        self.throttle.forget(step.now, &waiting);
        for id in waiting {
            self.failures.leave(id);
            self.finish(id, Err(errno), step);
        }
    }
}
