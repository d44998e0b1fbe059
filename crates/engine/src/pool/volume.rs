//! A volume: a run of blocks on every member of its pool, and the versions of its blocks in memory.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::block_io::Edge;
use super::blocks::{BlockTable, Content, TXGS};
use super::config::{VolumeConfig, WritePolicy};
use crate::occupancy::Occupancy;
use crate::stats::DiskStats;
use crate::zio::{VolumeId, Zio, ZioId};

#[derive(Debug)]
pub(super) struct Volume {
    pub(super) block_size: u32,
    /// How many blocks it has.
    pub(super) count: u64,
    pub(super) write: WritePolicy,
    /// Where its blocks begin, on every disk of the pool.
    pub(super) base: u64,
    pub(super) blocks: BlockTable,
    /// Blocks that were dirtied, by txg. A block may be listed twice, or have gone home since.
    pub(super) dirtied: [Vec<u32>; TXGS],
    /// The bytes of blocks that requests have locked in part: first and end.
    pub(super) partly_locked: BTreeMap<u32, Vec<(u32, u32)>>,
    /// The old content of blocks of which requests replace a part.
    pub(super) edges: BTreeMap<u32, Edge>,
    /// Requests that wait for the lock of a block, in the order of arrival.
    pub(super) lock_queues: BTreeMap<u32, VecDeque<ZioId>>,
    /// Requests that wait for a block to be home.
    pub(super) watchers: BTreeMap<u32, Vec<Watcher>>,
    /// Blocks whose last write home failed.
    pub(super) failing: u32,
    pub(super) stats: DiskStats,
    pub(super) occupancy: Occupancy,
}

/// A flush, or a durable write, that waits for a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watcher {
    pub(super) zio: ZioId,
    /// How many writes of the block must end until the version that it waits for is home.
    pub(super) writes: u8,
}

/// The part of a zio within one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) block: u32,
    /// First byte in the block.
    pub(super) at: u32,
    pub(super) length: u32,
    /// First byte in the zio.
    pub(super) from: u32,
}

impl Piece {
    /// Its first byte in the block, and its end.
    pub(super) fn bytes(&self) -> (u32, u32) {
        (self.at, self.at + self.length)
    }

    pub(super) fn is_whole(&self, block_size: u32) -> bool {
        self.length == block_size
    }
}

impl Volume {
    pub(super) fn new(config: &VolumeConfig, base: u64) -> Volume {
        Volume {
            block_size: config.block_size,
            count: config.size / u64::from(config.block_size),
            write: config.write,
            base,
            blocks: BlockTable::default(),
            dirtied: Default::default(),
            partly_locked: BTreeMap::new(),
            edges: BTreeMap::new(),
            lock_queues: BTreeMap::new(),
            watchers: BTreeMap::new(),
            failing: 0,
            stats: DiskStats::default(),
            occupancy: Occupancy::default(),
        }
    }

    /// Where its blocks end, on every disk of a pool with `members` members.
    pub(super) fn end(&self, members: u64) -> u64 {
        self.base + self.count.div_ceil(members) * u64::from(self.block_size)
    }

    /// The blocks that a zio touches, in order. The zio must have at least one byte.
    pub(super) fn pieces(&self, zio: &Zio<VolumeId>) -> impl Iterator<Item = Piece> + use<> {
        let size = u64::from(self.block_size);
        let (begin, end) = (zio.offset, zio.offset + u64::from(zio.length));
        (begin / size..end.div_ceil(size)).map(move |block| {
            let first = begin.max(block * size);
            let last = end.min((block + 1) * size);
            Piece {
                block: block as u32,
                at: (first - block * size) as u32,
                length: (last - first) as u32,
                from: (first - begin) as u32,
            }
        })
    }

    /// Whether the volume has all bytes of a zio's range.
    pub(super) fn holds(&self, zio: &Zio<VolumeId>) -> bool {
        let size = self.count * u64::from(self.block_size);
        let end = zio.offset.checked_add(u64::from(zio.length));
        end.is_some_and(|end| end <= size)
    }

    /// Whether a write can skip its locks: it has whole blocks that no request uses, like most
    /// writes. If the throttle holds it back, it takes the locks then.
    #[inline]
    pub(super) fn takes_at_once(&self, zio: &Zio<VolumeId>) -> bool {
        let size = u64::from(self.block_size);
        let whole = (zio.offset | u64::from(zio.length)) & (size - 1) == 0;
        let free = |piece: Piece| !self.blocks.get(piece.block).locked;
        whole && self.write == WritePolicy::Back && self.pieces(zio).all(free)
    }

    /// The newest version of a block, with its txg. `open` is the open txg.
    #[inline]
    pub(super) fn newest(&self, block: u32, open: u64) -> Option<(u64, Content)> {
        let block = self.blocks.get(block);
        let version = |txg: u64| Some((txg, block.version(slot_of(txg))?));
        (open + 1 - LIVE_TXGS..=open).rev().find_map(version)
    }
}

/// One open, one quiesced, and one that syncs.
pub(super) const LIVE_TXGS: u64 = 3;

/// A txg's place in the ring.
pub(super) const fn slot_of(txg: u64) -> usize {
    txg as usize % TXGS
}

#[cfg(test)]
mod tests {
    use super::{Piece, Volume, VolumeConfig, WritePolicy};
    use crate::client::ClientId;
    use crate::time::Instant;
    use crate::zio::{Op, PoolId, VolumeId, Zio, ZioId};
    use alloc::vec::Vec;

    #[test]
    fn a_zio_is_cut_where_blocks_begin() {
        let config = VolumeConfig {
            pool: PoolId(0),
            size: 1 << 20,
            block_size: 4_096,
            write: WritePolicy::Back,
        };
        let volume = Volume::new(&config, 0);
        let zio = Zio {
            id: ZioId(0),
            device: VolumeId(0),
            client: ClientId(0),
            op: Op::Write,
            fua: false,
            offset: 4_000,
            length: 4_200,
            arrived: Instant::ZERO,
        };
        let pieces: Vec<Piece> = volume.pieces(&zio).collect();
        let expected = [(0, 4_000, 96, 0), (1, 0, 4_096, 96), (2, 0, 8, 4_192)].map(
            |(block, at, length, from)| Piece {
                block,
                at,
                length,
                from,
            },
        );
        assert_eq!(pieces, expected);
    }
}
