//! How requests become durable. For a FLUSH, and for a write with FUA, the pool at once writes to the disks all
//! blocks that the request waits for, and then makes the disks sync.
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
        let (volume, _) = self.requests.begin(id, Phase::Writing, step.now);
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
        self.requests[zio].pending += 1;
        let Range { start, end } = range;
        let home = Home {
            zio,
            volume,
            start,
            end,
            stage,
            at: start,
            is_parted: !self.jobs.waiting.is_empty(),
        };
        if self.jobs.begins(Job::Home(home), step.now) {
            let rest = self.send_some_home(home, step);
            self.jobs.waiting.extend(rest.map(Job::Home));
        }
    }

    pub(super) fn send_some_home(&mut self, mut home: Home, step: &mut Step<'_>) -> Option<Home> {
        let Home { zio, volume, .. } = home;
        loop {
            let (range, target) = (home.at..home.end, &self.volumes[volume]);
            let found = match home.stage {
                Stage::OnWay | Stage::Begun => target.extents.next_on_way(range),
                Stage::Extents => target.extents.next_dirty(range),
                Stage::Blocks => target.blocks.next_used(range).map(|block| block..block + 1),
            };
            let Some(found) = found else {
                home.at = home.start;
                home.stage = match home.stage {
                    Stage::OnWay => Stage::Extents,
                    Stage::Extents if home.is_parted => Stage::Begun,
                    Stage::Extents | Stage::Begun => Stage::Blocks,
                    Stage::Blocks => break,
                };
                continue;
            };
            if !self.jobs.touch() {
                home.is_parted = true;
                return Some(home);
            }
            match home.stage {
                Stage::OnWay | Stage::Begun => self.watch_on_way(volume, found.start, zio, step),
                Stage::Extents => self.watch_extent(volume, found.start, zio, step),
                Stage::Blocks => self.watch(volume, found.start, zio, step),
            }
            home.at = found.end;
        }
        self.requests.one_less(zio, Ok(()));
        None
    }

    /// Writes the blocks of a durable write to the disks.
    pub(super) fn send_request_home(&mut self, id: ZioId, step: &mut Step<'_>) {
        let (volume, zio) = self.requests.begin(id, Phase::Writing, step.now);
        if self.volumes[volume].is_long(&zio) {
            let blocks = self.volumes[volume].blocks_of(&zio);
            self.send_range_home(id, volume, blocks, Stage::Blocks, step);
            return;
        }
        // An extra pending count keeps the request from ending before the writes of all its pieces have
        // begun.
        self.requests[id].pending += 1;
        for piece in self.volumes[volume].pieces(&zio) {
            if piece.is_run() {
                let run = piece.block..piece.end();
                self.send_range_home(id, volume, run, Stage::Extents, step);
            } else {
                self.watch(volume, piece.block, id, step);
            }
        }
        self.requests.one_less(id, Ok(()));
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
        self.requests[id].pending += 1;
        let blocks = (zio.op != Op::Flush).then(|| self.volumes[volume].blocks_of(&zio));
        for disk in 0..self.disks.len() {
            let (member, _) = self.map.side_of(disk);
            let has_part = |blocks: &Range<u32>| self.map.has_part(volume, blocks.clone(), member);
            if blocks.as_ref().is_none_or(has_part) {
                self.requests[id].pending += 1;
                self.sync_disk(disk, SyncFor::Request(id), step);
            }
        }
        self.requests.one_less(id, Ok(()));
    }
}
