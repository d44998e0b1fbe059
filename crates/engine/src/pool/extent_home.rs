//! The path of extents: from a client's zero or trim into the open txg, and then to the disks.
//!
//! The pool writes an extent with one zio for each disk. While an extent is on its way, newer versions of its
//! blocks wait, and so do newer extents that overlap it. An extent whose write failed counts as still on its
//! way, and the pool repeats the write.

use alloc::vec::Vec;
use core::ops::Range;

use super::block_io::{BlockWrite, Cause, Retry};
use super::extents::Extent;
use super::jobs::{Job, Landed};
use super::piece::Piece;
use super::pool::Pool;
use super::stats::Class;
use super::step::Step;
use super::volume::Volume;
use crate::zio::{Errno, Op, Outcome, VolumeId, Zio, ZioId};

/// Puts zeroes and trims into the open txg.
impl Pool {
    /// Takes a block out of its extent, because the block has a separate version now. A request that waits
    /// for the extent waits for the block, too.
    pub(super) fn carve(&mut self, volume: usize, block: u32, step: &mut Step<'_>) {
        let target = &mut self.volumes[volume];
        let size = u64::from(target.block_size);
        let Some(carved) = target.extents.carve(block) else {
            return;
        };
        match carved.left {
            0 => {
                self.throttle.retired(step.now, carved.txg, size);
                self.settled(carved.txg, step);
            }
            1 => {}
            _ => {
                self.throttle.dirtied(step.now, carved.txg, size);
                self.txgs.parted(carved.txg);
            }
        }
        for zio in carved.watchers {
            self.requests[zio].pending += carved.left;
            self.watch(volume, block, zio, step);
            self.requests.one_less(zio, Ok(()));
        }
        // The whole extent may have waited for an extent on its way. If that extent overlaps only one of the
        // parts, the other part no longer has to wait.
        self.send_waiting(volume, carved.range, step);
    }
}

/// Writes extents to the disks.
impl Pool {
    /// Writes an extent to the disks, unless another extent with one of its blocks is on its way.
    fn send_extent(&mut self, volume: usize, start: u32, class: Class, step: &mut Step<'_>) {
        if let Some(extent) = self.volumes[volume].extents.take(start) {
            let id = self.begin_extent(volume, start, extent, class);
            self.push_write(id, step);
        }
    }

    pub(super) fn begin_extent(
        &mut self,
        volume: usize,
        start: u32,
        extent: Extent,
        class: Class,
    ) -> u32 {
        let (count, cause) = (extent.end - start, Cause::Extent(extent.txg));
        let id = self.begin_write(volume, (start, count), extent.content, cause, class);
        self.volumes[volume].extents.sent(start, extent, id);
        id
    }

    /// Notes that one side has written a block, or failed to.
    pub(super) fn side_written(&mut self, id: u32, outcome: Outcome, step: &mut Step<'_>) {
        let physical = self.tunables.retires_physically();
        let write = &mut self.writes[id];
        write.failed |= outcome.is_err();
        write.left -= 1;
        let size = self.volumes[write.volume].block_size;
        if let (Cause::Dirty(txg) | Cause::Extent(txg), true, false) =
            (write.cause, physical, write.failed)
        {
            let share = size / write.sides;
            write.retired += share;
            self.throttle.retired(step.now, txg, u64::from(share));
        }
        if write.left == 0 {
            self.end_write(id, step);
        }
    }

    /// Ends a write that all sides have answered.
    pub(super) fn end_write(&mut self, id: u32, step: &mut Step<'_>) {
        if self.mirrors.is_some() {
            self.unmark_regions(id, step.now);
        }
        let write = &self.writes[id];
        if self.map.ended(write) {
            self.answer_zeroes(write.volume, write.blocks());
        }
        match self.writes[id].cause {
            Cause::Extent(txg) => self.extent_written(id, txg, step),
            _ => {
                let write = self.writes.remove(id);
                self.written(write, step);
            }
        }
    }

    /// Notes that all disks have answered the write of an extent.
    fn extent_written(&mut self, id: u32, txg: u64, step: &mut Step<'_>) {
        if self.writes[id].failed {
            self.extent_failed(id, txg, step);
            return;
        }
        let BlockWrite {
            volume,
            block,
            retired,
            ..
        } = self.writes[id];
        let target = &mut self.volumes[volume];
        let rest = u64::from(target.block_size - retired);
        let watchers = target
            .extents
            .on_way(block)
            .map(|extent| core::mem::take(&mut extent.watchers));
        self.throttle.retired(step.now, txg, rest);
        self.settled(txg, step);
        for zio in watchers.unwrap_or_default() {
            self.requests.one_less(zio, Ok(()));
        }
        let landed = Landed {
            write: id,
            at: block,
        };
        if self.jobs.begins(Job::Landed(landed), step.now) {
            let rest = self.send_some_behind(landed, step);
            self.jobs.waiting.extend(rest.map(Job::Landed));
        }
    }

    /// Sends some of the blocks that waited for an extent that is now on the disks. The rest of the extent
    /// still counts as on its way, because other blocks wait for their turn. Returns that rest.
    pub(super) fn send_some_behind(
        &mut self,
        landed: Landed,
        step: &mut Step<'_>,
    ) -> Option<Landed> {
        let BlockWrite {
            volume,
            block,
            count,
            content,
            ..
        } = self.writes[landed.write];
        let (end, mut at) = (block + count, landed.at);
        let edges = &mut self.volumes[volume].edges;
        for block in edges.of(at..end) {
            edges.let_go(block, content, step);
        }
        while let Some(waiting) = self.volumes[volume].blocks.next_used(at..end) {
            if !self.jobs.touch() {
                self.volumes[volume].extents.shrink(landed.at, at);
                return Some(Landed { at, ..landed });
            }
            self.answer_watchers(volume, waiting);
            self.after_write(volume, waiting, step);
            at = waiting + 1;
        }
        self.writes.remove(landed.write);
        let extent = self.volumes[volume].extents.home(landed.at)?;
        for zio in extent.watchers {
            self.requests.one_less(zio, Ok(()));
        }
        self.send_waiting(volume, block..end, step);
        if extent.failing {
            self.volumes[volume].failing -= 1;
            self.failures.repeated();
        }
        None
    }

