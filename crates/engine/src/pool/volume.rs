//! A volume: a run of blocks on every member of its pool, and the versions of its blocks in memory.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::block_io::Edge;
use super::blocks::{BlockTable, Content, Lock, TXGS};
use super::config::{VolumeConfig, WritePolicy};
use super::extents::Extents;
use super::jobs::TOUCHED_MAX;
use super::stats::VolumeTraffic;
use super::table::Table;
use super::watchers::Watchers;
use crate::lines::{Line, Lines};
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
    pub(super) locks: Table<Lock>,
    /// For each block that requests have locked in part, the locked ranges of bytes, each as its first byte
    /// and its end.
    pub(super) partly_locked: BTreeMap<u32, Vec<(u32, u32)>>,
    /// The runs of blocks that requests have locked, each as its first block and its end. The runs do not
    /// overlap.
    pub(super) locked_runs: BTreeMap<u32, u32>,
    /// The old content of blocks that requests replace only in part.
    pub(super) edges: BTreeMap<u32, Edge>,
    /// Requests that wait for the lock of a block, in the order of arrival.
    pub(super) lock_queues: BTreeMap<u32, Line>,
    /// The requests of these queues.
    pub(super) lock_lines: Lines<()>,
    /// Requests that wait until a block is on the disks.
    pub(super) watchers: Watchers,
    /// The number of blocks and extents whose last write to the disks failed.
    pub(super) failing: u32,
    pub(super) traffic: VolumeTraffic,
    pub(super) stats: DiskStats,
    pub(super) occupancy: Occupancy,
}

/// A part of a zio: the part in one block, or a run of whole blocks. Zeroes and trims are cut into runs where
/// possible, and so are long writes when they take their locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The first block.
    pub(super) block: u32,
    /// How many blocks the piece has. If there are several, the piece covers each of them completely.
    pub(super) count: u32,
    /// The piece's first byte, as an offset into the block.
    pub(super) at: u32,
    pub(super) length: u32,
    /// The piece's first byte, as an offset into the zio.
    pub(super) from: u32,
}

impl Piece {
    /// The offsets in the block where the piece begins and ends.
    pub(super) fn bytes(&self) -> (u32, u32) {
        (self.at, self.at + self.length)
    }

    /// The block after the piece.
    pub(super) fn end(&self) -> u32 {
        self.block + self.count
    }

    pub(super) fn is_run(&self) -> bool {
        self.count > 1
    }

    pub(super) fn is_whole(&self, block_size: u32) -> bool {
        self.length == self.count * block_size
    }
}

impl Volume {
    pub(super) fn new(config: &VolumeConfig) -> Volume {
        Volume {
            block_size: config.block_size,
            count: config.size / u64::from(config.block_size),
            write: config.write,
            blocks: BlockTable::default(),
            extents: Extents::default(),
            locks: Table::default(),
            partly_locked: BTreeMap::new(),
            locked_runs: BTreeMap::new(),
            edges: BTreeMap::new(),
            lock_queues: BTreeMap::new(),
            lock_lines: Lines::default(),
            watchers: Watchers::default(),
            failing: 0,
            traffic: VolumeTraffic::default(),
            stats: DiskStats::default(),
            occupancy: Occupancy::default(),
        }
    }

    /// The blocks that a zio touches. The zio must have at least one byte.
    pub(super) fn blocks_of(&self, zio: &Zio<VolumeId>) -> core::ops::Range<u32> {
        let size = u64::from(self.block_size);
        let end = zio.offset + u64::from(zio.length);
        (zio.offset / size) as u32..end.div_ceil(size) as u32
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
        self.cut(zio, from, matches!(zio.op, Op::Zero | Op::Trim))
    }

    /// The pieces of a zio for its locks, with one lock for each piece.
    pub(super) fn lock_pieces(&self, zio: &Zio<VolumeId>) -> impl Iterator<Item = Piece> + use<> {
        let has_runs = matches!(zio.op, Op::Zero | Op::Trim) || self.is_long(zio);
        self.cut(zio, 0, has_runs)
    }

    /// Whether a read or write has more blocks than one step may handle.
    pub(super) fn is_long(&self, zio: &Zio<VolumeId>) -> bool {
        let blocks = self.blocks_of(zio);
        matches!(zio.op, Op::Read | Op::Write) && blocks.end - blocks.start > TOUCHED_MAX
    }

