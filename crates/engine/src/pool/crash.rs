//! A power cut of the host: the pool loses everything that it has only in memory.
//!
//! For clients the cut is one moment: the pool drops all requests and forgets all dirty data at once. Freeing
//! the blocks that were in memory takes several steps if there are many. Requests that come meanwhile wait,
//! and start in the order of their arrival when the cut has ended.

use alloc::vec::Vec;

use super::cut::Cut;
use super::failures::Failures;
use super::jobs::Job;
use super::pool::Pool;
use super::request::Phase;
use super::step::Step;
use super::unplaced::Unplaced;
use super::volume::Volume;

impl Pool {
    /// Loses everything that is in memory. Returns the lost txgs, each with its dirty bytes. Before this
    /// call, the engine has made orphans of the zios at the disks.
    pub(crate) fn crash(&mut self, step: &mut Step<'_>) -> Vec<(u64, u64)> {
        let dirty_of = |(txg, _)| {
            let metadata = self.overhead.dirty_of(txg);
            (txg, self.throttle.dirty_of(txg) - metadata)
        };
        let lost = self.txgs.live().map(dirty_of);
        let lost = lost.filter(|(_, dirty)| *dirty > 0).collect();
        // The replies that are on their way leave.
        for id in self.requests.ids(|phase| phase != Phase::Reply) {
            self.drop_request(id, step);
        }
        self.begin_anew(step);
        self.cut = Some(Cut::begin());
        self.begin_job(Job::Cut, step);
        lost
    }

    fn begin_anew(&mut self, step: &mut Step<'_>) {
        self.txgs.begin_anew(step.now);
        self.throttle
            .begin_anew(self.throttle_config, &self.tunables, self.txgs.open());
        self.overhead.begin_anew(self.wants_overhead());
        for leaf in &mut self.disks {
            leaf.queue.forget_all();
            leaf.sync_failed = false;
        }
        for volume in &mut self.volumes {
            volume.begin_anew(step);
        }
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.buf().into_iter().for_each(|buf| step.free(buf));
            mirrors.power_cut();
        }
        self.unplaced = Unplaced::default();
        self.jobs.waiting.clear();
        self.unlocked.clear();
        self.failures = Failures::none();
        self.commit = None;
    }
}

impl Volume {
    /// Forgets what belonged to requests. Keeps what belongs to blocks, because the cut frees it in parts.
    fn begin_anew(&mut self, step: &mut Step<'_>) {
        self.edges.clear(step);
        self.locks.forget_requests();
        self.failing = 0;
    }
}
