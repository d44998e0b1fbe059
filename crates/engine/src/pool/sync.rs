//! How txgs get to the disks (OpenZFS: `txg_sync_thread`, `spa_sync`).

use super::block_io::Cause;
use super::blocks::Content;
use super::config::ThrottleConfig;
use super::jobs::{Job, Sync};
use super::pool::Pool;
use super::queue::Queue;
use super::stats::Class;
use super::step::Step;
use super::tunable::Tunable;
use super::volume::slot_of;
use crate::bytes::{Move, Span};
use crate::time::Instant;

impl Pool {
    /// Ends the empty txgs that have passed since the pool last did something.
    #[inline]
    pub(crate) fn pass_idle_txgs(&mut self, now: Instant) {
        if self.txgs.pass_idle(now, self.txg_timeout()) {
            let open = self.txgs.open();
            self.throttle.txg_opened(open);
            self.throttle.sync_started(open - 1);
            self.decide_overhead();
        }
    }

    /// Moves the txgs one step further towards the disks, if a step is due. Returns whether it has moved
    /// them.
    pub(super) fn advance_txgs(&mut self, step: &mut Step<'_>) -> bool {
        if self.throttle.wants_quiesce() {
            self.txgs.want_quiesce();
        }
        if self.drains && self.throttle.dirty_of(self.txgs.open()) > 0 {
            self.txgs.want_sync();
        }
        if self.txgs.is_to_quiesce(step.now, self.txg_timeout()) {
            // The request to quiesce ends the delays of some writes, which still join this txg.
            if self.throttle.quiesce_asked() {
                return true;
            }
            self.txgs.quiesce(step.now);
            self.throttle.txg_opened(self.txgs.open());
            self.decide_overhead();
            return true;
        }
        let Some(txg) = self.txgs.next_to_sync() else {
            return false;
        };
        let dirty = self.throttle.dirty_of(txg);
        self.txgs.begin_sync(step.now, dirty, self.reached_disks());
        self.throttle.sync_started(txg);
        self.send_txg_home(txg, step);
        true
    }

    /// Begins to queue all dirty blocks and extents of a txg for the disks.
    fn send_txg_home(&mut self, txg: u64, step: &mut Step<'_>) {
        let sync = Sync {
            txg,
            volume: 0,
            has_extents: false,
            at: 0,
            metadata: (0, 0),
        };
        if self.jobs.begins(Job::Sync(sync), step.now) {
            let rest = self.sync_some(sync, step);
            self.jobs.waiting.extend(rest.map(Job::Sync));
        }
    }

    pub(super) fn sync_some(&mut self, mut sync: Sync, step: &mut Step<'_>) -> Option<Sync> {
        let mut is_done = true;
        // If all blocks of the txg were written because requests waited for them, the txg may have ended
        // already.
        while self.txgs.syncing() == Some(sync.txg)
            && let Some(target) = self.volumes.get(sync.volume)
        {
            let range = sync.at..u32::MAX;
            let found = if sync.has_extents {
                target.blocks.next_used(range).map(|block| block..block + 1)
            } else {
                target.extents.next_dirty(range)
            };
            let Some(found) = found else {
                (sync.volume, sync.at) = (sync.volume + usize::from(sync.has_extents), 0);
                sync.has_extents = !sync.has_extents;
                continue;
            };
            if !self.jobs.touch() {
                is_done = false;
                break;
            }
            if sync.has_extents {
                self.enlist(sync.volume, found.start, sync.txg, step.now);
            } else {
                self.enlist_extent(sync.volume, found.start, sync.txg, step.now);
            }
            sync.at = found.end;
        }
        if is_done
            && self.txgs.syncing() == Some(sync.txg)
            && let Some(rest) = self.enlist_metadata(sync.txg, sync.metadata)
        {
            (sync.metadata, is_done) = (rest, false);
        }
        self.push_batches(step.now);
        if is_done {
            self.pump_all(step);
            self.commit_if_home(step);
        }
        (!is_done).then_some(sync)
    }

    /// Puts the batches into the queues of their disks. None of these writes goes to a disk yet.
    fn push_batches(&mut self, now: Instant) {
        for leaf in &mut self.disks {
            leaf.queue.push_batch(now);
        }
    }

    /// Adds a block to the batches of its disks, unless the block is already on the disks or on its way
    /// there.
    fn enlist(&mut self, volume: usize, block: u32, txg: u64, now: Instant) {
        let target = &self.volumes[volume];
        let version = target.blocks.get(block).version(slot_of(txg));
        let (Some(content), None) = (version, target.write_of(block)) else {
            return;
        };
        let class = Class::AsyncWrite;
        let id = self.begin_write(volume, (block, 1), content, Cause::Dirty(txg), class);
        self.enlist_write(id, now);
    }

    fn enlist_write(&mut self, id: u32, now: Instant) {
        if self.can_be_queued(id) {
            self.put_in_queues(id, now, Queue::enlist);
        }
    }

    /// Adds an extent to the batches of its disks, if it is of this txg and can be written now.
    fn enlist_extent(&mut self, volume: usize, start: u32, txg: u64, now: Instant) {
        let extents = &mut self.volumes[volume].extents;
        if extents
            .get_mut(start)
            .is_some_and(|extent| extent.txg == txg)
            && let Some(extent) = extents.take(start)
        {
            let id = self.begin_extent(volume, start, extent, Class::AsyncWrite);
            self.enlist_write(id, now);
        }
    }

    /// Makes the pool start with one txg that syncs and another that waits for it, each as large as the
    /// throttle's limit for a txg. Both txgs write zeroes over the beginning of the volume, so this is only
    /// for simulations.
    pub(super) fn fill_pipeline(&mut self, step: &mut Step<'_>) {
        let ThrottleConfig::Legacy(legacy) = self.throttle_config else {
            return;
        };
        let Some(limit) = legacy.full_pipeline.and(self.throttle.write_limit()) else {
            return;
        };
        let limit = limit / self.tunables.get(Tunable::WriteLimitInflation);
        let length = self.volumes[0].block_size;
        let size = u64::from(length);
        for _ in 0..2 {
            let open = self.txgs.open();
            for block in 0..(limit / size).min(self.volumes[0].count) as u32 {
                let buf = step.buffers.allocate(length);
                step.move_bytes(Move::Zero(Span { buf, at: 0, length }));
                self.put_version(0, block, Content::Bytes(buf));
                self.throttle.dirtied_beside(step.now, open, size);
            }
            self.txgs.want_quiesce();
            self.advance_txgs(step);
            self.advance_txgs(step);
        }
    }
}
