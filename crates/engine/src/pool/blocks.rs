//! The block table of a volume: what memory holds of each block, and who is busy with it.
//!
//! A block has at most one version in each live txg. Two levels, because a map costs more than
//! all the rest of a write: leaves are allocated when a block of them is first touched.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::bytes::Buf;

/// The txgs that can live at the same time, as places in a ring (ZFS: `TXG_SIZE`).
pub(super) const TXGS: usize = 4;

/// What a version says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The bytes of a buffer.
    Bytes(Buf),
    /// Zeroes.
    Zero,
    /// Zeroes; the disks may take the space back.
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

/// A [`Content`] or none, in four bytes: there is a block for every 8 KiB of a volume.
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
    /// The write home that is in a queue or at a disk, plus one; or 0.
    write: u32,
    /// A client's write is at work on it; others wait.
    pub(super) locked: bool,
    /// Others wait for the lock.
    pub(super) wanted: bool,
    /// Flushes wait until it is home.
    pub(super) watched: bool,
    /// Its last write home failed and will be repeated.
    pub(super) failing: bool,
}

impl Block {
    /// Its dirty version of the txg in this place of the ring.
    #[inline]
    pub(super) fn version(&self, slot: usize) -> Option<Content> {
        self.versions[slot].content()
    }

    /// Replaces a version, and says what it was.
    pub(super) fn set_version(&mut self, slot: usize, content: Option<Content>) -> Option<Content> {
        let before = self.versions[slot].content();
        self.versions[slot] = Version::new(content);
        before
    }

    /// The write home that is in a queue or at a disk.
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
