//! Writes blocks home, which means from memory to their places on the disks. At most one write of a block is
//! in flight at a time, and the pool writes a newer version only when the write of the older version has
//! ended.

use super::block_io::{BlockWrite, Cause};
use super::block_map::{Part, Parts};
use super::blocks::{Block, Content};
use super::pool::Pool;
use super::queue::Queued;
use super::stats::Class;
use super::step::{Child, Step, SyncFor, Work};
use super::tag::Tag;
use super::volume::{LIVE_TXGS, slot_of};
use super::watchers::Watcher;
use crate::bytes::Buf;
use crate::client::ClientId;
use crate::time::Instant;
use crate::zio::{DiskId, Errno, Op, Outcome, Zio, ZioId};

/// Sends writes, and handles their completion.
impl Pool {
    /// Writes the newest version of a block to the disks, and drops older versions that are not in flight.
    /// Returns `false` if the block has no version.
    pub(super) fn send_home(
        &mut self,
        volume: usize,
        block: u32,
        class: Class,
        step: &mut Step<'_>,
    ) -> bool {
        let open = self.txgs.open();
        let Some((txg, content)) = self.volumes[volume].newest(block, open) else {
            return false;
        };
        for older in open + 1 - LIVE_TXGS..txg {
            self.drop_version(volume, block, older, step);
        }
        let cause = Cause::Dirty(txg);
        self.send(volume, (block, 1), content, cause, class, step);
        true
    }

    /// Queues the write of a run of blocks on all sides of the members that have the blocks. `blocks` has the
    /// first block and the number of blocks.
    pub(super) fn send(
        &mut self,
        volume: usize,
        blocks: (u32, u32),
        content: Content,
        cause: Cause,
        class: Class,
        step: &mut Step<'_>,
    ) {
        let id = self.begin_write(volume, blocks, content, cause, class);
        self.push_write(id, step);
    }

    pub(super) fn push_write(&mut self, id: u32, step: &mut Step<'_>) {
        if !self.can_be_queued(id) {
            return;
        }
        self.queue_write(id, step);
        for part in self.parts(id) {
            self.pump_member(part.member, step);
        }
    }

    /// Puts a write into the queues of its disks, unless a mirror makes the write wait.
    pub(super) fn queue_write(&mut self, id: u32, step: &Step<'_>) {
        if self.mirrors.is_some() && !self.mark_regions(id, step.now) {
            return;
        }
        for part in self.parts(id) {
            let queued = self.queued_write(id, part);
            for disk in self.map.sides(part.member) {
                self.disks[*disk].queue.push(step.now, queued);
            }
        }
    }

    /// Whether a write can go into the queues of its disks now. If the write needs a place first, it waits
    /// for the place. A write of zeroes needs none: if no disk has any of its blocks, there is nothing to do.
    #[inline]
    pub(super) fn can_be_queued(&mut self, id: u32) -> bool {
        self.writes[id].sides > 0 || self.file(id)
    }

    /// Notes a write that cannot be queued now: the write waits for a place, or ends because it has nothing
    /// to do. Always returns false.
    #[inline(never)]
    fn file(&mut self, id: u32) -> bool {
        let write = &self.writes[id];
        if write.unplaced {
            self.unplaced.push(id, write.class);
        } else {
            self.unplaced.push_done(id);
        }
        false
    }

    /// Marks the regions of a write that is about to be queued. Returns false if the write has to wait for
    /// the repair or for the record. The pool then queues the write later.
    #[inline(never)]
    pub(super) fn mark_regions(&mut self, id: u32, now: Instant) -> bool {
        let Some(mirrors) = &mut self.mirrors else {
            return true;
        };
        let ranges = self.map.ranges_of(&self.writes[id]);
        let begins = mirrors.begin_write(ranges, now);
        if !begins {
            mirrors.held.push(id);
        }
        self.writes[id].held = !begins;
        begins
    }

