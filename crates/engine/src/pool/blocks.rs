//! The block table of a volume: the versions of each block in memory, and the write of each block.
//!
//! A block has at most one version in each live txg.

use super::table::Table;
use crate::bytes::Buf;

/// The number of places in a ring of txgs: three for live txgs, and a free one for the next (ZFS:
/// `TXG_SIZE`).
pub(in crate::pool) const TXGS: usize = 4;

/// The content of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The bytes of a buffer.
    Bytes(Buf),
    Zero,
    /// All zeroes. The disks may free the space.
    Trim,
}

impl Content {
    pub(super) fn buf(self) -> Option<Buf> {
        match self {
            Content::Bytes(buf) => Some(buf),
            Content::Zero | Content::Trim => None,
        }
    }
}

/// An `Option<Content>` in four bytes, because a volume has several of these for each of its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Version(u32);

impl Version {
    fn new(content: Option<Content>) -> Version {
        Version(match content {
            None => 0,
            Some(Content::Zero) => 1,
            Some(Content::Trim) => 2,
            Some(Content::Bytes(buf)) => buf.0 + 3,
        })
    }

    fn content(self) -> Option<Content> {
        match self.0 {
            0 => None,
            1 => Some(Content::Zero),
            2 => Some(Content::Trim),
            buf => Some(Content::Bytes(Buf(buf - 3))),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// The block's dirty versions, by txg.
    versions: [Version; TXGS],
    /// One more than the id of the block's write that is queued or at a disk; 0 if there is none.
    write: u32,
    /// Whether flushes wait until the block is on the disks.
    pub(super) watched: bool,
    /// Whether the block's last write to the disks failed. The pool will repeat that write.
    pub(super) failing: bool,
}

impl Block {
    /// The block's dirty version in the txg at this place of the ring.
    #[inline]
    pub(super) fn version(&self, slot: usize) -> Option<Content> {
        self.versions[slot].content()
    }

    /// The contents of all versions.
    pub(super) fn contents(&self) -> impl Iterator<Item = Content> {
        let versions = self.versions.iter();
        versions.filter_map(|version| version.content())
    }

    /// Replaces a version. Returns the old version.
    pub(super) fn set_version(&mut self, slot: usize, content: Option<Content>) -> Option<Content> {
        let before = self.versions[slot].content();
        self.versions[slot] = Version::new(content);
        before
    }

    /// The block's write that is queued or at a disk.
    #[inline]
    pub(super) fn write(&self) -> Option<u32> {
        self.write.checked_sub(1)
    }

    /// Notes whether the block's last write to the disks failed. Returns whether a failure had been noted
    /// before.
    pub(super) fn set_failing(&mut self, failing: bool) -> bool {
        core::mem::replace(&mut self.failing, failing)
    }

    pub(super) fn set_write(&mut self, write: Option<u32>) {
        self.write = write.map_or(0, |id| id + 1);
    }
}

pub(super) type BlockTable = Table<Block>;

#[cfg(test)]
mod tests {
    use super::super::table::LEAF;
    use super::{BlockTable, Content};
    use alloc::vec::Vec;

    #[test]
    fn it_finds_the_blocks_in_use() {
        let mut table = BlockTable::default();
        let far = 5 * LEAF as u32;
        for block in [3, 4, far, far + 1] {
            table.edit(block, |block| block.watched = true);
        }
        table.edit(4, |block| block.watched = false);
        table.edit(far + 1, |block| block.set_version(1, Some(Content::Zero)));
        table.edit(far + 1, |block| block.watched = false);
        let used = |range| table.used(range).collect::<Vec<u32>>();
        assert_eq!(used(0..u32::MAX), [3, far, far + 1]);
        assert_eq!(used(4..far + 1), [far]);
        assert_eq!(used(far + 1..far + 2), [far + 1]);
        assert_eq!(used(far + 2..u32::MAX), []);
    }
}
