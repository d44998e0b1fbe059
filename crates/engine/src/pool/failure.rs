//! A pool with failing disks: acknowledged data stays dirty and is written again.
//!
//! Until the repeated write succeeds, the volume's FLUSH fails, and the pool's writes wait or fail
//! (ZFS: `failmode`).

use super::block_io::Retry;
use super::pool::Pool;
use super::request::Phase;
use super::stats::Class;
use super::step::{Step, SyncFor};
use crate::zio::{Errno, ZioId};

impl Pool {
    /// Keeps a block dirty after its write has failed, and schedules another write.
    pub(super) fn block_failed(&mut self, volume: usize, block: u32, step: &mut Step<'_>) {
        let target = &mut self.volumes[volume];
        let had_failed = target.blocks.edit(block, |block| block.set_failing(true));
        target.failing += u32::from(!had_failed);
        let retry = Retry::Block { volume, block };
        self.failures.failed(retry, had_failed, step.now);
        self.release_watchers(volume, block, Err(Errno::Io), step);
        self.fail_if_asked(step);
    }

    pub(super) fn block_works(&mut self, volume: usize, block: u32, step: &mut Step<'_>) {
        let target = &mut self.volumes[volume];
        if !target.blocks.edit(block, |block| block.set_failing(false)) {
            return;
        }
        target.failing -= 1;
        self.repeated(step);
    }

    /// Notes that an operation that had failed has been repeated successfully. Once all have been, resumes
    /// the stalled writes.
    pub(super) fn repeated(&mut self, step: &mut Step<'_>) {
        self.failures.repeated();
        while let Some(id) = self.failures.pop_resumed() {
            self.ask(id, step);
        }
    }

    /// Fails the writes that wait if the pool is degraded and the tunables say so (ZFS: `failmode`).
    pub(super) fn fail_if_asked(&mut self, step: &mut Step<'_>) {
        if self.is_degraded() && self.tunables.fails_on_error() {
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

    /// See [`Failures::is_degraded`](super::failures::Failures::is_degraded).
    pub(crate) fn is_degraded(&self) -> bool {
        self.failures.is_degraded()
    }

    /// Stalls a client's write to a degraded pool, or fails the write at once if the tunables say so (ZFS:
    /// `failmode`).
    pub(super) fn stall(&mut self, id: ZioId, step: &mut Step<'_>) {
        if self.tunables.fails_on_error() {
            self.finish(id, Err(Errno::Io), step);
            return;
        }
        let request = &mut self.requests[id];
        request.go_to(Phase::Stalled, step.now);
        self.failures.stall(id);
    }

    pub(super) fn repeat_failed(&mut self, step: &mut Step<'_>) {
        while let Some(retry) = self.failures.pop_due(step.now) {
            match retry {
                Retry::Commit { disk } => self.sync_disk(disk, SyncFor::Txg, step),
                Retry::Block { volume, block } => self.repeat_block(volume, block, step),
                Retry::Extent(id) => self.repeat_extent(id, step),
                Retry::Beside(id) => self.repeat_beside(id, step),
            }
        }
    }

    fn repeat_block(&mut self, volume: usize, block: u32, step: &mut Step<'_>) {
        let is_idle = self.volumes[volume].write_of(block).is_none();
        if is_idle && !self.send_home(volume, block, Class::AsyncWrite, step) {
            self.block_works(volume, block, step);
        }
    }
}
