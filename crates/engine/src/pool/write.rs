//! The path of a client's write, zero or trim: lock its blocks, read the rest of partial blocks, pass the
//! throttle, become dirty, reply.
//!
//! The steps come in the same order as in OpenZFS's zvol. A write takes the range lock before its transaction
//! begins. Then the write reads the rest of partial blocks, so the time of these reads counts towards the
//! write's delay.

use alloc::vec::Vec;
use core::ops::Range;

use super::block_io::{Cause, Then};
use super::blocks::{Block, Content};
use super::config::WritePolicy;
use super::edges::Need;
use super::jobs::{Job, TOUCHED_MAX};
use super::piece::Piece;
use super::pool::Pool;
use super::request::{Phase, Request};
use super::stats::Class;
use super::step::Step;
use super::throttle::{Tx, Verdict};
use super::volume::{LIVE_TXGS, Volume, slot_of};
use crate::bytes::{Buf, Move, Span};
use crate::zio::{Errno, Op, VolumeId, Zio, ZioId};

/// Begins writes.
impl Pool {
    pub(super) fn write(&mut self, id: ZioId, step: &mut Step<'_>) {
        let request = &mut self.requests[id];
        if request.zio.length == 0 {
            self.finish(id, Err(Errno::Inval), step);
            return;
        }
        let (zio, volume) = (&request.zio, &self.volumes[request.volume]);
        if volume.takes_at_once(zio) {
            self.ask(id, step);
            return;
        }
        let first = (zio.offset / u64::from(volume.block_size)) as u32;
        request.go_to(Phase::Locking(first), step.now);
        self.lock_and_fill(id, false, step);
    }

    pub(super) fn lock_and_fill(&mut self, id: ZioId, has_turn: bool, step: &mut Step<'_>) {
        if self.lock(id, has_turn, step.now) {
            self.fill(id, step);
        }
    }

    /// Resumes a write once everything that it needs is in memory.
    pub(super) fn filled(&mut self, id: ZioId, step: &mut Step<'_>) {
        let request = &self.requests[id];
        if request.aborted {
            self.finish(id, Ok(()), step);
            return;
        }
        match self.volumes[request.volume].write {
            WritePolicy::Through => self.write_through(id, step),
            WritePolicy::Back => self.ask(id, step),
        }
    }
}

/// Gets the old content of blocks that writes replace only in part.
impl Pool {
    /// Reads the parts of blocks that a write does not replace, unless memory has them.
    fn fill(&mut self, id: ZioId, step: &mut Step<'_>) {
        let (volume, zio) = self.requests.begin(id, Phase::Reading, step.now);
        if self.volumes[volume].are_whole(&zio) {
            self.filled(id, step);
            return;
        }
        // An extra pending count keeps the request from continuing before all of its reads have begun.
        self.requests[id].pending += 1;
        for block in self.edges_of(id) {
            self.need_edge(id, volume, block, step);
        }
        self.requests[id].has_edges = true;
        self.requests.one_less(id, Ok(()));
    }

    fn need_edge(&mut self, id: ZioId, volume: usize, block: u32, step: &mut Step<'_>) {
        let target = &mut self.volumes[volume];
        let in_memory = target.content(block, self.txgs.open()).is_some();
        match target.edges.need(block, id, in_memory) {
            Need::Nothing => {}
            Need::Wait => self.requests[id].pending += 1,
            Need::Read => {
                if !self.read_block(id, volume, block, Then::Edge, step) {
                    self.volumes[volume].edges.zero(block, step);
                }
            }
        }
    }
}

/// Handles volumes that write back: the pool acknowledges a write once its data is dirty.
impl Pool {
    /// Asks the throttle to admit a write.
    pub(super) fn ask(&mut self, id: ZioId, step: &mut Step<'_>) {
        let fails = self.fails_writes().then_some(Errno::Io);
        if let Some(errno) = self.closing.or(fails) {
            self.finish(id, Err(errno), step);
            return;
        }
        if self.failures.is_degraded() {
            self.lock_at_once(id);
            self.requests.begin(id, Phase::Stalled, step.now);
            self.failures.stall(id);
            return;
        }
        let request = &mut self.requests[id];
        request.go_to(Phase::Throttled, step.now);
        let tx = Tx {
            zio: id,
            started: request.began,
            bytes: self.volumes[request.volume].most_dirty(&request.zio),
        };
        match self.throttle.ask(step.now, tx) {
            Verdict::Admitted => self.admitted(id, step),
            Verdict::Waits => self.lock_at_once(id),
        }
    }

