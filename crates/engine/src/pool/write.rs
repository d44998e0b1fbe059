//! A client's write, zero or trim: lock, fill, throttle, dirty, reply.
//!
//! The order is zvol's. A write takes the range lock before it gets a transaction. It also reads
//! the rest of partial blocks before that, so that this time counts as delay served.

use super::block_io::{Cause, Then};
use super::blocks::Content;
use super::config::WritePolicy;
use super::home::free_content;
use super::pool::Pool;
use super::request::{Phase, Request};
use super::stats::Class;
use super::step::Step;
use super::throttle::{Tx, Verdict};
use super::volume::{Piece, slot_of};
use crate::bytes::{Buf, Move, Span};
use crate::time::Instant;
use crate::zio::{Errno, Op, VolumeId, Zio, ZioId};

/// Locks.
impl Pool {
    pub(super) fn write(&mut self, id: ZioId, step: &mut Step<'_>) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
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
        self.lock(id, step);
    }

    /// Takes the locks of a write's blocks in their order, which prevents deadlocks. The write
    /// continues when it has all locks.
    pub(super) fn lock(&mut self, id: ZioId, step: &mut Step<'_>) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        let Phase::Locking(from) = request.phase else {
            return;
        };
        let volume = &mut self.volumes[request.volume];
        for piece in volume.pieces(&request.zio) {
            if piece.block < from {
                continue;
            }
            let block = volume.blocks.get_mut(piece.block);
            if block.locked {
                block.wanted = true;
                request.phase = Phase::Locking(piece.block);
                let queue = volume.lock_queues.entry(piece.block).or_default();
                queue.push_back(id);
                return;
            }
            block.locked = true;
        }
        request.locked = true;
        self.fill(id, step);
    }

    /// Gives back the locks that a request has.
    pub(super) fn unlock(&mut self, id: ZioId) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        let until = match request.phase {
            Phase::Locking(next) => next,
            _ if request.locked => u32::MAX,
            _ => return,
        };
        request.locked = false;
        let volume = &mut self.volumes[request.volume];
        for piece in volume.pieces(&request.zio) {
            if piece.block >= until {
                break;
            }
            let block = volume.blocks.get_mut(piece.block);
            block.locked = false;
            if !block.wanted {
                continue;
            }
            let queue = volume.lock_queues.entry(piece.block).or_default();
            self.unlocked.extend(queue.pop_front());
            if queue.is_empty() {
                block.wanted = false;
                volume.lock_queues.remove(&piece.block);
            }
        }
    }

    /// Takes a request out of the queue for a block's lock.
    pub(super) fn leave_lock_queue(&mut self, id: ZioId, block: u32) {
        let turns = self.unlocked.len();
        self.unlocked.retain(|other| *other != id);
        let had_its_turn = self.unlocked.len() < turns;
        let Some(request) = self.requests.get(id) else {
            return;
        };
        let volume = &mut self.volumes[request.volume];
        if let Some(queue) = volume.lock_queues.get_mut(&block) {
            queue.retain(|other| *other != id);
            // The lock is free. Without this, the next request would wait for ever.
            if had_its_turn {
                self.unlocked.extend(queue.pop_front());
            }
            if queue.is_empty() {
                volume.lock_queues.remove(&block);
                volume.blocks.get_mut(block).wanted = false;
            }
        }
    }

    pub(super) fn begin(
        &mut self,
        id: ZioId,
        phase: Phase,
        now: Instant,
    ) -> Option<(usize, Zio<VolumeId>)> {
        let request = self.requests.get_mut(id)?;
        request.go_to(phase, now);
        Some((request.volume, request.zio))
    }
}

/// The parts of blocks that a write does not replace.
impl Pool {
    fn fill(&mut self, id: ZioId, step: &mut Step<'_>) {
        let Some((volume, _)) = self.begin(id, Phase::Reading, step.now) else {
            return;
        };
        let mut reads = 0;
        for (edge, block) in self.edges(id) {
            if self.volumes[volume]
                .newest(block, self.txgs.open())
                .is_none()
            {
                self.read_block(id, volume, block, Then::Edge(edge), step);
                reads += 1;
            }
        }
        match reads {
            0 => self.filled(id, step),
            _ => self.keep_edges(id, step),
        }
    }

