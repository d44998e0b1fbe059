//! A power cut of the host: the pool loses everything that it has only in memory.
//!
//! For clients the cut is one moment: the pool drops all requests and forgets all dirty data at once. Freeing
//! the blocks that were in memory takes several steps if there are many. Requests that come meanwhile wait,
//! and start in the order of their arrival when the cut has ended.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::block_io::Cause;
use super::blocks::Block;
use super::cut::{Cut, Stage};
use super::failures::Failures;
use super::jobs::Job;
use super::pool::Pool;
use super::request::Phase;
use super::step::Step;
use super::unplaced::Unplaced;
use super::volume::Volume;
use crate::command::Action;
use crate::lines::{Line, Lines};
use crate::time::Instant;
use crate::zio::ZioId;

/// The moment of the cut.
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
        self.drop_requests(step);
        self.begin_anew(step);
        self.begin_cut();
        self.begin_job(Job::Cut, step);
        self.settle(step);
        lost
    }

    /// Drops the requests, except those whose replies are on their way.
    fn drop_requests(&mut self, step: &mut Step<'_>) {
        for id in self.requests.ids(|phase| phase != Phase::Reply) {
            let request = self.requests.remove(id);
            let volume = &mut self.volumes[request.volume];
            volume.occupancy.leave(step.now, &mut volume.stats);
            volume.stats.aborted += 1;
            step.actions.push(Action::Drop(id));
        }
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

    fn begin_cut(&mut self) {
        self.cut = Some(Box::new(Cut {
            stage: Stage::Blocks,
            volume: 0,
            at: 0,
            waiting: Line::EMPTY,
            lines: Lines::default(),
        }));
    }
}

/// The work of a cut.
impl Pool {
    /// Does a part of a cut's work. Returns whether the cut has ended.
    pub(super) fn go_on_with_cut(&mut self, step: &mut Step<'_>) -> bool {
        let Some(mut cut) = self.cut.take() else {
            return true;
        };
        while self.jobs.has_room() {
            if self.lose_next(&mut cut, step) {
                self.jobs.touch();
                continue;
            }
            if cut.stage == Stage::Over {
                return true;
            }
            (cut.volume, cut.at) = (cut.volume + 1, 0);
            if cut.volume >= self.volumes.len() {
                (cut.stage, cut.volume) = (cut.stage.next(), 0);
            }
            if cut.stage == Stage::Over {
                self.reads.clear();
                self.writes.clear();
            }
        }
        self.cut = Some(cut);
        false
    }

    /// Frees one more of the things that the stage is about; in the last stage, starts one of the requests
    /// that have waited. Returns false if the stage has nothing left to do for this volume.
    fn lose_next(&mut self, cut: &mut Cut, step: &mut Step<'_>) -> bool {
        let next = match cut.stage {
            Stage::Blocks => self.lose_block(cut, step),
            Stage::Extents => {
                let volume = self.volumes.get_mut(cut.volume);
                return volume.is_some_and(|volume| volume.extents.lose_one());
            }
            Stage::Locks => {
                let volume = self.volumes.get_mut(cut.volume);
                volume.and_then(|volume| volume.locks.lose_next(cut.at))
            }
            Stage::Places => {
                let placement = self.map.placement_mut();
                placement.and_then(|placement| placement.lose_next(cut.volume, cut.at))
            }
            Stage::Reads => self.lose_read(cut.at, step),
            Stage::Writes => self.lose_write(cut.at, step),
            Stage::Over => return self.start_next(cut, step),
        };
        cut.at = next.unwrap_or(cut.at);
        next.is_some()
    }

    /// Loses the versions of a block. Returns the block at which to go on.
    fn lose_block(&mut self, cut: &Cut, step: &mut Step<'_>) -> Option<u32> {
        let volume = self.volumes.get_mut(cut.volume)?;
        let at = volume.blocks.next_used(cut.at..u32::MAX)?;
        let block: Block = volume.blocks.edit(at, core::mem::take);
        for content in block.contents() {
            step.free_content(content);
        }
        while volume.watchers.take(at).is_some() {}
        Some(at + 1)
    }

    /// Loses a read that was in flight. Returns the slot at which to go on.
    fn lose_read(&mut self, from: u32, step: &mut Step<'_>) -> Option<u32> {
        let at = self.reads.next_live(from)?;
        let read = self.reads.remove(at);
        step.free(read.buf);
        Some(at + 1)
    }

    /// Loses a write that was in flight or queued. Frees its content, unless the content was a version of a
    /// block. Returns the slot at which to go on.
    fn lose_write(&mut self, from: u32, step: &mut Step<'_>) -> Option<u32> {
        let at = self.writes.next_live(from)?;
        let write = self.writes.remove(at);
        if matches!(write.cause, Cause::Through(_) | Cause::Replaced) {
            step.free_content(write.content);
        }
        Some(at + 1)
    }

    fn start_next(&mut self, cut: &mut Cut, step: &mut Step<'_>) -> bool {
        // If other jobs of this step have let earlier requests go on, these requests go first.
        while self.resume_next(step) {}
        let Some((id, ())) = cut.lines.pop_front(&mut cut.waiting) else {
            return false;
        };
        let request = &self.requests[id];
        let (zio, volume) = (request.zio, request.volume);
        let blocks = self.volumes[volume].blocks_of(&zio);
        self.start(id, zio.op, step);
        if !self.volumes[volume].is_long(&zio) {
            self.jobs.touched += blocks.end - blocks.start;
        }
        true
    }

    /// Makes a request wait for the end of a cut. Returns false if there is no cut.
    pub(super) fn wait_for_cut(&mut self, id: ZioId, now: Instant) -> bool {
        let Some(cut) = &mut self.cut else {
            return false;
        };
        let request = &mut self.requests[id];
        request.go_to(Phase::Cut, now);
        cut.lines.push_back(&mut cut.waiting, id, ());
        true
    }

    /// Removes a request from those that wait for the end of a cut.
    pub(super) fn leave_cut(&mut self, id: ZioId) {
        if let Some(cut) = &mut self.cut {
            cut.lines.take(&mut [&mut cut.waiting], id);
        }
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
