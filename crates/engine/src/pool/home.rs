//! Writes blocks home, which means from memory to their places on the disks. At most one write of a block is
//! in flight at a time, and the pool writes a newer version only when the write of the older version has
//! ended.

use super::block_io::{BlockWrite, Cause, Retry};
use super::block_map::{Part, Parts};
use super::blocks::{Block, Content};
use super::pool::Pool;
use super::queue::{Queue, Queued};
use super::stats::Class;
use super::step::Step;
use super::tag::Tag;
use super::volume::{LIVE_TXGS, slot_of};
use super::watchers::Watcher;
use crate::bytes::Buf;
use crate::time::Instant;
use crate::zio::{Errno, Op, Outcome, ZioId};

/// Sends writes, and handles their completion.
impl Pool {
    /// Writes the newest version of a block to the disks, and drops older versions that are not in flight.
    /// Returns `false` if the block has no version.
    fn send_home(&mut self, volume: usize, block: u32, class: Class, step: &mut Step<'_>) -> bool {
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
        self.queue_write(id, step.now);
        for part in self.parts(id) {
            self.pump_member(part.member, step);
        }
    }

    /// Puts a write into the queues of its disks, unless a mirror makes the write wait.
    pub(super) fn queue_write(&mut self, id: u32, now: Instant) {
        self.put_in_queues(id, now, |queue, queued| queue.push(now, queued));
    }

    #[inline]
    pub(super) fn put_in_queues(
        &mut self,
        id: u32,
        now: Instant,
        put: impl Fn(&mut Queue, Queued),
    ) {
        if self.mirrors.is_some() && !self.mark_regions(id, now) {
            return;
        }
        self.parts(id).for_each(|part| {
            let queued = self.queued_write(id, part);
            for disk in self.map.sides(part.member) {
                put(&mut self.disks[*disk].queue, queued);
            }
        });
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
    fn mark_regions(&mut self, id: u32, now: Instant) -> bool {
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
    pub(super) fn unmark_regions(&mut self, id: u32, now: Instant) {
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
    fn parts(&self, id: u32) -> Parts {
        self.map.parts_of(&self.writes[id])
    }

    /// The I/O that each side's queue gets for a part of a write.
    fn queued_write(&self, id: u32, part: Part) -> Queued {
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

    pub(super) fn written(&mut self, write: BlockWrite, step: &mut Step<'_>) {
        let (volume, block) = (write.volume, write.block);
        if write.is_of_block() {
            let blocks = &mut self.volumes[volume].blocks;
            blocks.edit(block, |block| block.set_write(None));
        }
        match write.cause {
            Cause::Through(zio) => {
                step.free_content(write.content);
                let outcome = if write.failed { Err(Errno::Io) } else { Ok(()) };
                self.requests.one_less(zio, outcome);
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
            self.answer_watchers(volume, block);
            self.written.push_back((volume, block));
            self.block_works(volume, block);
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

    /// Sends the newer version of a block, now that a write of it has ended, if there is one that a request or the
    /// syncing txg waits for.
    pub(super) fn after_write(&mut self, volume: usize, block: u32, step: &mut Step<'_>) {
        // A request that has gone on since may have sent the block.
        let state = self.volumes[volume].blocks.get(block);
        if state.write().is_some() {
            return;
        }
        if state.watched {
            if self.send_home(volume, block, Class::SyncWrite, step) {
                return;
            }
            self.release_watchers(volume, block, Ok(()));
        }
        let state = self.volumes[volume].blocks.get(block);
        if let Some(txg) = self.txgs.syncing()
            && let Some(content) = state.version(slot_of(txg))
        {
            let cause = Cause::Dirty(txg);
            self.send(volume, (block, 1), content, cause, Class::AsyncWrite, step);
        }
    }

    /// Keeps a block dirty after its write has failed, and schedules another write.
    fn block_failed(&mut self, volume: usize, block: u32, step: &mut Step<'_>) {
        let target = &mut self.volumes[volume];
        let had_failed = target.blocks.edit(block, |block| block.set_failing(true));
        target.failing += u32::from(!had_failed);
        let retry = Retry::Block { volume, block };
        self.failures.failed(retry, had_failed, step.now);
        self.release_watchers(volume, block, Err(Errno::Io));
        self.fail_if_asked(step);
    }

    fn block_works(&mut self, volume: usize, block: u32) {
        let target = &mut self.volumes[volume];
        if !target.blocks.edit(block, |block| block.set_failing(false)) {
            return;
        }
        target.failing -= 1;
        self.failures.repeated();
    }

    pub(super) fn repeat_block(&mut self, volume: usize, block: u32, step: &mut Step<'_>) {
        let is_idle = self.volumes[volume].write_of(block).is_none();
        if is_idle && !self.send_home(volume, block, Class::AsyncWrite, step) {
            self.block_works(volume, block);
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
        let covers = under_way.is_some_and(|id| self.writes[id].cause == Cause::Dirty(txg));
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

    /// Notifies watchers that one write of their block has ended.
    pub(super) fn answer_watchers(&mut self, volume: usize, block: u32) {
        let target = &mut self.volumes[volume];
        if target.blocks.get(block).watched {
            let more = target.watchers.written(block);
            target.blocks.edit(block, |block| block.watched = more);
            while let Some(zio) = self.volumes[volume].watchers.take_home(block) {
                self.requests.one_less(zio, Ok(()));
            }
        }
    }

    fn release_watchers(&mut self, volume: usize, block: u32, outcome: Outcome) {
        let target = &mut self.volumes[volume];
        target.blocks.edit(block, |block| block.watched = false);
        while let Some(zio) = self.volumes[volume].watchers.take(block) {
            self.requests.one_less(zio, outcome);
        }
    }
}

/// Tells for whom an I/O goes to a disk, and with which bytes.
impl Pool {
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
                    Cause::Dirty(_) | Cause::Replaced => {
                        self.volumes[write.volume].watchers.first(write.block)
                    }
                }
            }
            Tag::Read(id) => Some(self.reads[id].zio),
            Tag::Repair | Tag::Beside(_) => None,
        }
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
