//! A client's read. Dirty blocks come from memory, and all others from the disks. A block that no disk has is
//! zeroes.

use core::ops::Range;

use super::block_io::{BlockRead, Then};
use super::blocks::Content;
use super::config::WritePolicy;
use super::jobs::Job;
use super::piece::Piece;
use super::pool::Pool;
use super::queue::Queued;
use super::request::Phase;
use super::stats::Class;
use super::step::Step;
use super::tag::Tag;
use crate::bytes::{Move, Span};
use crate::zio::{Errno, Op, Outcome, ZioId};

/// Handles clients' reads.
impl Pool {
    pub(super) fn read(&mut self, id: ZioId, step: &mut Step<'_>) {
        let (volume, zio) = self.requests.begin(id, Phase::Reading, step.now);
        if zio.length == 0 {
            self.finish(id, Err(Errno::Inval), step);
            return;
        }
        // An extra pending count keeps the request from ending before the reads of all its blocks have begun.
        self.requests[id].pending += 1;
        let whole = Job::Read { zio: id, from: 0 };
        if !self.volumes[volume].is_long(&zio) || self.jobs.begins(whole, step.now) {
            let rest = self.read_some(id, 0, step);
            self.jobs.waiting.extend(rest);
        }
    }

    /// Begins to read the blocks of a client's read, from the byte `from` of the zio on. Returns the rest of
    /// a long read, if there is one.
    pub(super) fn read_some(&mut self, id: ZioId, from: u32, step: &mut Step<'_>) -> Option<Job> {
        let request = &self.requests[id];
        let (volume, zio) = (request.volume, request.zio);
        let is_long = self.volumes[volume].is_long(&zio);
        for piece in self.volumes[volume].pieces_from(&zio, from) {
            if is_long && !self.jobs.touch() {
                let from = piece.from;
                return Some(Job::Read { zio: id, from });
            }
            self.read_part(id, volume, piece, step);
        }
        self.requests.one_less(id, Ok(()));
        None
    }

    fn read_part(&mut self, zio: ZioId, volume: usize, piece: Piece, step: &mut Step<'_>) {
        let (to, at, length) = (piece.from, piece.at, piece.length);
        let is_zero = match self.volumes[volume].content(piece.block, self.txgs.open()) {
            Some(Content::Bytes(buf)) => {
                let from = Span { buf, at, length };
                step.move_bytes(Move::CopyOut { zio, to, from });
                false
            }
            Some(Content::Zero | Content::Trim) => true,
            None => {
                let then = Then::Reply { at, length, to };
                !self.read_block(zio, volume, piece.block, then, step)
            }
        };
        if is_zero {
            step.move_bytes(Move::ZeroOut { zio, to, length });
        }
    }
}

/// Reads blocks from the disks.
impl Pool {
    /// Reads a block into a buffer of its own. Returns false if no disk has the block; the block is then
    /// zeroes.
    pub(super) fn read_block(
        &mut self,
        zio: ZioId,
        volume: usize,
        block: u32,
        then: Then,
        step: &mut Step<'_>,
    ) -> bool {
        let Some((member, offset)) = self.map.place_of(volume, block) else {
            return false;
        };
        let request = &mut self.requests[zio];
        request.pending += 1;
        let id = self.reads.insert(BlockRead {
            zio,
            volume,
            block,
            buf: step.buffers.allocate(self.volumes[volume].block_size),
            member,
            offset,
            trimmed: false,
            tried: 0,
            then,
        });
        self.read_from_a_side(id, step);
        true
    }

    /// Sends the read of a block to a side that has not failed. Returns false if all sides have failed.
    fn read_from_a_side(&mut self, id: u32, step: &mut Step<'_>) -> bool {
        let read = self.reads[id];
        let Some(side) = self.choose_side(&read) else {
            return false;
        };
        let disk = self.map.sides(read.member)[side];
        let queued = Queued {
            class: Class::SyncRead,
            op: Op::Read,
            offset: read.offset,
            length: self.volumes[read.volume].block_size,
            tag: Tag::Read(id).pack(),
            alone: false,
            beside: false,
        };
        self.disks[disk].queue.push(step.now, queued);
        self.pump(disk, step);
        true
    }

    /// Chooses the side that reads a block: the one with the fewest zios or, if a tunable says so, the first.
    /// If several sides have equally few zios, the block's place decides, as in ZFS, so that even one reader
    /// uses all sides.
    fn choose_side(&self, read: &BlockRead) -> Option<usize> {
        let in_sync = self.are_in_sync(read);
        let untried = self.untried(read, in_sync);
        if !in_sync || self.is_written_through(read) || self.tunables.reads_primary() {
            return untried.min();
        }
        let sides = self.map.sides(read.member);
        let row = read.offset / u64::from(self.volumes[read.volume].block_size);
        let turn = |side: usize| (side as u64 + row) % sides.len() as u64;
        untried.min_by_key(|side| (self.disks[sides[*side]].outstanding(), turn(*side)))
    }

