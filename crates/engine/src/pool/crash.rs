//! A power cut of the host: the pool loses everything that it has only in memory.

use alloc::vec::Vec;

use super::blocks::BlockTable;
use super::extents::Extents;
use super::placement::Placement;
use super::pool::Pool;
use super::request::Phase;
use super::slab::Slab;
use super::step::Step;
use super::volume::Volume;
use super::watchers::Watchers;
use crate::bytes::Buf;
use crate::command::Action;

impl Pool {
    /// Loses everything that is in memory. Returns the lost txgs, each with its dirty bytes. Before this
    /// call, the engine has made orphans of the zios at the disks.
    pub(crate) fn crash(&mut self, step: &mut Step<'_>) -> Vec<(u64, u64)> {
        let dirty_of = |(txg, _)| (txg, self.throttle.dirty_of(txg));
        let lost = self.txgs.live().map(dirty_of);
        let lost = lost.filter(|(_, dirty)| *dirty > 0).collect();
        self.drop_requests(step);
        for buf in self.buffers_in_use() {
            step.free(buf);
        }
        self.begin_anew(step);
        lost
    }

    /// Drops the requests, except those whose replies are on their way.
    fn drop_requests(&mut self, step: &mut Step<'_>) {
        for id in self.requests.ids(|phase| phase != Phase::Reply) {
            let Some(request) = self.requests.remove(id) else {
                continue;
            };
            let volume = &mut self.volumes[request.volume];
            volume.occupancy.leave(step.now, &mut volume.stats);
            volume.stats.aborted += 1;
            step.actions.push(Action::Drop(id));
        }
    }

    fn buffers_in_use(&self) -> Vec<Buf> {
        let versions = self
            .volumes
            .iter()
            .flat_map(|volume| volume.blocks.contents());
        let writes = self.writes.live().map(|id| self.writes[id].content);
        let contents = versions.chain(writes).filter_map(|content| content.buf());
        let edges = self.volumes.iter().flat_map(|volume| volume.edges.values());
        let edges = edges.filter_map(|edge| edge.buf);
        let reads = self.reads.live().map(|id| self.reads[id].buf);
        let copied = self.mirrors.iter().filter_map(|mirrors| mirrors.buf());
        let all = contents.chain(edges).chain(reads).chain(copied);
        let mut buffers: Vec<Buf> = all.collect();
        // A version on its way to a disk is in the block table, too, so its buffer may occur twice.
        buffers.sort_unstable();
        buffers.dedup();
        buffers
    }

    fn begin_anew(&mut self, step: &mut Step<'_>) {
        self.txgs.begin_anew(step.now);
        self.throttle
            .begin_anew(self.throttle_config, &self.tunables, self.txgs.open());
        for leaf in &mut self.disks {
            leaf.queue.forget_all();
            leaf.sync_failed = false;
        }
        self.volumes.iter_mut().for_each(Volume::begin_anew);
        self.placement.iter_mut().for_each(Placement::power_cut);
        self.mirrors
            .iter_mut()
            .for_each(|mirrors| mirrors.power_cut());
        self.unplaced.clear();
        self.done_at_once.clear();
        (self.writes, self.reads) = (Slab::default(), Slab::default());
        self.jobs.waiting.clear();
        self.retries.clear();
        self.unlocked.clear();
        self.stalled.clear();
        self.failing = 0;
        self.commit = None;
        self.settle(step);
    }
}

impl Volume {
    fn begin_anew(&mut self) {
        self.blocks = BlockTable::default();
        self.extents = Extents::default();
        self.locked_runs.clear();
        self.partly_locked.clear();
        self.edges.clear();
        self.lock_queues.clear();
        self.watchers = Watchers::default();
        self.failing = 0;
    }
}
