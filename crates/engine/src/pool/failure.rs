//! A pool with failing disks: acknowledged data stays dirty and is written again.
//!
//! Until the repeated write succeeds, the volume's FLUSH fails, and the pool's writes wait or fail
//! (ZFS: `failmode`).

use super::block_io::Retry;
use super::pool::Pool;
use super::request::Phase;
use super::stats::Class;
use super::step::{Step, SyncFor};
use crate::time::{Duration, Instant};
use crate::zio::{Errno, ZioId};

impl Pool {
    /// Keeps a block dirty after its write has failed, and schedules another write.
    pub(super) fn block_failed(&mut self, volume: usize, block: u32, step: &mut Step<'_>) {
        let target = &mut self.volumes[volume];
        if !target.blocks.edit(block, |block| block.set_failing(true)) {
            target.failing += 1;
            self.failing += 1;
        }
        self.retry(Retry::Block { volume, block }, step.now);
        self.release_watchers(volume, block, Err(Errno::Io), step);
        if self.tunables.fails_on_error() {
            self.fail_held_back(Errno::Io, step);
        }
    }

    pub(super) fn block_works(&mut self, volume: usize, block: u32, step: &mut Step<'_>) {
        let target = &mut self.volumes[volume];
        if !target.blocks.edit(block, |block| block.set_failing(false)) {
            return;
        }
        target.failing -= 1;
        self.failing -= 1;
        self.go_on(step);
    }

    /// Resumes the stalled writes once every write and sync that failed on a disk has been repeated
    /// successfully.
    pub(super) fn go_on(&mut self, step: &mut Step<'_>) {
        while !self.is_degraded()
            && let Some((id, ())) = self.lines.pop_front(&mut self.stalled)
        {
            self.ask(id, step);
        }
    }

    /// Whether a write of acknowledged data, or a sync of a disk, has failed and has not yet been repeated
    /// successfully.
    pub(crate) fn is_degraded(&self) -> bool {
        self.failing > 0
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
        self.lines.push_back(&mut self.stalled, id, ());
    }

    pub(super) fn repeat_failed(&mut self, step: &mut Step<'_>) {
        while let Some((at, retry)) = self.retries.front().copied() {
            if at > step.now {
                break;
            }
            self.retries.pop_front();
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

    /// Schedules a failed operation to be repeated.
    pub(super) fn retry(&mut self, what: Retry, now: Instant) {
        self.retries.push_back((now + RETRY_AFTER, what));
    }
}

/// How long the pool waits before it repeats a failed write.
const RETRY_AFTER: Duration = Duration::from_secs(1);
