//! Blocks on their way to the disks and from them, and those that are tried again.

use super::blocks::Content;
use super::stats::Class;
use crate::bytes::Buf;
use crate::zio::ZioId;

/// A block on its way to the disks.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockWrite {
    pub(super) volume: usize,
    pub(super) block: u32,
    pub(super) content: Content,
    pub(super) cause: Cause,
    pub(super) class: Class,
    /// How many sides there are, and how many have not answered.
    pub(super) sides: u8,
    pub(super) left: u8,
    pub(super) failed: bool,
    /// Bytes that are not counted as dirty any more, because some sides have them.
    pub(super) retired: u32,
}

/// Why a block is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Its version of this txg is dirty.
    Dirty(u64),
    /// The same, but that version has been replaced since: it stays dirty.
    Replaced,
    /// A write that a client waits for.
    Through(ZioId),
}

/// A block on its way from a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockRead {
    pub(super) zio: ZioId,
    pub(super) volume: usize,
    pub(super) block: u32,
    pub(super) buf: Buf,
    /// Sides that have failed, one bit each.
    pub(super) tried: u64,
    pub(super) then: Then,
}

/// Why a block was read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// A part of it is a part of the reply.
    Reply { at: u32, length: u32, to: u32 },
    /// It is what a write does not replace of its first or last block.
    Edge(usize),
}

/// What is repeated after a failure.
#[derive(Clone, Copy, Debug)]
pub(super) enum Retry {
    Block { volume: usize, block: u32 },
    Commit { disk: usize },
}
