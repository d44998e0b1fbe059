//! Edges: the old content of blocks that writes replace only in part.
//!
//! Several requests may each replace a part of one block. Such requests share the edge of the block, and a
//! disk reads the edge only once.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use super::blocks::Content;
use super::step::Step;
use crate::bytes::{Buf, Move, Span};
use crate::zio::{Outcome, ZioId};

/// The edges of a volume, by block.
#[derive(Debug)]
pub(super) struct Edges {
    block_size: u32,
    edges: BTreeMap<u32, Edge>,
}

/// The old content of a block that requests replace only in part.
#[derive(Debug, Default)]
struct Edge {
    /// The content; `None` while a disk reads it, or if memory has a dirty version of the block.
    buf: Option<Buf>,
    /// Requests that wait until the disk has read the content.
    waiting: Vec<ZioId>,
    /// How many requests need the edge.
    users: u32,
}

/// The duty of a request that needs an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: the content is in memory.
    Nothing,
    /// It reads the block, and waits for it.
    Read,
    /// It waits for the read of another request.
    Wait,
}

impl Edges {
    pub(super) fn new(block_size: u32) -> Edges {
        Edges {
            block_size,
            edges: BTreeMap::new(),
        }
    }

    /// Notes that a request needs the edge of a block. `in_memory`: whether memory has a dirty version of the
    /// block.
    pub(super) fn need(&mut self, block: u32, id: ZioId, in_memory: bool) -> Need {
        let edge = self.edges.entry(block).or_default();
        edge.users += 1;
        if in_memory || edge.buf.is_some() {
            return Need::Nothing;
        }
        edge.waiting.push(id);
        if edge.waiting.len() > 1 {
            Need::Wait
        } else {
            Need::Read
        }
    }

    /// Fills the edge of a block with zeroes, because no disk has the block, and forgets who waited.
    pub(super) fn zero(&mut self, block: u32, step: &mut Step<'_>) {
        if let Some(edge) = self.edges.get_mut(&block) {
            edge.buf = Some(zeroes(self.block_size, step));
            edge.waiting.clear();
        }
    }

    /// Keeps what a disk has read of a block, unless the read failed or no request needs it any more. Returns
    /// the requests that waited for it.
    pub(super) fn read(
        &mut self,
        block: u32,
        buf: Buf,
        outcome: Outcome,
        step: &mut Step<'_>,
    ) -> Vec<ZioId> {
        let Some(edge) = self.edges.get_mut(&block) else {
            step.free(buf);
            return Vec::new();
        };
        match outcome {
            Ok(()) => edge.buf = Some(buf),
            Err(_) => step.free(buf),
        }
        core::mem::take(&mut edge.waiting)
    }

    /// Returns a buffer with the old content of a block. The caller may change the buffer.
    pub(super) fn take(&mut self, block: u32, step: &mut Step<'_>) -> Option<Buf> {
        let edge = self.edges.get_mut(&block)?;
        if edge.users == 1 {
            return edge.buf.take();
        }
        let from = edge.buf?;
        let to = step.buffers.allocate(self.block_size);
        step.move_bytes(Move::Clone { from, to });
        Some(to)
    }

    /// Notes that a request no longer needs the edge of a block.
    pub(super) fn release(&mut self, block: u32, step: &mut Step<'_>) {
        let Some(edge) = self.edges.get_mut(&block) else {
            return;
        };
        edge.users -= 1;
        if edge.users == 0 {
            edge.buf.into_iter().for_each(|buf| step.free(buf));
            self.edges.remove(&block);
        }
    }

    /// Takes the content of a version that has been written to the disks: as the edge of its block if
    /// requests wait to replace a part of the block, and otherwise to free it.
    pub(super) fn let_go(&mut self, block: u32, content: Content, step: &mut Step<'_>) {
        let Some(edge) = self.edges.get_mut(&block) else {
            step.free_content(content);
            return;
        };
        match content {
            Content::Bytes(buf) => {
                let before = edge.buf.replace(buf);
                before.into_iter().for_each(|before| step.free(before));
            }
            Content::Zero | Content::Trim => match edge.buf {
                Some(buf) => zero(buf, self.block_size, step),
                None => edge.buf = Some(zeroes(self.block_size, step)),
            },
        }
    }

    /// The blocks of a range that have edges.
    pub(super) fn of(&self, range: Range<u32>) -> Vec<u32> {
        self.edges.range(range).map(|(block, _)| *block).collect()
    }

    /// Forgets all edges, at a power cut.
    pub(super) fn clear(&mut self, step: &mut Step<'_>) {
        let edges = core::mem::take(&mut self.edges);
        let buffers = edges.into_values().filter_map(|edge| edge.buf);
        buffers.for_each(|buf| step.free(buf));
    }
}

fn zero(buf: Buf, length: u32, step: &mut Step<'_>) {
    step.move_bytes(Move::Zero(Span { buf, at: 0, length }));
}

/// A new buffer of zeroes.
fn zeroes(length: u32, step: &mut Step<'_>) -> Buf {
    let buf = step.buffers.allocate(length);
    zero(buf, length, step);
    buf
}
