//! A volume: a run of blocks on every member of its pool, and the versions of its blocks in memory.

use core::ops::Range;

use super::blocks::{BlockTable, Content, TXGS};
use super::config::{VolumeConfig, WritePolicy};
use super::edges::Edges;
use super::extents::Extents;
use super::locks::RangeLocks;
use super::piece::{Piece, blocks_of, cut, is_long};
use super::stats::VolumeTraffic;
use super::watchers::Watchers;
use crate::occupancy::Occupancy;
use crate::stats::DiskStats;
use crate::zio::{Op, VolumeId, Zio};

#[derive(Debug)]
pub(super) struct Volume {
    pub(super) block_size: u32,
    /// How many blocks the volume has.
    pub(super) count: u64,
    pub(super) write: WritePolicy,
    pub(super) blocks: BlockTable,
    pub(super) extents: Extents,
    pub(super) locks: RangeLocks,
    /// The old content of blocks that requests replace only in part.
    pub(super) edges: Edges,
    /// Requests that wait until a block is on the disks.
    pub(super) watchers: Watchers,
    /// The number of blocks and extents whose last write to the disks failed.
    pub(super) failing: u32,
    pub(super) traffic: VolumeTraffic,
    pub(super) stats: DiskStats,
    pub(super) occupancy: Occupancy,
}

impl Volume {
    pub(super) fn new(config: &VolumeConfig) -> Volume {
        Volume {
            block_size: config.block_size,
            count: config.size / u64::from(config.block_size),
            write: config.write,
            blocks: BlockTable::default(),
            extents: Extents::default(),
            locks: RangeLocks::new(config),
            edges: Edges::new(config.block_size),
            watchers: Watchers::default(),
            failing: 0,
            traffic: VolumeTraffic::default(),
            stats: DiskStats::default(),
            occupancy: Occupancy::default(),
        }
    }

    /// The blocks that a zio touches. The zio must have at least one byte.
    pub(super) fn blocks_of(&self, zio: &Zio<VolumeId>) -> Range<u32> {
        blocks_of(self.block_size, zio)
    }

    /// The blocks that a zio touches, in order and cut into pieces. The zio must have at least one
    /// byte.
    pub(super) fn pieces(&self, zio: &Zio<VolumeId>) -> impl Iterator<Item = Piece> + use<> {
        self.pieces_from(zio, 0)
    }

    /// The pieces of a zio from this byte of the zio on.
    pub(super) fn pieces_from(
        &self,
        zio: &Zio<VolumeId>,
        from: u32,
    ) -> impl Iterator<Item = Piece> + use<> {
        let has_runs = matches!(zio.op, Op::Zero | Op::Trim);
        cut(self.block_size, zio, from, has_runs)
    }

    /// Whether a read or write has more blocks than one step may handle.
    pub(super) fn is_long(&self, zio: &Zio<VolumeId>) -> bool {
        is_long(self.block_size, zio)
    }

    /// Whether a zio's range lies completely within the volume.
    pub(super) fn holds(&self, zio: &Zio<VolumeId>) -> bool {
        let size = self.count * u64::from(self.block_size);
        let end = zio.offset.checked_add(u64::from(zio.length));
        end.is_some_and(|end| end <= size)
    }

    /// Whether a write can skip its locks, as most writes can: it consists of whole blocks that no other
    /// request uses. If the throttle holds the write back, the write takes its locks after all.
    #[inline]
    pub(super) fn takes_at_once(&self, zio: &Zio<VolumeId>) -> bool {
        self.are_whole(zio) && self.write == WritePolicy::Back && self.locks.are_free(zio)
    }

    /// Whether a zio covers all its blocks completely.
    #[inline]
    pub(super) fn are_whole(&self, zio: &Zio<VolumeId>) -> bool {
        let size = u64::from(self.block_size);
        (zio.offset | u64::from(zio.length)) & (size - 1) == 0
    }

    /// The content of a block in memory, if memory has the block. A version in the block table is always
    /// newer than an extent, because a newer extent would have dropped the version. `open` is the open txg.
    #[inline]
    pub(super) fn content(&self, block: u32, open: u64) -> Option<Content> {
        // A volume that writes through keeps no version in memory.
        if self.write == WritePolicy::Through {
            return None;
        }
        let version = self.newest(block, open).map(|(_, content)| content);
        version.or_else(|| self.extents.content(block))
    }

    /// The queued or active write of a block, or of an extent that contains the block.
    #[inline]
    pub(super) fn write_of(&self, block: u32) -> Option<u32> {
        let own = self.blocks.get(block).write();
        own.or_else(|| self.extents.write_of(block))
    }

    /// The newest version of a block, with its txg. `open` is the open txg.
    #[inline]
    pub(super) fn newest(&self, block: u32, open: u64) -> Option<(u64, Content)> {
        let block = self.blocks.get(block);
        let version = |txg: u64| Some((txg, block.version(slot_of(txg))?));
        (open + 1 - LIVE_TXGS..=open).rev().find_map(version)
    }
}

/// A pool has at most this many live txgs: one open, one quiesced, and one that syncs.
pub(super) const LIVE_TXGS: u64 = 3;

/// A txg's place in a ring of txgs.
pub(super) const fn slot_of(txg: u64) -> usize {
    txg as usize % TXGS
}
