//! How txgs get to the disks (OpenZFS: `txg_sync_thread`, `spa_sync`).

use super::block_io::{Cause, Retry};
use super::block_map::Part;
use super::blocks::Content;
use super::config::ThrottleConfig;
use super::jobs::{Job, Sync};
use super::overhead::{Tail, Tree};
use super::pool::Pool;
use super::stats::{Class, Traffic};
use super::step::{Covers, Step, SyncFor};
use super::tunable::Tunable;
use super::volume::slot_of;
use crate::bytes::{Move, Span};
use crate::time::{Duration, Instant};
use crate::zio::Outcome;

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

    pub(super) fn txg_timeout(&self) -> Duration {
        Duration::from_secs(self.tunables.get(Tunable::TxgTimeout))
    }

    pub(super) fn reached_disks(&self) -> Traffic {
        let mut sum = Traffic::default();
        for leaf in &self.disks {
            sum.add(leaf.queue.joined());
        }
        sum
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
        self.begin_job(Job::Sync(sync), step);
    }

    /// Puts the batches into the queues of their disks. None of these writes goes to a disk yet.
    pub(super) fn push_batches(&mut self, now: Instant) {
        for leaf in &mut self.disks {
            leaf.queue.push_batch(now);
        }
    }

    /// Adds a block to the batches of its disks, unless the block is already on the disks or on its way
    /// there.
    pub(super) fn enlist(&mut self, volume: usize, block: u32, txg: u64, now: Instant) {
        let target = &self.volumes[volume];
        let version = target.blocks.get(block).version(slot_of(txg));
        let (Some(content), None) = (version, target.write_of(block)) else {
            return;
        };
        let class = Class::AsyncWrite;
        let id = self.begin_write(volume, (block, 1), content, Cause::Dirty(txg), class);
        self.enlist_write(id, now);
    }

    pub(super) fn enlist_write(&mut self, id: u32, now: Instant) {
        if !self.can_be_queued(id) {
            return;
        }
        if self.mirrors.is_some() && !self.mark_regions(id, now) {
            return;
        }
        self.parts(id).for_each(|part| self.enlist_part(id, part));
    }

    #[inline]
    fn enlist_part(&mut self, id: u32, part: Part) {
        let queued = self.queued_write(id, part);
        for disk in self.map.sides(part.member) {
            self.disks[*disk].queue.enlist(queued);
        }
    }

    /// The writes that a sync of a disk will cover if the sync begins now.
    pub(super) fn covers(&self, disk: usize) -> Covers {
        let (member, _) = self.map.side_of(disk);
        let (placement, mirrors) = (self.map.placement(), self.mirrors.as_ref());
        Covers {
            firsts: placement.map_or(0, |placement| placement.covers(member)),
            quiet: mirrors.map_or(0, |mirrors| mirrors.covers(member)),
        }
    }

    /// Notes that a disk has synced.
    pub(super) fn note_sync(&mut self, disk: usize, covers: Covers) {
        let (member, side) = self.map.side_of(disk);
        // Until the pool has looked at all places after a power cut, `covers.firsts` may count writes that
        // the cut has lost.
        let loses = self.cut.as_ref().is_some_and(|cut| cut.loses());
        if let Some(placement) = self.map.placement_mut().filter(|_| !loses) {
            placement.synced(member, side, covers.firsts);
        }
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.flushed(member, side, covers.quiet);
        }
    }

    /// Notes that one more block of a txg is on the disks.
    pub(super) fn settled(&mut self, txg: u64, step: &mut Step<'_>) {
        if self.txgs.settled(slot_of(txg)) {
            self.commit_if_home(step);
        }
    }

    /// Begins the end of the txg once all its blocks are on the disks. Without overhead, the disks only sync.
    pub(super) fn commit_if_home(&mut self, step: &mut Step<'_>) {
        let has_begun = self.commit.is_some() || self.overhead.tail.is_some();
        if has_begun || !self.txgs.all_home() {
            return;
        }
        if !self.go_on_with_tail(step) {
            self.sync_disks(step);
        }
    }

    /// Notes that a disk has synced. When the last disk has synced for the last time, the txg ends.
    pub(super) fn disk_synced(&mut self, disk: usize, outcome: Outcome, step: &mut Step<'_>) {
        let failed = outcome.is_err();
        let had_failed = core::mem::replace(&mut self.disks[disk].sync_failed, failed);
        if failed {
            let retry = Retry::Commit { disk };
            self.failures.failed(retry, had_failed, step.now);
            self.fail_if_asked(step);
            return;
        }
        if had_failed {
            self.repeated(step);
        }
        self.commit = self.commit.map(|left| left - 1);
        if self.commit != Some(0) {
            return;
        }
        self.commit = None;
        if self.overhead.tail.is_some() && self.go_on_with_tail(step) {
            return;
        }
        let (disks, timeout) = (self.reached_disks(), self.txg_timeout());
        if let Some(done) = self.txgs.committed(step.now, disks, timeout) {
            self.throttle.synced(done.number, done.took);
            if self.throttle.wants_sync(self.txgs.open()) {
                self.txgs.want_sync();
            }
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

/// The end of a txg with overhead: metadata, later passes and uberblocks.
impl Pool {
    /// Notes that a version of a block is on the disks, or that a newer version has replaced it.
    pub(super) fn block_settled(
        &mut self,
        volume: usize,
        block: u32,
        txg: u64,
        step: &mut Step<'_>,
    ) {
        if self.overhead.is_on(txg) {
            let above = Tree::above_block(volume, block);
            for _ in 0..self.came_home(above, txg, false, step.now) {
                self.settled(txg, step);
            }
        }
        self.settled(txg, step);
    }

    /// Goes on with the end of the syncing txg. Returns false if nothing is left to do.
    fn go_on_with_tail(&mut self, step: &mut Step<'_>) -> bool {
        let Some(txg) = self.txgs.syncing() else {
            return false;
        };
        self.overhead.tail = match self.overhead.tail {
            None if self.overhead.is_on(txg) => Some(Tail::Pass(0)),
            None => None,
            Some(tail) => tail.next(),
        };
        match self.overhead.tail {
            None => return false,
            Some(Tail::Pass(pass)) => self.begin_pass(txg, pass, step.now),
            Some(Tail::Uberblocks) => self.write_uberblocks(txg, step.now),
            Some(Tail::Sync | Tail::LastSync) => {
                self.sync_disks(step);
                return true;
            }
        }
        self.pump_all(step);
        true
    }

    /// Makes all disks sync for the txg.
    fn sync_disks(&mut self, step: &mut Step<'_>) {
        self.commit = Some(self.disks.len() as u32);
        for disk in 0..self.disks.len() {
            self.sync_disk(disk, SyncFor::Txg, step);
        }
    }

    /// Notes that a side has answered a zio without bytes.
    pub(super) fn side_beside(&mut self, id: u32, outcome: Outcome, step: &mut Step<'_>) {
        let write = &mut self.overhead.writes[id];
        write.failed |= outcome.is_err();
        write.left -= 1;
        if write.left > 0 {
            return;
        }
        if write.failed {
            self.beside_failed(id, step);
            return;
        }
        let write = self.overhead.writes.remove(id);
        if write.repeats {
            self.repeated(step);
        }
        let Some(txg) = self.txgs.syncing() else {
            return;
        };
        if let Some(key) = write.of {
            for _ in 0..self.came_home(key, txg, true, step.now) {
                self.settled(txg, step);
            }
            return;
        }
        self.retire_beside(txg, write.dirty, step.now);
        self.overhead.left -= 1;
        if self.overhead.left == 0 {
            self.go_on_with_tail(step);
        }
    }

    fn beside_failed(&mut self, id: u32, step: &mut Step<'_>) {
        let had_failed = core::mem::replace(&mut self.overhead.writes[id].repeats, true);
        let retry = Retry::Beside(id);
        self.failures.failed(retry, had_failed, step.now);
        self.fail_if_asked(step);
    }

    pub(super) fn repeat_beside(&mut self, id: u32, step: &mut Step<'_>) {
        let member = self.overhead.writes[id].member;
        let write = &mut self.overhead.writes[id];
        (write.left, write.failed) = (self.map.sides(member).len() as u32, false);
        self.push_beside(id, step.now);
        self.pump_member(member, step);
    }
}
