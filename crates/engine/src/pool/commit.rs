//! The end of a txg: its blocks are on the disks, the disks sync, and the txg is committed.

use super::block_io::Retry;
use super::overhead::{Tail, Tree};
use super::pool::Pool;
use super::stats::Traffic;
use super::step::{Step, SyncFor};
use super::tunable::Tunable;
use super::volume::slot_of;
use crate::time::Duration;
use crate::zio::Outcome;

impl Pool {
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

    /// Makes the open txg sync if it has enough dirty data.
    pub(super) fn sync_if_full(&mut self) {
        if self.throttle.wants_sync(self.txgs.open()) {
            self.txgs.want_sync();
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
            self.failures.repeated();
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
            self.sync_if_full();
        }
    }

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
            self.failures.repeated();
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