    /// Notes that all sides have answered a write.
    #[inline(never)]
    fn unmark_regions(&mut self, id: u32, now: Instant) {
        let write = &self.writes[id];
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.end_write(self.map.ranges_of(write), write.failed, now);
        }
    }

    pub(super) fn begin_write(
        &mut self,
        volume: usize,
        (block, count): (u32, u32),
        content: Content,
        cause: Cause,
        class: Class,
    ) -> u32 {
        let mut write = BlockWrite {
            volume,
            block,
            count,
            content,
            cause,
            class,
            sides: 0,
            left: 0,
            failed: false,
            unplaced: false,
            held: false,
            retired: 0,
        };
        write.sides = self.map.sides_of(&write);
        write.left = write.sides;
        write.unplaced = write.sides == 0 && content.buf().is_some();
        let id = self.writes.insert(write);
        if write.is_of_block() {
            let blocks = &mut self.volumes[volume].blocks;
            blocks.edit(block, |block| block.set_write(Some(id)));
        }
        id
    }

    #[inline]
    pub(super) fn parts(&self, id: u32) -> Parts {
        self.map.parts_of(&self.writes[id])
    }

    /// The I/O that each side's queue gets for a part of a write.
    pub(super) fn queued_write(&self, id: u32, part: Part) -> Queued {
        let write = &self.writes[id];
        let (op, class) = match write.content {
            Content::Bytes(_) => (Op::Write, write.class),
            Content::Zero => (Op::Zero, write.class),
            Content::Trim => (Op::Trim, Class::Trim),
        };
        Queued {
            class,
            op,
            offset: part.offset,
            length: part.rows * self.volumes[write.volume].block_size,
            tag: Tag::Write(id).pack(),
            alone: false,
            beside: false,
        }
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

    fn written(&mut self, write: BlockWrite, step: &mut Step<'_>) {
        let (volume, block) = (write.volume, write.block);
        if write.is_of_block() {
            let blocks = &mut self.volumes[volume].blocks;
            blocks.edit(block, |block| block.set_write(None));
        }
        match write.cause {
            Cause::Through(zio) => {
                step.free_content(write.content);
                let outcome = if write.failed { Err(Errno::Io) } else { Ok(()) };
                self.one_less(zio, outcome, step);
                return;
            }
            // `extent_written` handles the end of an extent's write.
            Cause::Replaced | Cause::Extent(_) => step.free_content(write.content),
            Cause::Dirty(txg) if !write.failed => self.retire(&write, txg, step),
            // The whole block is dirty again, although some sides have written it, because other sides have
            // not.
            Cause::Dirty(txg) => self.throttle.dirty_again(txg, write.retired),
        }
        if write.failed {
            self.block_failed(volume, block, step);
        } else {
            // Answer the requests that waited for this write before `block_works` resumes stalled writes,
            // because a resumed write may itself begin to wait for the block.
            self.after_write(volume, block, step);
            self.block_works(volume, block, step);
        }
    }

    /// Retires a version that is on the disks now.
    fn retire(&mut self, write: &BlockWrite, txg: u64, step: &mut Step<'_>) {
        let volume = &mut self.volumes[write.volume];
        let drop = |block: &mut Block| block.set_version(slot_of(txg), None);
        volume.blocks.edit(write.block, drop);
        let rest = u64::from(volume.block_size - write.retired);
        volume.edges.let_go(write.block, write.content, step);
        self.throttle.retired(step.now, txg, rest);
        self.block_settled(write.volume, write.block, txg, step);
    }

    /// Notes that memory has a replacement for the version that is being written, so the block stays dirty.
    pub(super) fn replace_in_flight(&mut self, id: u32) {
        let write = &mut self.writes[id];
        let (cause, retired) = (write.cause, core::mem::take(&mut write.retired));
        write.cause = Cause::Replaced;
        if let Cause::Dirty(txg) = cause {
            self.throttle.dirty_again(txg, retired);
        }
    }

    /// Drops a version because a newer one is written in its place.
    pub(super) fn drop_version(
        &mut self,
        volume: usize,
        block: u32,
        txg: u64,
        step: &mut Step<'_>,
    ) {
        let target = &mut self.volumes[volume];
        let drop = |block: &mut Block| block.set_version(slot_of(txg), None);
        let Some(content) = target.blocks.edit(block, drop) else {
            return;
        };
        let size = u64::from(target.block_size);
        step.free_content(content);
        self.throttle.retired(step.now, txg, size);
        self.block_settled(volume, block, txg, step);
    }

    /// Resumes the requests that wait for a block, now that a write of it has ended.
    pub(super) fn after_write(&mut self, volume: usize, block: u32, step: &mut Step<'_>) {
        let watched = self.volumes[volume].blocks.get(block).watched;
        let more = watched && self.answer_watchers(volume, block, step);
        if more && self.send_home(volume, block, Class::SyncWrite, step) {
            return;
        }
        if more {
            self.release_watchers(volume, block, Ok(()), step);
        }
        let state = self.volumes[volume].blocks.get(block);
        if let Some(txg) = self.txgs.syncing()
            && let Some(content) = state.version(slot_of(txg))
        {
            let cause = Cause::Dirty(txg);
            self.send(volume, (block, 1), content, cause, Class::AsyncWrite, step);
        }
    }
}