    /// Makes an admitted write join the open txg.
    pub(super) fn admitted(&mut self, id: ZioId, step: &mut Step<'_>) {
        let request = &mut self.requests[id];
        request.admitted = step.now;
        let (volume, zio) = (request.volume, request.zio);
        if matches!(zio.op, Op::Zero | Op::Trim) || self.volumes[volume].is_long(&zio) {
            self.dirty_in_parts(id, step);
            return;
        }
        for piece in self.volumes[volume].pieces(&zio) {
            self.dirty(volume, &zio, piece, step);
        }
        self.all_dirty(id, step);
    }

    /// Makes the blocks of an admitted write, zero or trim dirty, in several steps if there are many. The
    /// request holds its locks until the last step.
    fn dirty_in_parts(&mut self, id: ZioId, step: &mut Step<'_>) {
        let part = |from| Job::Dirty { zio: id, from };
        let mut from = 0;
        if self.jobs.begins(part(from), step.now) {
            let Some(rest) = self.dirty_some(id, from, step) else {
                return;
            };
            from = rest;
            self.jobs.waiting.push_back(part(from));
        }
        self.lock_at_once(id);
        let (_, zio) = self.requests.begin(id, Phase::Writing, step.now);
        if zio.op == Op::Write {
            self.throttle.comes(u64::from(zio.length - from));
        }
    }

    pub(super) fn dirty_some(&mut self, id: ZioId, begin: u32, step: &mut Step<'_>) -> Option<u32> {
        let request = &self.requests[id];
        let (volume, zio) = (request.volume, request.zio);
        // The first part of a write has told the throttle about the rest. Only the later parts find the write
        // in this phase.
        let is_known = zio.op == Op::Write && request.phase == Phase::Writing;
        let mut from = begin;
        while from < zio.length {
            if !self.jobs.touch() {
                self.sync_if_full();
                return Some(from);
            }
            let target = &self.volumes[volume];
            let most = TOUCHED_MAX - self.jobs.touched;
            let piece = target.pieces_from(&zio, from).next()?;
            let (piece, touched) = target.first_part(piece, most);
            self.jobs.touched += touched;
            self.throttle.promise(target.most_dirty_of(piece));
            if is_known {
                self.throttle.came(u64::from(piece.length));
            }
            let content = match zio.op {
                Op::Zero => Content::Zero,
                _ => Content::Trim,
            };
            if piece.is_run() {
                self.dirty_run(volume, piece, content, begin > 0 && from == begin, step);
            } else {
                self.dirty(volume, &zio, piece, step);
            }
            from += piece.length;
        }
        self.all_dirty(id, step);
        None
    }

    /// Continues a write when all of its data is dirty.
    fn all_dirty(&mut self, id: ZioId, step: &mut Step<'_>) {
        self.release_edges(id, step);
        self.sync_if_full();
        let request = &self.requests[id];
        if request.is_durable() && request.outcome.is_ok() {
            self.unlock(id);
            self.send_request_home(id, step);
        } else {
            self.finish(id, request.outcome, step);
        }
    }

    /// Gives a run of blocks the content of a zero or a trim, in the open txg. `goes_on` is true if this is
    /// not the first part of the run.
    fn dirty_run(
        &mut self,
        volume: usize,
        piece: Piece,
        content: Content,
        goes_on: bool,
        step: &mut Step<'_>,
    ) {
        let used = self.volumes[volume].blocks.used(piece.block..piece.end());
        let mut from = piece.block;
        for block in used.collect::<Vec<u32>>() {
            if self.drop_versions(volume, block, step) {
                continue;
            }
            let joins = goes_on && from == piece.block;
            self.fill_run(volume, from..block, content, joins, step);
            self.make_newest(volume, block, content, step);
            from = block + 1;
        }
        let joins = goes_on && from == piece.block;
        self.fill_run(volume, from..piece.end(), content, joins, step);
    }

    /// Fills a range with extents. If the range `joins` the range before it, their extents become one.
    fn fill_run(
        &mut self,
        volume: usize,
        mut range: Range<u32>,
        content: Content,
        joins: bool,
        step: &Step<'_>,
    ) {
        let open = self.txgs.open();
        let target = &mut self.volumes[volume];
        if joins {
            range = target.extents.grow(range, content, open);
        }
        if range.is_empty() {
            return;
        }
        let added = target.extents.fill(range, content, open);
        let bytes = u64::from(added) * u64::from(target.block_size);
        for _ in 0..added {
            self.txgs.dirtied();
        }
        self.throttle.dirtied(step.now, open, bytes);
    }