    /// Copies the bytes that a waiting write will need from dirty versions, which may go home and
    /// be freed before it resumes.
    fn keep_edges(&mut self, id: ZioId, step: &mut Step<'_>) {
        for (edge, block) in self.edges(id) {
            let Some(request) = self.requests.get_mut(id) else {
                return;
            };
            let newest = self.volumes[request.volume].newest(block, self.txgs.open());
            let (None, Some((_, content))) = (request.edges[edge], newest) else {
                continue;
            };
            let size = self.volumes[request.volume].block_size;
            request.edges[edge] = Some((block, copy_of(content, size, step)));
        }
    }

    /// The first and the last block of a write, if it replaces only a part of them.
    fn edges(&self, id: ZioId) -> impl Iterator<Item = (usize, u32)> + use<> {
        let edges = self.requests.get(id).map(|request| {
            let (zio, size) = (&request.zio, self.volumes[request.volume].block_size);
            let size = u64::from(size);
            let (first, end) = (zio.offset / size, zio.offset + u64::from(zio.length));
            let last = (end - 1) / size;
            let cut = zio.op != Op::Trim;
            let begins_within = cut && !zio.offset.is_multiple_of(size);
            let ends_within = cut && !end.is_multiple_of(size);
            let first_cut = begins_within || (first == last && ends_within);
            [
                first_cut.then_some((0, first as u32)),
                (ends_within && first != last).then_some((1, last as u32)),
            ]
        });
        edges.into_iter().flatten().flatten()
    }

