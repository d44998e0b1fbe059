//! The path of a client's write, zero or trim: lock its blocks, read the rest of partial blocks, pass the
//! throttle, become dirty, reply.
//!
//! The steps come in the same order as in OpenZFS's zvol. A write takes the range lock before its transaction
//! begins. Then the write reads the rest of partial blocks, so the time of these reads counts towards the
//! write's delay.

use super::block_io::{Cause, Then};
use super::blocks::{Block, Content};
use super::config::WritePolicy;
use super::edges::Need;
use super::jobs::Job;
use super::piece::Piece;
use super::pool::Pool;
use super::request::{Phase, Request};
use super::stats::Class;
use super::step::Step;
use super::throttle::{Tx, Verdict};
use super::volume::slot_of;
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

    /// Resumes the next write that the throttle has released, or that is next for a lock. False if there is
    /// none.
    pub(super) fn resume_next(&mut self, step: &mut Step<'_>) -> bool {
        if let Some(id) = self.throttle.pop_admitted(step.now) {
            self.admitted(id, step);
        } else if let Some(id) = self.unlocked.pop_front() {
            self.lock_and_fill(id, true, step);
        } else {
            return false;
        }
        true
    }

    fn lock_and_fill(&mut self, id: ZioId, has_turn: bool, step: &mut Step<'_>) {
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
    pub(super) fn fill(&mut self, id: ZioId, step: &mut Step<'_>) {
        let (volume, zio) = self.begin(id, Phase::Reading, step.now);
        if self.volumes[volume].are_whole(&zio) {
            self.filled(id, step);
            return;
        }
        // An extra pending count keeps the request from continuing before all of its reads have begun.
        self.add_pending(id, 1);
        for block in self.edges_of(id) {
            self.need_edge(id, volume, block, step);
        }
        self.requests[id].has_edges = true;
        self.one_less(id, Ok(()), step);
    }

    fn need_edge(&mut self, id: ZioId, volume: usize, block: u32, step: &mut Step<'_>) {
        let target = &mut self.volumes[volume];
        let in_memory = target.content(block, self.txgs.open()).is_some();
        match target.edges.need(block, id, in_memory) {
            Need::Nothing => {}
            Need::Wait => self.add_pending(id, 1),
            Need::Read => {
                if !self.read_block(id, volume, block, Then::Edge, step) {
                    self.volumes[volume].edges.zero(block, step);
                }
            }
        }
    }

    /// Notes that a request no longer needs its edges.
    pub(super) fn release_edges(&mut self, id: ZioId, step: &mut Step<'_>) {
        let request = &mut self.requests[id];
        if !core::mem::take(&mut request.has_edges) {
            return;
        }
        let volume = request.volume;
        for block in self.edges_of(id) {
            self.volumes[volume].edges.release(block, step);
        }
    }

    /// The first and the last block of a write, each only if the write does not replace the whole block.
    fn edges_of(&self, id: ZioId) -> impl Iterator<Item = u32> + use<> {
        let request = &self.requests[id];
        let (zio, size) = (&request.zio, self.volumes[request.volume].block_size);
        let size = u64::from(size);
        let (first, end) = (zio.offset / size, zio.offset + u64::from(zio.length));
        let last = (end - 1) / size;
        let cut = zio.op != Op::Trim;
        let begins_within = cut && !zio.offset.is_multiple_of(size);
        let ends_within = cut && !end.is_multiple_of(size);
        let first_cut = begins_within || (first == last && ends_within);
        let edges = [
            first_cut.then_some(first as u32),
            (ends_within && first != last).then_some(last as u32),
        ];
        edges.into_iter().flatten()
    }
}

/// Handles volumes that write back: the pool acknowledges a write once its data is dirty.
impl Pool {
    /// Asks the throttle to admit a write.
    pub(super) fn ask(&mut self, id: ZioId, step: &mut Step<'_>) {
        if let Some(errno) = self.closing {
            self.finish(id, Err(errno), step);
            return;
        }
        if self.is_degraded() {
            self.lock_at_once(id);
            self.stall(id, step);
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

    /// Continues a write when all of its data is dirty.
    pub(super) fn all_dirty(&mut self, id: ZioId, step: &mut Step<'_>) {
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

    /// Makes the open txg sync if it has enough dirty data.
    pub(super) fn sync_if_full(&mut self) {
        if self.throttle.wants_sync(self.txgs.open()) {
            self.txgs.want_sync();
        }
    }

    /// Gives a block a new version, changed by this part of a write, zero or trim.
    pub(super) fn dirty(
        &mut self,
        volume: usize,
        zio: &Zio<VolumeId>,
        piece: Piece,
        step: &mut Step<'_>,
    ) {
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
    pub(super) fn make_newest(
        &mut self,
        volume: usize,
        block: u32,
        content: Content,
        step: &mut Step<'_>,
    ) {
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
        let (volume, zio) = self.begin(id, Phase::Writing, step.now);
        // An extra pending count keeps the request from ending before the writes of all its blocks have
        // begun.
        self.add_pending(id, 1);
        let whole = Job::Through { zio: id, from: 0 };
        if self.volumes[volume].is_long(&zio) {
            self.begin_job(whole, step);
        } else {
            self.write_all_through(id, step);
        }
    }

    fn write_all_through(&mut self, id: ZioId, step: &mut Step<'_>) {
        let rest = self.write_some_through(id, 0, step);
        debug_assert!(rest.is_none(), "a short write has a rest");
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
            self.add_pending(id, 1);
            let cause = Cause::Through(id);
            let blocks = (piece.block, piece.count);
            self.send(volume, blocks, content, cause, Class::SyncWrite, step);
        }
        self.one_less(id, Ok(()), step);
        None
    }
}

impl Request {
    /// Whether the zio must be durable before its reply.
    pub(super) fn is_durable(&self) -> bool {
        self.zio.fua || self.zio.op == Op::Flush
    }
}