    /// Drops the versions of a block that an extent replaces. Returns false if the block must keep its
    /// versions, because the block is on its way to the disks, or because a request waits until the block is
    /// on the disks.
    fn drop_versions(&mut self, volume: usize, block: u32, step: &mut Step<'_>) -> bool {
        let state = self.volumes[volume].blocks.get(block);
        let stays = state.write().is_some() || state.watched || state.failing;
        if stays || self.jobs.will_send(volume, block) {
            return false;
        }
        let open = self.txgs.open();
        for txg in open + 1 - LIVE_TXGS..=open {
            self.drop_version(volume, block, txg, step);
        }
        true
    }

    /// Gives a block a new version, changed by this part of a write, zero or trim.
    fn dirty(&mut self, volume: usize, zio: &Zio<VolumeId>, piece: Piece, step: &mut Step<'_>) {
        let size = self.volumes[volume].block_size;
        let whole = piece.is_whole(size);
        let content = match zio.op {
            Op::Zero if whole => Content::Zero,
            Op::Trim if whole => Content::Trim,
            Op::Trim => {
                // A trim of part of a block changes nothing, but the call can release a waiting writer.
                self.throttle.dirtied(step.now, self.txgs.open(), 0);
                return;
            }
            _ => Content::Bytes(self.new_bytes(volume, zio, piece, step)),
        };
        self.make_newest(volume, piece.block, content, step);
    }

    /// Makes `content` the newest version of a block.
    fn make_newest(&mut self, volume: usize, block: u32, content: Content, step: &mut Step<'_>) {
        let before = self.put_version(volume, block, content);
        let size = self.volumes[volume].block_size;
        let added = if before.is_none() { size } else { 0 };
        let open = self.txgs.open();
        self.throttle.dirtied(step.now, open, u64::from(added));
        if before.is_none() {
            self.dirty_above(volume, block, step);
        }
        if let Some(before) = before.filter(|before| *before != content) {
            self.discard(volume, block, before, step);
        }
        if self.volumes[volume].extents.has_dirty() {
            self.carve(volume, block, step);
        }
    }

    /// Makes `content` the version of a block in the open txg. Returns the version that it replaces.
    pub(super) fn put_version(
        &mut self,
        volume: usize,
        block: u32,
        content: Content,
    ) -> Option<Content> {
        let slot = slot_of(self.txgs.open());
        let volume = &mut self.volumes[volume];
        let set = |block: &mut Block| block.set_version(slot, Some(content));
        let before = volume.blocks.edit(block, set);
        if before.is_none() {
            self.txgs.dirtied();
        }
        before
    }

    /// Returns a buffer with the newest bytes of a block, including those of this write.
    fn new_bytes(
        &mut self,
        volume: usize,
        zio: &Zio<VolumeId>,
        piece: Piece,
        step: &mut Step<'_>,
    ) -> Buf {
        let size = self.volumes[volume].block_size;
        let buf = if piece.is_whole(size) {
            self.own_buffer(volume, piece.block)
                .unwrap_or_else(|| step.buffers.allocate(size))
        } else {
            self.buffer_to_change(volume, piece.block, step)
        };
        let to = Span {
            buf,
            at: piece.at,
            length: piece.length,
        };
        step.move_bytes(match zio.op {
            Op::Zero => Move::Zero(to),
            _ => Move::CopyIn {
                zio: zio.id,
                from: piece.from,
                to,
            },
        });
        buf
    }

    /// The buffer of a block's version in the open txg. `None` if there is none, or if the buffer must not be
    /// modified because a disk works on it.
    fn own_buffer(&self, volume: usize, block: u32) -> Option<Buf> {
        if self.volumes[volume].write == WritePolicy::Through {
            return None;
        }
        let block = self.volumes[volume].blocks.get(block);
        let own = block.version(slot_of(self.txgs.open()))?.buf()?;
        let written = block.write().and_then(|id| self.writes[id].content.buf());
        (written != Some(own)).then_some(own)
    }