/// Makes requests wait until blocks are on the disks.
impl Pool {
    /// Makes a request wait until a block's versions are on the disks.
    pub(super) fn watch(&mut self, volume: usize, block: u32, zio: ZioId, step: &mut Step<'_>) {
        let open = self.txgs.open();
        let Some((txg, _)) = self.volumes[volume].newest(block, open) else {
            return;
        };
        let target = &mut self.volumes[volume];
        target.blocks.edit(block, |block| block.watched = true);
        let under_way = target.write_of(block);
        let covers = under_way.is_some_and(|id| self.is_of(id, txg));
        let writes = if under_way.is_some() && !covers { 2 } else { 1 };
        let watchers = &mut self.volumes[volume].watchers;
        watchers.push(block, Watcher { zio, writes });
        let request = &mut self.requests[zio];
        request.pending += 1;
        match under_way {
            Some(id) => self.hasten(id, step),
            None => {
                self.send_home(volume, block, Class::SyncWrite, step);
            }
        }
    }

    fn is_of(&self, write: u32, txg: u64) -> bool {
        self.writes[write].cause == Cause::Dirty(txg)
    }

    /// Raises the class of a queued write that a request now waits for.
    pub(super) fn hasten(&mut self, id: u32, step: &mut Step<'_>) {
        if self.writes[id].unplaced {
            let before = core::mem::replace(&mut self.writes[id].class, Class::SyncWrite);
            if before != Class::SyncWrite {
                self.unplaced.push(id, Class::SyncWrite);
            }
            return;
        }
        if self.writes[id].held {
            self.writes[id].class = Class::SyncWrite;
            return;
        }
        for part in self.parts(id) {
            for disk in self.map.sides(part.member) {
                let queue = &mut self.disks[*disk].queue;
                queue.promote(Tag::Write(id).pack(), Class::SyncWrite);
            }
            self.pump_member(part.member, step);
        }
    }

    /// Notifies watchers that one write of their block has ended. Returns whether a watcher waits for another
    /// write.
    fn answer_watchers(&mut self, volume: usize, block: u32, step: &mut Step<'_>) -> bool {
        let target = &mut self.volumes[volume];
        let more = target.watchers.written(block);
        target.blocks.edit(block, |block| block.watched = more);
        while let Some(zio) = self.volumes[volume].watchers.take_home(block) {
            self.one_less(zio, Ok(()), step);
        }
        more
    }

    pub(super) fn release_watchers(
        &mut self,
        volume: usize,
        block: u32,
        outcome: Outcome,
        step: &mut Step<'_>,
    ) {
        let target = &mut self.volumes[volume];
        target.blocks.edit(block, |block| block.watched = false);
        while let Some(zio) = self.volumes[volume].watchers.take(block) {
            self.one_less(zio, outcome, step);
        }
    }
}