    /// Resumes a write once all that it needs is in memory.
    pub(super) fn filled(&mut self, id: ZioId, step: &mut Step<'_>) {
        let Some(request) = self.requests.get(id) else {
            return;
        };
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

/// Write-back.
impl Pool {
    /// Asks the throttle.
    pub(super) fn ask(&mut self, id: ZioId, step: &mut Step<'_>) {
        if let Some(errno) = self.closing {
            self.finish(id, Err(errno), step);
            return;
        }
        if self.is_degraded() {
            self.wait(id, step);
            self.stall(id, step);
            return;
        }
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        request.go_to(Phase::Throttled, step.now);
        let size = u64::from(self.volumes[request.volume].block_size);
        let (first, end) = (
            request.zio.offset / size,
            request.zio.offset + u64::from(request.zio.length),
        );
        let tx = Tx {
            zio: id,
            started: request.submitted,
            bytes: (end.div_ceil(size) - first) * size,
        };
        match self.throttle.ask(step.now, tx) {
            Verdict::Admitted => self.admitted(id, step),
            Verdict::Waits => self.wait(id, step),
        }
    }

    /// Gives a waiting write the locks of its blocks, if it has none yet, and copies of the bytes that
    /// it does not replace.
    fn wait(&mut self, id: ZioId, step: &mut Step<'_>) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        if !request.locked {
            request.locked = true;
            let volume = &mut self.volumes[request.volume];
            for piece in volume.pieces(&request.zio) {
                volume.blocks.get_mut(piece.block).locked = true;
            }
        }
        self.keep_edges(id, step);
    }

    /// Makes an admitted write join the open txg.
    pub(super) fn admitted(&mut self, id: ZioId, step: &mut Step<'_>) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        request.admitted = step.now;
        let (volume, zio) = (request.volume, request.zio);
        for piece in self.volumes[volume].pieces(&zio) {
            self.dirty(volume, &zio, piece, step);
        }
        if self.throttle.wants_sync(self.txgs.open()) {
            self.txgs.want_sync();
        }
        if zio.fua {
            self.unlock(id);
            self.send_request_home(id, step);
        } else {
            self.finish(id, Ok(()), step);
        }
    }

    /// Makes a part of a write the newest version of its block.
    fn dirty(&mut self, volume: usize, zio: &Zio<VolumeId>, piece: Piece, step: &mut Step<'_>) {
        let size = self.volumes[volume].block_size;
        let whole = piece.is_whole(size);
        let content = match zio.op {
            Op::Zero if whole => Content::Zero,
            Op::Trim if whole => Content::Trim,
            Op::Trim => {
                // Report zero dirty bytes even so: the next writer waits for the signal.
                self.throttle.dirtied(step.now, self.txgs.open(), 0);
                return;
            }
            _ => Content::Bytes(self.new_bytes(volume, zio, piece, step)),
        };
        let before = self.put_version(volume, piece.block, content, step);
        let added = if before.is_none() { size } else { 0 };
        let open = self.txgs.open();
        self.throttle.dirtied(step.now, open, u64::from(added));
        if let Some(before) = before.filter(|before| *before != content) {
            self.discard(volume, piece.block, before, step);
        }
    }

    /// Makes this the version of a block in the open txg. Returns the version that it replaces.
    pub(super) fn put_version(
        &mut self,
        volume: usize,
        block: u32,
        content: Content,
        step: &Step<'_>,
    ) -> Option<Content> {
        let slot = slot_of(self.txgs.open());
        let volume = &mut self.volumes[volume];
        let before = volume
            .blocks
            .get_mut(block)
            .set_version(slot, Some(content));
        if before.is_none() {
            volume.dirtied[slot].push(block);
            self.txgs.dirtied(step.now, self.txg_timeout());
        }
        before
    }

    /// A buffer with the newest bytes of a block, including those of this write.
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
            self.buffer_to_change(volume, zio.id, piece.block, step)
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

    /// The buffer of a block's version in the open txg. `None` if a disk works on it, because such
    /// a buffer must not be modified.
    fn own_buffer(&self, volume: usize, block: u32) -> Option<Buf> {
        let block = self.volumes[volume].blocks.get(block);
        let own = block.version(slot_of(self.txgs.open()))?.buf()?;
        let written = block.write().and_then(|id| self.writes[id].content.buf());
        (written != Some(own)).then_some(own)
    }

    /// A buffer of the open txg with the current content of a block.
    fn buffer_to_change(
        &mut self,
        volume: usize,
        zio: ZioId,
        block: u32,
        step: &mut Step<'_>,
    ) -> Buf {
        if let Some(own) = self.own_buffer(volume, block) {
            return own;
        }
        let newest = self.volumes[volume].newest(block, self.txgs.open());
        match newest.map(|(_, content)| content) {
            None => {
                let request = self.requests.get_mut(zio);
                let edge = request.and_then(|request| request.take_edge(block));
                let size = self.volumes[volume].block_size;
                edge.unwrap_or_else(|| step.buffers.allocate(size))
            }
            Some(content) => copy_of(content, self.volumes[volume].block_size, step),
        }
    }

    /// Frees a replaced version. If it is on its way to a disk, the write frees it later.
    fn discard(&mut self, volume: usize, block: u32, before: Content, step: &mut Step<'_>) {
        let under_way = self.volumes[volume].blocks.get(block).write();
        let of_before = |id: &u32| {
            let cause = Cause::Dirty(self.txgs.open());
            let write = &self.writes[*id];
            write.cause == cause && write.content == before
        };
        match under_way.filter(of_before) {
            Some(id) => self.replace_in_flight(id),
            None => free_content(before, step),
        }
    }
}

/// A new buffer with the content of a version.
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

/// Write-through.
impl Pool {
    fn write_through(&mut self, id: ZioId, step: &mut Step<'_>) {
        let Some((volume, zio)) = self.begin(id, Phase::Writing, step.now) else {
            return;
        };
        let size = self.volumes[volume].block_size;
        let trims = |piece: &Piece| zio.op != Op::Trim || piece.is_whole(size);
        let pieces = self.volumes[volume].pieces(&zio).filter(trims);
        // Count one more than the blocks, so that the request cannot end before all have begun.
        self.add_pending(id, 1);
        for piece in pieces {
            let content = match zio.op {
                Op::Zero if piece.is_whole(size) => Content::Zero,
                Op::Trim => Content::Trim,
                _ => Content::Bytes(self.new_bytes(volume, &zio, piece, step)),
            };
            self.add_pending(id, 1);
            let cause = Cause::Through(id);
            self.send(volume, piece.block, content, cause, Class::SyncWrite, step);
        }
        self.one_less(id, Ok(()), step);
    }

    pub(super) fn add_pending(&mut self, id: ZioId, count: u32) {
        if let Some(request) = self.requests.get_mut(id) {
            request.pending += count;
        }
    }
}

impl Request {
    /// Whether it must be durable before its reply.
    pub(super) fn is_durable(&self) -> bool {
        self.zio.fua || self.zio.op == Op::Flush
    }
}
