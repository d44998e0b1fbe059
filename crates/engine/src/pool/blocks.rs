//! The block table of a volume: the versions of each block in memory, and the requests that use it.
//!
//! A block has at most one version in each live txg. The table has two levels, because a map would
//! cost more than the rest of a write: a leaf is allocated when one of its blocks is first touched.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::bytes::Buf;

/// Places for txgs in a ring: three for live txgs, and a free one for the next (ZFS: `TXG_SIZE`).
pub(in crate::pool) const TXGS: usize = 4;

/// The content of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The bytes of a buffer.
    Bytes(Buf),
    /// All zeroes.
    Zero,
    /// All zeroes; the disks may give the space back.
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

/// An `Option<Content>` in four bytes. There is one for every 8 KiB of a volume.
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

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    /// Dirty versions, by txg.
    versions: [Version; TXGS],
    /// The id, plus one, of the write home that is queued or at a disk; or 0.
    write: u32,
    /// Whether a client's write uses it. Other writes wait.
    pub(super) locked: bool,
    /// Whether other writes wait for the lock.
    pub(super) wanted: bool,
    /// Whether flushes wait until it is home.
    pub(super) watched: bool,
    /// Whether its last write home failed. That write will be repeated.
    pub(super) failing: bool,
}

impl Block {
    /// Its dirty version of the txg at this place of the ring.
    #[inline]
    pub(super) fn version(&self, slot: usize) -> Option<Content> {
        self.versions[slot].content()
    }

    /// Replaces a version. Returns the old one.
    pub(super) fn set_version(&mut self, slot: usize, content: Option<Content>) -> Option<Content> {
        let before = self.versions[slot].content();
        self.versions[slot] = Version::new(content);
        before
    }

    /// The write home that is queued or at a disk.
    #[inline]
    pub(super) fn write(&self) -> Option<u32> {
        self.write.checked_sub(1)
    }

    pub(super) fn set_write(&mut self, write: Option<u32>) {
        self.write = write.map_or(0, |id| id + 1);
    }
}

#[derive(Debug, Default)]
pub(super) struct BlockTable {
    leaves: Vec<Option<Box<[Block; LEAF]>>>,
}

impl BlockTable {
    /// The contents of all versions.
    pub(super) fn contents(&self) -> impl Iterator<Item = Content> + '_ {
        let blocks = self.leaves.iter().flatten().flat_map(|leaf| leaf.iter());
        let versions = blocks.flat_map(|block| block.versions.iter());
        versions.filter_map(|version| version.content())
    }

    #[inline]
    pub(super) fn get(&self, block: u32) -> Block {
        let leaf = self.leaves.get(block as usize / LEAF);
        match leaf {
            Some(Some(leaf)) => leaf[block as usize % LEAF],
            _ => Block::default(),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, block: u32) -> &mut Block {
        let at = block as usize / LEAF;
        if self.leaves.len() <= at {
            self.leaves.resize_with(at + 1, || None);
        }
        let leaf = self.leaves[at].get_or_insert_with(|| Box::new([Block::default(); LEAF]));
        &mut leaf[block as usize % LEAF]
    }
}

const LEAF: usize = 512;