/// Sends I/O to disks.
impl Pool {
    /// Sends all disks, or all sides of a member, the I/O that the limits of their queues allow.
    pub(super) fn pump_all(&mut self, step: &mut Step<'_>) {
        (0..self.disks.len()).for_each(|disk| self.pump(disk, step));
    }

    pub(super) fn pump_member(&mut self, member: usize, step: &mut Step<'_>) {
        for side in 0..self.map.sides(member).len() {
            self.pump(self.map.sides(member)[side], step);
        }
    }

    /// Sends a disk all the I/O that the limits of its queue allow.
    pub(super) fn pump(&mut self, disk: usize, step: &mut Step<'_>) {
        let async_writes = self.throttle.max_async_writes();
        loop {
            let leaf = &mut self.disks[disk];
            let Some(picked) = leaf.queue.pick(step.now, &leaf.limits, async_writes) else {
                break;
            };
            let child = Child {
                pool: self.id,
                disk,
                work: Work::Picked(picked.id),
            };
            let first = leaf.queue.members(picked.id).next();
            let (arrived, device) = (first.map(|member| member.queued), leaf.disk.disk);
            let zio = Zio {
                offset: picked.offset,
                length: picked.length,
                arrived: arrived.unwrap_or(step.now),
                client: self.picked_for(disk, picked.id),
                ..child_zio(device, picked.op, step.now)
            };
            step.children.send(child, zio);
        }
    }

    /// Asks a disk to sync.
    pub(super) fn sync_disk(&mut self, disk: usize, who: SyncFor, step: &mut Step<'_>) {
        let child = Child {
            pool: self.id,
            disk,
            work: Work::Sync {
                who,
                covers: self.covers(disk),
            },
        };
        let client = match who {
            SyncFor::Request(id) => ClientId::of_volume(self.requests[id].volume),
            SyncFor::Txg | SyncFor::Repair => ClientId::POOL,
        };
        let zio = Zio {
            client,
            ..child_zio(self.disks[disk].disk.disk, Op::Flush, step.now)
        };
        step.children.send(child, zio);
    }

    /// The client's zio that caused the I/O with this tag, or that has waited longest for the I/O.
    pub(super) fn client_of(&self, tag: u32) -> Option<ZioId> {
        match Tag::unpack(tag) {
            Tag::Write(id) => {
                let write = &self.writes[id];
                match write.cause {
                    Cause::Through(zio) => Some(zio),
                    Cause::Extent(_) => {
                        let extents = &self.volumes[write.volume].extents;
                        extents.first_watcher(write.block)
                    }
                    Cause::Dirty(_) | Cause::Replaced => self.first_watcher(write),
                }
            }
            Tag::Read(id) => Some(self.reads[id].zio),
            Tag::Repair | Tag::Beside(_) => None,
        }
    }

    /// The request that has waited longest for a block to reach the disks.
    fn first_watcher(&self, write: &BlockWrite) -> Option<ZioId> {
        self.volumes[write.volume].watchers.first(write.block)
    }

    pub(super) fn buf_of(&self, tag: u32) -> Option<Buf> {
        match Tag::unpack(tag) {
            Tag::Write(id) => self.writes[id].content.buf(),
            Tag::Read(id) => Some(self.reads[id].buf),
            Tag::Repair => self.mirrors.as_ref().and_then(|mirrors| mirrors.buf()),
            Tag::Beside(_) => None,
        }
    }
}

/// A child zio without a volume and without a range. The zio gets its id when the pool sends it.
fn child_zio(disk: DiskId, op: Op, now: Instant) -> Zio {
    Zio {
        id: ZioId::FIRST_CHILD,
        device: disk,
        client: ClientId::POOL,
        op,
        fua: false,
        call: None,
        offset: 0,
        length: 0,
        arrived: now,
    }
}