    /// Of the extents in memory that overlap a range, sends those that a request or the syncing txg waits
    /// for. An extent stays in memory while an extent on its way must reach the disks before it.
    fn send_waiting(&mut self, volume: usize, range: Range<u32>, step: &mut Step<'_>) {
        let waiting = self.volumes[volume].extents.meeting(range);
        for start in waiting.collect::<Vec<u32>>() {
            let Some(extent) = self.volumes[volume].extents.get_mut(start) else {
                continue;
            };
            if !extent.watchers.is_empty() {
                self.send_extent(volume, start, Class::SyncWrite, step);
            } else if self.txgs.syncing() == Some(extent.txg) {
                self.send_extent(volume, start, Class::AsyncWrite, step);
            }
        }
    }

    /// Notes that the write of an extent has failed. The extent stays on its way, and the pool will write
    /// it again. Notifies the requests that wait for the extent, or for newer data that must follow it.
    fn extent_failed(&mut self, id: u32, txg: u64, step: &mut Step<'_>) {
        let write = &mut self.writes[id];
        let retired = core::mem::take(&mut write.retired);
        let (volume, start, end) = (write.volume, write.block, write.block + write.count);
        self.throttle.dirty_again(txg, retired);
        let target = &mut self.volumes[volume];
        let extent = target.extents.on_way(start);
        let had_failed = extent.is_none_or(|extent| core::mem::replace(&mut extent.failing, true));
        target.failing += u32::from(!had_failed);
        let retry = Retry::Extent(id);
        self.failures.failed(retry, had_failed, step.now);
        for zio in self.volumes[volume].take_watchers(start, end) {
            self.requests.one_less(zio, Err(Errno::Io));
        }
        self.fail_if_asked(step);
    }

    pub(super) fn repeat_extent(&mut self, id: u32, step: &mut Step<'_>) {
        let write = &mut self.writes[id];
        (write.left, write.failed) = (write.sides, false);
        self.push_write(id, step);
    }
}

/// Makes requests wait until extents are on the disks.
impl Pool {
    /// Makes a request wait until an extent in memory has been written to the disks.
    pub(super) fn watch_extent(
        &mut self,
        volume: usize,
        start: u32,
        zio: ZioId,
        step: &mut Step<'_>,
    ) {
        if let Some(extent) = self.volumes[volume].extents.get_mut(start) {
            extent.watchers.push(zio);
            self.requests[zio].pending += 1;
            self.send_extent(volume, start, Class::SyncWrite, step);
        }
    }

    /// Makes a request wait until an extent on its way is on the disks, unless the request already waits for
    /// it.
    pub(super) fn watch_on_way(
        &mut self,
        volume: usize,
        start: u32,
        zio: ZioId,
        step: &mut Step<'_>,
    ) {
        if let Some(extent) = self.volumes[volume].extents.on_way(start)
            && !extent.watchers.contains(&zio)
        {
            extent.watchers.push(zio);
            let write = extent.write;
            self.requests[zio].pending += 1;
            self.hasten(write, step);
        }
    }
}

impl Volume {
    /// Takes the requests that wait for an extent on its way, or for newer data in memory that must follow
    /// it.
    fn take_watchers(&mut self, start: u32, end: u32) -> Vec<ZioId> {
        let on_way = self.extents.on_way(start);
        let mut zios = on_way.map_or_else(Default::default, |extent| {
            core::mem::take(&mut extent.watchers)
        });
        for behind in self.extents.meeting(start..end).collect::<Vec<u32>>() {
            let extent = self.extents.get_mut(behind);
            zios.extend(
                extent
                    .into_iter()
                    .flat_map(|extent| extent.watchers.drain(..)),
            );
        }
        let watched: Vec<u32> = self.watchers.watched(start..end).collect();
        for block in watched {
            self.blocks.edit(block, |block| block.watched = false);
            zios.extend(core::iter::from_fn(|| self.watchers.take(block)));
        }
        zios
    }

    /// The largest number of bytes that a write, zero or trim can make dirty.
    pub(super) fn most_dirty(&self, zio: &Zio<VolumeId>) -> u64 {
        let size = u64::from(self.block_size);
        if zio.op == Op::Write {
            let blocks = self.blocks_of(zio);
            // A write within an extent splits the extent in two.
            let parts = u64::from(self.extents.has_dirty());
            return (u64::from(blocks.end - blocks.start) + parts) * size;
        }
        let pieces = self.pieces(zio);
        pieces.map(|piece| self.most_dirty_of(piece)).sum()
    }

    /// The largest number of bytes that a piece of a zero or trim can make dirty.
    pub(super) fn most_dirty_of(&self, piece: Piece) -> u64 {
        let range = piece.block..piece.end();
        let meets = self.extents.meeting(range.clone()).count();
        let blocks = if piece.is_run() {
            // A block that is being written to the disks gets a separate version, and splits the extent.
            1 + meets + 2 * self.blocks.count(range)
        } else {
            // A block in the middle of an extent splits the extent in two.
            1 + meets
        };
        blocks as u64 * u64::from(self.block_size)
    }
}