    /// Returns a buffer with the current content of a block, for the open txg to modify.
    fn buffer_to_change(&mut self, volume: usize, block: u32, step: &mut Step<'_>) -> Buf {
        if let Some(own) = self.own_buffer(volume, block) {
            return own;
        }
        match self.volumes[volume].content(block, self.txgs.open()) {
            None => {
                let size = self.volumes[volume].block_size;
                let edge = self.volumes[volume].edges.take(block, step);
                edge.unwrap_or_else(|| step.buffers.allocate(size))
            }
            Some(content) => copy_of(content, self.volumes[volume].block_size, step),
        }
    }

    /// Frees a replaced version. If the version is on its way to a disk, it is freed when that write ends.
    fn discard(&mut self, volume: usize, block: u32, before: Content, step: &mut Step<'_>) {
        let under_way = self.volumes[volume].blocks.get(block).write();
        let of_before = |id: &u32| {
            let cause = Cause::Dirty(self.txgs.open());
            let write = &self.writes[*id];
            write.cause == cause && write.content == before
        };
        match under_way.filter(of_before) {
            Some(id) => self.replace_in_flight(id),
            None => step.free_content(before),
        }
    }
}

/// Allocates a buffer with the content of a version.
fn copy_of(content: Content, block_size: u32, step: &mut Step<'_>) -> Buf {
    let buf = step.buffers.allocate(block_size);
    step.move_bytes(match content {
        Content::Bytes(from) => Move::Clone { from, to: buf },
        Content::Zero | Content::Trim => Move::Zero(Span {
            buf,
            at: 0,
            length: block_size,
        }),
    });
    buf
}

/// Handles volumes that write through: the pool acknowledges a write once its data is on the disks.
impl Pool {
    fn write_through(&mut self, id: ZioId, step: &mut Step<'_>) {
        let (volume, zio) = self.requests.begin(id, Phase::Writing, step.now);
        // An extra pending count keeps the request from ending before the writes of all its blocks have
        // begun.
        self.requests[id].pending += 1;
        let whole = Job::Through { zio: id, from: 0 };
        if !self.volumes[volume].is_long(&zio) || self.jobs.begins(whole, step.now) {
            let rest = self.write_some_through(id, 0, step);
            self.jobs.waiting.extend(rest);
        }
    }

    /// Sends blocks of a write to the disks, from this byte of the write on. Returns the rest of a long
    /// write, if there is one.
    pub(super) fn write_some_through(
        &mut self,
        id: ZioId,
        from: u32,
        step: &mut Step<'_>,
    ) -> Option<Job> {
        let request = &self.requests[id];
        let (volume, zio) = (request.volume, request.zio);
        let (size, is_long) = {
            let volume = &self.volumes[volume];
            (volume.block_size, volume.is_long(&zio))
        };
        let trims = |piece: &Piece| zio.op != Op::Trim || piece.is_whole(size);
        for piece in self.volumes[volume].pieces_from(&zio, from).filter(trims) {
            if is_long && !self.jobs.touch() {
                let from = piece.from;
                return Some(Job::Through { zio: id, from });
            }
            let content = match zio.op {
                Op::Zero if piece.is_whole(size) => Content::Zero,
                Op::Trim => Content::Trim,
                _ => Content::Bytes(self.new_bytes(volume, &zio, piece, step)),
            };
            self.requests[id].pending += 1;
            let cause = Cause::Through(id);
            let blocks = (piece.block, piece.count);
            self.send(volume, blocks, content, cause, Class::SyncWrite, step);
        }
        self.requests.one_less(id, Ok(()));
        None
    }
}

impl Volume {
    /// The first part of a piece. A part of a run touches at most `most` blocks and at most `most` extents.
    /// Also returns how many blocks and extents the part touches.
    fn first_part(&self, piece: Piece, most: u32) -> (Piece, u32) {
        if !piece.is_run() {
            return (piece, 0);
        }
        let (range, most) = (piece.block..piece.end(), most.max(1) as usize);
        let block = self.blocks.used(range.clone()).nth(most);
        let extent = self.extents.meeting(range).nth(most);
        let ends = [block, extent, Some(piece.end())];
        let end = ends.into_iter().flatten().min().unwrap_or(piece.end());
        let count = end - piece.block;
        let part = Piece {
            count,
            length: count * self.block_size,
            ..piece
        };
        let range = part.block..end;
        let blocks = self.blocks.used(range.clone()).count();
        (part, (blocks + self.extents.meeting(range).count()) as u32)
    }
}

impl Request {
    /// Whether the zio must be durable before its reply.
    pub(super) fn is_durable(&self) -> bool {
        self.zio.fua || self.zio.op == Op::Flush
    }
}
