//! FLUSH, and writes with FUA. For such a request, the pool at once writes to the disks all blocks that the
//! request waits for, and then makes the disks sync.
//!
//! ZFS would instead write the data to its intent log, and later a second time to its place. A flush waits
//! only for dirty data of its own volume.

use core::ops::Range;

use super::jobs::{Home, Job, Stage};
use super::pool::Pool;
use super::request::Phase;
use super::step::{Step, SyncFor};
use crate::zio::{Errno, Op, ZioId};

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
