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

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    /// Dirty versions, by txg.
    pub(super) versions: [Option<Content>; TXGS],
    /// The write home that is in a queue or at a disk.
    pub(super) write: Option<u32>,
    /// A client's write is at work on it; others wait.
    pub(super) locked: bool,
    /// Others wait for the lock.
    pub(super) wanted: bool,
    /// Flushes wait until it is home.
    pub(super) watched: bool,
    /// Its last write home failed and will be repeated.
    pub(super) failing: bool,
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
