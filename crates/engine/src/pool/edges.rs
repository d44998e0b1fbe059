//! Edges: the old content of blocks that writes replace only in part.
//!
//! Several requests may each replace a part of one block. Such requests share the edge of the block, and a
//! disk reads the edge only once.

use alloc::vec::Vec;

use super::block_io::Then;
use super::blocks::Content;
use super::home::free_content;
use super::pool::Pool;
use super::request::Phase;
use super::step::Step;
use crate::bytes::{Buf, Move, Span};
use crate::zio::{Op, Outcome, ZioId};

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
        let request = &mut self.requests[id];
        request.has_edges = true;
        self.one_less(id, Ok(()), step);
    }

    fn need_edge(&mut self, id: ZioId, volume: usize, block: u32, step: &mut Step<'_>) {
        let open = self.txgs.open();
        let volume_of = &mut self.volumes[volume];
        let in_memory = volume_of.content(block, open).is_some();
        let edge = volume_of.edges.entry(block).or_default();
        edge.users += 1;
        if in_memory || edge.buf.is_some() {
            return;
        }
        let is_first = edge.waiting.is_empty();
        edge.waiting.push(id);
        if !is_first {
            self.add_pending(id, 1);
        } else if !self.read_block(id, volume, block, Then::Edge, step) {
            self.zero_edge(volume, block, step);
        }
    }

    /// Fills the edge of a block with zeroes, because no disk has the block.
    fn zero_edge(&mut self, volume: usize, block: u32, step: &mut Step<'_>) {
        let volume = &mut self.volumes[volume];
        let length = volume.block_size;
        if let Some(edge) = volume.edges.get_mut(&block) {
            let buf = step.buffers.allocate(length);
            step.move_bytes(Move::Zero(Span { buf, at: 0, length }));
            (edge.buf, edge.waiting) = (Some(buf), Vec::new());
        }
    }

    /// Passes an edge that a disk has read, or the disk's error, to the requests that wait for the edge.
    pub(super) fn edge_read(
        &mut self,
        volume: usize,
        block: u32,
        buf: Buf,
        outcome: Outcome,
        step: &mut Step<'_>,
    ) {
        let Some(edge) = self.volumes[volume].edges.get_mut(&block) else {
            step.free(buf);
            return;
        };
        match outcome {
            Ok(()) => edge.buf = Some(buf),
            Err(_) => step.free(buf),
        }
        for id in core::mem::take(&mut edge.waiting) {
            self.one_less(id, outcome, step);
        }
    }

    /// Returns a buffer with the old content of a block. The caller may change the buffer.
    pub(super) fn take_edge(
        &mut self,
        volume: usize,
        block: u32,
        step: &mut Step<'_>,
    ) -> Option<Buf> {
        let volume = &mut self.volumes[volume];
        let edge = volume.edges.get_mut(&block)?;
        if edge.users == 1 {
            return edge.buf.take();
        }
        let from = edge.buf?;
        let to = step.buffers.allocate(volume.block_size);
        step.move_bytes(Move::Clone { from, to });
        Some(to)
    }

    /// Notes that a request no longer needs its edges.
    pub(super) fn release_edges(&mut self, id: ZioId, step: &mut Step<'_>) {
        let request = &mut self.requests[id];
        if !core::mem::take(&mut request.has_edges) {
            return;
        }
        let volume = request.volume;
        for block in self.edges_of(id) {
            let edges = &mut self.volumes[volume].edges;
            let Some(edge) = edges.get_mut(&block) else {
                continue;
            };
            edge.users -= 1;
            if edge.users == 0 {
                let edge = edges.remove(&block);
                let buf = edge.and_then(|edge| edge.buf);
                buf.into_iter().for_each(|buf| step.free(buf));
            }
        }
    }

    /// Frees a version that has been written to the disks. If requests wait to replace a part of the block,
    /// the content becomes their edge.
    pub(super) fn let_go(
        &mut self,
        volume: usize,
        block: u32,
        content: Content,
        step: &mut Step<'_>,
    ) {
        let volume = &mut self.volumes[volume];
        let Some(edge) = volume.edges.get_mut(&block) else {
            free_content(content, step);
            return;
        };
        let length = volume.block_size;
        if let Content::Bytes(buf) = content {
            let before = edge.buf.replace(buf);
            before.into_iter().for_each(|before| step.free(before));
            return;
        }
        let allocate = || step.buffers.allocate(length);
        let buf = *edge.buf.get_or_insert_with(allocate);
        step.move_bytes(Move::Zero(Span { buf, at: 0, length }));
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
