//! Requests that end early: because their client is gone, because the pool ends, or because it fails writes that
//! wait.

use super::pool::Pool;
use super::request::Phase;
use super::step::Step;
use crate::zio::{Errno, ZioId};

impl Pool {
    /// Aborts the zios of a connection that is gone. A zio whose blocks a disk works on is dropped
    /// when the disk is done.
    pub(crate) fn abort(&mut self, ids: &[ZioId], step: &mut Step<'_>) {
        self.throttle.forget(step.now, ids);
        for id in ids {
            // The connection may have had zios in other pools, too.
            if !self.has(*id) {
                continue;
            }
            let request = &mut self.requests[*id];
            request.aborted = true;
            match request.phase {
                Phase::Locking(next) => self.leave_lock_queue(*id, next),
                Phase::Throttled => {}
                Phase::Stalled => self.failures.leave(*id),
                Phase::Cut => self.cut.iter_mut().for_each(|cut| cut.leave(*id)),
                Phase::Reply => {}
                Phase::Reading | Phase::Writing | Phase::Syncing => continue,
            }
            self.finish(*id, Ok(()), step);
        }
    }

    /// Fails the writes that wait, and every later zio.
    pub(crate) fn close(&mut self, errno: Errno, step: &mut Step<'_>) {
        self.closing = Some(errno);
        self.stop_repairing(step);
        let waiting = self
            .requests
            .ids(|phase| matches!(phase, Phase::Locking(_)));
        // First fail the zios that wait for locks. Otherwise these zios would get the locks of the zios
        // that fail below.
        for id in waiting {
            if let Phase::Locking(next) = self.requests[id].phase {
                self.leave_lock_queue(id, next);
                self.finish(id, Err(errno), step);
            }
        }
        self.fail_held_back(errno, step);
        for id in self.requests.ids(|phase| phase == Phase::Cut) {
            self.cut.iter_mut().for_each(|cut| cut.leave(id));
            self.finish(id, Err(errno), step);
        }
        // The other zios wait for disks whose rules are about to be removed. A disk without its rules answers
        // too early, so these zios fail when the disk is done.
        for id in self.requests.ids(|phase| phase != Phase::Reply) {
            let request = &mut self.requests[id];
            request.outcome = request.outcome.and(Err(errno));
        }
    }
}