    /// Cuts a zio into pieces, from this byte of the zio on. A piece is a part of one block or, if the zio
    /// `has_runs`, a run of whole blocks.
    fn cut(
        &self,
        zio: &Zio<VolumeId>,
        from: u32,
        has_runs: bool,
    ) -> impl Iterator<Item = Piece> + use<> {
        // The block size is a power of two, so shifts can replace slow divisions.
        let (size, shift) = (u64::from(self.block_size), self.block_size.trailing_zeros());
        let (begin, end) = (zio.offset, zio.offset + u64::from(zio.length));
        let cut = move |first: u64| {
            let block = first >> shift;
            let run_end = match has_runs && block << shift == first {
                true => ((first / RUN_MAX + 1) * RUN_MAX).min(end >> shift << shift),
                false => 0,
            };
            let last = run_end.max((block + 1) << shift).min(end);
            Piece {
                block: block as u32,
                count: (((last + size - 1) >> shift) - block) as u32,
                at: (first - (block << shift)) as u32,
                length: (last - first) as u32,
                from: (first - begin) as u32,
            }
        };
        let after = move |piece: &Piece| {
            let next = begin + u64::from(piece.from) + u64::from(piece.length);
            (next < end).then(|| cut(next))
        };
        core::iter::successors(Some(cut(begin + u64::from(from))), after)
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
        let free = |piece: Piece| match piece.is_run() {
            true => self
                .first_obstacle(piece.block, piece.end(), false)
                .is_none(),
            false => !self.is_locked(piece.block),
        };
        self.are_whole(zio) && self.write == WritePolicy::Back && self.lock_pieces(zio).all(free)
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

/// The maximum size of a run of blocks, in bytes. Runs end at multiples of this size.
const RUN_MAX: u64 = 64 << 20;

/// A pool has at most this many live txgs: one open, one quiesced, and one that syncs.
pub(super) const LIVE_TXGS: u64 = 3;

/// A txg's place in a ring of txgs.
pub(super) const fn slot_of(txg: u64) -> usize {
    txg as usize % TXGS
}

#[cfg(test)]
mod tests {
    use super::{Piece, RUN_MAX, Volume, VolumeConfig, WritePolicy};
    use crate::client::ClientId;
    use crate::time::Instant;
    use crate::zio::{Op, PoolId, VolumeId, Zio, ZioId};
    use alloc::vec::Vec;

    /// The pieces of a zio to a volume with blocks of 4 KiB, each as (block, count, at, length).
    fn cut(op: Op, offset: u64, length: u32) -> Vec<(u32, u32, u32, u32)> {
        let config = VolumeConfig {
            pool: PoolId(0),
            size: 1 << 30,
            block_size: 4_096,
            write: WritePolicy::Back,
        };
        let volume = Volume::new(&config);
        let zio = Zio {
            id: ZioId(0),
            device: VolumeId(0),
            client: ClientId(0),
            op,
            fua: false,
            call: None,
            offset,
            length,
            arrived: Instant::ZERO,
        };
        let pieces: Vec<Piece> = volume.pieces(&zio).collect();
        let from = |at: usize| pieces[..at].iter().map(|piece| piece.length).sum();
        for (at, piece) in pieces.iter().enumerate() {
            assert_eq!(piece.from, from(at));
        }
        let tuple = |piece: &Piece| (piece.block, piece.count, piece.at, piece.length);
        pieces.iter().map(tuple).collect()
    }

    #[test]
    fn a_zio_is_cut_where_blocks_begin() {
        let expected = [(0, 1, 4_000, 96), (1, 1, 0, 4_096), (2, 1, 0, 8)];
        assert_eq!(cut(Op::Write, 4_000, 4_200), expected);
        assert_eq!(cut(Op::Trim, 4_000, 4_200), expected);
        let expected = [(1, 1, 0, 4_096), (2, 1, 0, 4_096)];
        assert_eq!(cut(Op::Write, 4_096, 8_192), expected);
    }

    #[test]
    fn whole_blocks_of_zeroes_are_cut_in_runs() {
        let expected = [(0, 1, 1, 4_095), (1, 2, 0, 8_192), (3, 1, 0, 1)];
        assert_eq!(cut(Op::Zero, 1, 3 * 4_096), expected);
        assert_eq!(cut(Op::Zero, 8_192, 2_000), [(2, 1, 0, 2_000)]);
        let (run, block) = (RUN_MAX as u32, (RUN_MAX / 4_096) as u32);
        let expected = [
            (block - 1, 1, 0, 4_096),
            (block, block, 0, run),
            (2 * block, 2, 0, 8_192),
            (2 * block + 2, 1, 0, 5),
        ];
        let length = run + 3 * 4_096 + 5;
        assert_eq!(cut(Op::Trim, RUN_MAX - 4_096, length), expected);
    }
}
