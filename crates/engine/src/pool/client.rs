//! The course of clients' requests. A request begins, waits for a number of operations, and ends.
//!
//! For a FLUSH, and for a write with FUA, the pool at once writes to the disks all blocks that the
//! request waits for, and then makes the disks sync.
//!
//! ZFS would instead write the data to its intent log, and later a second time to its place. A flush waits
//! only for dirty data of its own volume.

use core::ops::Range;

use super::jobs::{Home, Job, Stage};
use super::pool::Pool;
use super::request::Phase;
use super::step::{Step, SyncFor};
use crate::command::Action;
use crate::time::Instant;
use crate::zio::{Errno, Op, Outcome, VolumeId, Zio, ZioId};

impl Pool {
    /// Writes all acknowledged blocks of a volume to the disks.
    pub(super) fn flush(&mut self, id: ZioId, step: &mut Step<'_>) {
        let (volume, _) = self.begin(id, Phase::Writing, step.now);
        if self.volumes[volume].failing > 0 {
            self.finish(id, Err(Errno::Io), step);
            return;
        }
        self.send_range_home(id, volume, 0..u32::MAX, Stage::OnWay, step);
    }

    /// Makes a request wait until a range of its volume is on the disks.
    fn send_range_home(
        &mut self,
        zio: ZioId,
        volume: usize,
        range: Range<u32>,
        stage: Stage,
        step: &mut Step<'_>,
    ) {
        // An extra pending count keeps the request from ending before the writes of all its blocks have
        // begun.
        self.add_pending(zio, 1);
        let Range { start, end } = range;
        let home = Home {
            zio,
            volume,
            start,
            end,
            stage,
            at: start,
            is_parted: self.has_jobs(),
        };
        self.begin_job(Job::Home(home), step);
    }

    /// Writes the blocks of a durable write to the disks.
    pub(super) fn send_request_home(&mut self, id: ZioId, step: &mut Step<'_>) {
        let (volume, zio) = self.begin(id, Phase::Writing, step.now);
        if self.volumes[volume].is_long(&zio) {
            let blocks = self.volumes[volume].blocks_of(&zio);
            self.send_range_home(id, volume, blocks, Stage::Blocks, step);
            return;
        }
        // An extra pending count keeps the request from ending before the writes of all its pieces have
        // begun.
        self.add_pending(id, 1);
        for piece in self.volumes[volume].pieces(&zio) {
            if piece.is_run() {
                let run = piece.block..piece.end();
                self.send_range_home(id, volume, run, Stage::Extents, step);
            } else {
                self.watch(volume, piece.block, id, step);
            }
        }
        self.one_less(id, Ok(()), step);
    }

    /// Continues a request when all of its blocks are on their disks. If the request must be durable, makes
    /// the disks sync.
    pub(super) fn home(&mut self, id: ZioId, step: &mut Step<'_>) {
        let request = &mut self.requests[id];
        if !request.is_durable() {
            self.finish(id, Ok(()), step);
            return;
        }
        request.go_to(Phase::Syncing, step.now);
        let (zio, volume) = (request.zio, request.volume);
        self.add_pending(id, 1);
        if zio.op == Op::Flush {
            (0..self.map.members()).for_each(|member| self.sync_member(member, id, step));
        } else {
            let blocks = self.volumes[volume].blocks_of(&zio);
            for member in 0..self.map.members() {
                if self.map.has_part(volume, blocks.clone(), member) {
                    self.sync_member(member, id, step);
                }
            }
        }
        self.one_less(id, Ok(()), step);
    }

    /// Makes a request wait until all sides of a member have synced.
    fn sync_member(&mut self, member: usize, id: ZioId, step: &mut Step<'_>) {
        for side in 0..self.map.sides(member).len() {
            self.add_pending(id, 1);
            let disk = self.map.sides(member)[side];
            self.sync_disk(disk, SyncFor::Request(id), step);
        }
    }
}

/// The course of a request: it begins, waits for a number of operations, and ends.
impl Pool {
    /// Starts a request.
    pub(super) fn start(&mut self, id: ZioId, op: Op, step: &mut Step<'_>) {
        match op {
            Op::Read => self.read(id, step),
            Op::Write | Op::Zero | Op::Trim => self.write(id, step),
            Op::Flush => self.flush(id, step),
            Op::Cache => self.finish(id, Ok(()), step),
            // A pool has no files.
            _ => self.finish(id, Err(Errno::NotSup), step),
        }
    }

    /// Makes a request enter a phase. Returns its volume and its zio.
    pub(super) fn begin(
        &mut self,
        id: ZioId,
        phase: Phase,
        now: Instant,
    ) -> (usize, Zio<VolumeId>) {
        let request = &mut self.requests[id];
        request.go_to(phase, now);
        (request.volume, request.zio)
    }

    pub(super) fn add_pending(&mut self, id: ZioId, count: u32) {
        let request = &mut self.requests[id];
        request.pending += count;
    }

    /// Notes that one of the operations that a request waits for has ended.
    pub(super) fn one_less(&mut self, id: ZioId, outcome: Outcome, step: &mut Step<'_>) {
        let request = &mut self.requests[id];
        request.outcome = request.outcome.and(outcome);
        request.pending -= 1;
        if request.pending > 0 {
            return;
        }
        let (phase, op, outcome) = (request.phase, request.zio.op, request.outcome);
        match phase {
            Phase::Reading if op != Op::Read && outcome.is_ok() => self.filled(id, step),
            Phase::Writing if outcome.is_ok() => self.home(id, step),
            _ => self.finish(id, outcome, step),
        }
    }

    /// Ends a request: frees its locks and buffers, and asks for its reply.
    pub(super) fn finish(&mut self, id: ZioId, outcome: Outcome, step: &mut Step<'_>) {
        self.unlock(id);
        self.release_edges(id, step);
        let request = &mut self.requests[id];
        if request.aborted {
            let volume = &mut self.volumes[request.volume];
            volume.occupancy.leave(step.now, &mut volume.stats);
            volume.stats.aborted += 1;
            let lent = request.lent;
            self.requests.remove(id);
            step.actions.push(Action::Drop(id));
            lent.into_iter().for_each(|buf| step.free(buf));
            return;
        }
        request.go_to(Phase::Reply, step.now);
        request.outcome = outcome;
        request.completed = step.now;
        step.actions.push(Action::Complete(id, outcome));
    }
}