    /// The only side that may answer the read of a block now, if its sides may differ: the first side that has
    /// neither failed nor is stale. While the sides differ, all reads go to this side, because otherwise a
    /// client could see a new version of the block and then the old one again.
    fn sole_side(&self, read: &BlockRead) -> Option<usize> {
        let in_sync = self.are_in_sync(read);
        let differ = !in_sync || self.is_written_through(read);
        differ.then(|| self.untried(read, in_sync).min()).flatten()
    }

    fn are_in_sync(&self, read: &BlockRead) -> bool {
        let mirrors = self.mirrors.as_ref();
        mirrors.is_none_or(|mirrors| mirrors.are_in_sync(read.member, read.offset))
    }

    /// Whether a write of the block may have reached some sides only. A block that is written back is read
    /// from memory until all sides have it.
    fn is_written_through(&self, read: &BlockRead) -> bool {
        let volume = &self.volumes[read.volume];
        volume.write == WritePolicy::Through && volume.locks.is_locked(read.block)
    }

    /// The sides that have not failed to read the block. Leaves out stale sides if the sides are not in sync.
    fn untried(&self, read: &BlockRead, in_sync: bool) -> impl Iterator<Item = usize> {
        let stale = self
            .mirrors
            .as_ref()
            .filter(|_| !in_sync)
            .map_or(0, |mirrors| mirrors.stale(read.member));
        let left = !(read.tried | stale);
        (0..self.map.sides(read.member).len()).filter(move |side| left >> side & 1 == 1)
    }

    pub(super) fn side_read(
        &mut self,
        disk: usize,
        id: u32,
        outcome: Outcome,
        step: &mut Step<'_>,
    ) {
        let read = self.reads[id];
        let (_, side) = self.map.side_of(disk);
        if outcome.is_err() {
            self.reads[id].tried |= 1 << side;
        }
        // The sides may have begun to differ since the read began.
        let counts = outcome.is_ok() && self.sole_side(&read).is_none_or(|sole| sole == side);
        if !read.trimmed && !counts && self.read_from_a_side(id, step) {
            return;
        }
        let read = self.reads.remove(id);
        if read.trimmed {
            let (buf, length) = (read.buf, self.volumes[read.volume].block_size);
            step.move_bytes(Move::Zero(Span { buf, at: 0, length }));
        }
        let outcome = if read.trimmed { Ok(()) } else { outcome };
        self.block_read(read, outcome, step);
    }

    fn block_read(&mut self, read: BlockRead, outcome: Outcome, step: &mut Step<'_>) {
        match (read.then, outcome) {
            (Then::Edge, _) => {
                let (volume, block) = (read.volume, read.block);
                let edges = &mut self.volumes[volume].edges;
                for id in edges.read(block, read.buf, outcome, step) {
                    self.requests.one_less(id, outcome);
                }
                return;
            }
            (Then::Reply { at, length, to }, Ok(())) => {
                let buf = read.buf;
                self.put_in_reply(read.zio, to, Span { buf, at, length }, step);
            }
            (_, Err(_)) => step.free(read.buf),
        }
        self.requests.one_less(read.zio, outcome);
    }

    /// Makes reads of these blocks that are in flight answer zeroes, because the rows of these blocks may now
    /// go to other blocks.
    pub(super) fn answer_zeroes(&mut self, volume: usize, blocks: Range<u32>) {
        let mut next = self.reads.next_live(0);
        while let Some(id) = next {
            let read = &mut self.reads[id];
            read.trimmed |= read.volume == volume && blocks.contains(&read.block);
            next = self.reads.next_live(id + 1);
        }
    }

    /// Puts bytes into the reply of a read. Lends the buffer if these bytes are the whole reply and at least
    /// half of the buffer. Otherwise copies them and frees the buffer at once. The engine keeps a lent buffer
    /// until the client has taken the reply, but the shard's budget charges the read for its own length only.
    fn put_in_reply(&mut self, zio: ZioId, to: u32, from: Span, step: &mut Step<'_>) {
        let request = &mut self.requests[zio];
        let size = self.volumes[request.volume].block_size;
        if from.length == request.zio.length && from.length >= size / 2 {
            request.lent = Some(from.buf);
            step.move_bytes(Move::Lend { zio, from });
        } else {
            step.move_bytes(Move::CopyOut { zio, to, from });
            step.free(from.buf);
        }
    }
}
