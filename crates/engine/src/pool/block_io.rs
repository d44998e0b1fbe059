//! Blocks on their way to and from the disks, and operations to repeat after a failure.

use core::ops::Range;

use super::blocks::Content;
use super::stats::Class;
use crate::bytes::Buf;
use crate::zio::ZioId;

/// The write of a block, or of a run of blocks, to the disks.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockWrite {
    pub(super) volume: usize,
    /// The first block.
    pub(super) block: u32,
    pub(super) count: u32,
    pub(super) content: Content,
    pub(super) cause: Cause,
    pub(super) class: Class,
    /// How many sides the write goes to.
    pub(super) sides: u32,
    /// How many of these sides have not answered yet.
    pub(super) left: u32,
    pub(super) failed: bool,
    /// Whether the write waits until the pool has a place for its block.
    pub(super) unplaced: bool,
    /// Whether the write waits for the repair of a mirror, or for the record of its regions.
    pub(super) held: bool,
    /// The number of bytes that no longer count as dirty, because some sides have written them.
    pub(super) retired: u32,
}

impl BlockWrite {
    pub(super) fn blocks(&self) -> Range<u32> {
        self.block..self.block + self.count
    }

    /// Whether the block table names this write as the current write of its block.
    pub(super) fn is_of_block(&self) -> bool {
        self.count == 1 && matches!(self.cause, Cause::Dirty(_) | Cause::Replaced)
    }
}

/// The reason for writing a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The block's version of this txg is dirty.
    Dirty(u64),
    /// The block's version was dirty, but has been replaced since. The block stays dirty.
    Replaced,
    /// The run is an extent of this txg.
    Extent(u64),
    /// A write that a client waits for.
    Through(ZioId),
}

/// The read of a block from a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockRead {
    pub(super) zio: ZioId,
    pub(super) volume: usize,
    pub(super) block: u32,
    pub(super) buf: Buf,
    pub(super) member: usize,
    /// Where the block begins on the member.
    pub(super) offset: u64,
    /// Whether a trim has taken the block's place away since the read began.
    pub(super) trimmed: bool,
    /// The sides that have failed to read the block, one bit each.
    pub(super) tried: u64,
    pub(super) then: Then,
}

/// The reason for reading a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// A part of the block becomes a part of a client's reply.
    Reply { at: u32, length: u32, to: u32 },
    /// Writes that replace only a part of the block wait for its old content.
    Edge,
}

/// The operation to repeat after a failure.
#[derive(Clone, Copy, Debug)]
pub(super) enum Retry {
    Block {
        volume: usize,
        block: u32,
    },
    /// The write of an extent.
    Extent(u32),
    Commit {
        disk: usize,
    },
    /// The zio without bytes with this id.
    Beside(u32),
}
