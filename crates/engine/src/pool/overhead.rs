//! The overhead of a txg: what a sync of ZFS writes beside the data, and what that counts as dirty data.
//!
//! The model is OpenZFS's `dbuf.c`, `dmu_objset.c`, `dsl_pool_sync`, `spa_sync` and `vdev_label.c`:
//!
//! - The blocks of a volume hang below a tree of indirect blocks. The tree ends in the volume's dnode, which
//!   is in a block of dnodes with a tree of its own. When a block becomes dirty, so does each block above it
//!   that is not yet dirty in the txg. It counts as dirty data with its whole size, so a write of 8 KiB may
//!   add 128 KiB at the beginning of a txg.
//! - A sync queues these blocks behind the data of their volume, because ZFS gives blocks their places level
//!   by level. Such a block stops being dirty when it and everything below it are on the disks, so this dirty
//!   data goes all at once, at the end of the sync.
//! - Later passes write the pool's own objects: the space that was allocated and freed, by the passes before
//!   as well. Each pass waits for the pass before it, and is smaller.
//! - Then the disks sync, the uberblocks are written into the labels, and the disks sync again.
//!
//! Four things differ. These zios carry no bytes: no store is asked. Their sizes are typical sizes after
//! compression, and the later passes have a typical number of blocks. A run of whole blocks that a client
//! trims or zeroes makes no indirect block dirty. And the places of these zios on the disks, which rules and
//! queues see, are not reserved: data may be at the same places.

use alloc::vec::Vec;

use super::blocks::TXGS;
use super::queue::Picked;
use super::slab::Slab;
use super::stats::{Class, Traffic};
use super::table::Table;
use super::volume::slot_of;

/// A block of metadata of a volume. Level 1 is right above the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) volume: usize,
    pub(super) level: u32,
    pub(super) index: u32,
}

/// A block of metadata in a txg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Node {
    is_dirty: bool,
    /// How many dirty blocks right below it are not yet on the disks.
    below: u32,
    /// How many of its copies are not yet on the disks; `None` before they are queued.
    copies: Option<u32>,
}

/// A zio without bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// The block of which this is a copy; `None` for later passes and uberblocks.
    pub(super) of: Option<Key>,
    pub(super) class: Class,
    pub(super) member: usize,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// The bytes that stop being dirty when this zio of a later pass ends.
    pub(super) dirty: u64,
    /// How many sides of the member have not answered yet.
    pub(super) left: u32,
    pub(super) failed: bool,
    /// Whether an earlier attempt failed.
    pub(super) repeats: bool,
}

/// The parts of a txg's end, after its data and the metadata of its volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// A later pass, counted from 0.
    Pass(usize),
    Sync,
    Uberblocks,
    LastSync,
}

impl Tail {
    pub(super) fn next(self) -> Option<Tail> {
        match self {
            Tail::Pass(pass) if pass + 1 < PASSES.len() => Some(Tail::Pass(pass + 1)),
            Tail::Pass(_) => Some(Tail::Sync),
            Tail::Sync => Some(Tail::Uberblocks),
            Tail::Uberblocks => Some(Tail::LastSync),
            Tail::LastSync => None,
        }
    }
}

/// The overhead of the live txgs of a pool.
#[derive(Debug, Default)]
pub(super) struct Overhead {
    /// Whether the txg at this place of the ring has overhead.
    on: [bool; TXGS],
    volumes: Vec<Metadata>,
    dirty: [u64; TXGS],
    pub(super) writes: Slab<Beside>,
    /// The part of the syncing txg's end that is under way.
    pub(super) tail: Option<Tail>,
    /// How many zios of that part have not ended.
    pub(super) left: u32,
    /// The zios that left the queues, counted before joining.
    pub(super) queued: Traffic,
    /// The same zios, counted after joining.
    pub(super) disks: Traffic,
}

/// The metadata of a volume, for each place of the ring of txgs.
#[derive(Debug)]
struct Metadata {
    tree: Tree,
    nodes: [Table<Node>; TXGS],
    /// The last block of data that has become dirty.
    last: [u32; TXGS],
}

impl Overhead {
    /// Adds a volume with this many blocks.
    pub(super) fn add_volume(&mut self, blocks: u64) {
        self.volumes.push(Metadata::new(Tree::of(blocks)));
    }

    /// Forgets everything but the volumes and the counters.
    pub(super) fn begin_anew(&mut self, on: bool) {
        let volumes = self.volumes.iter();
        *self = Overhead {
            on: [on; TXGS],
            volumes: volumes.map(|one| Metadata::new(one.tree)).collect(),
            queued: self.queued,
            disks: self.disks,
            ..Overhead::default()
        };
    }

    /// Decides whether a txg, which has no dirty data yet, has overhead.
    pub(super) fn decide(&mut self, txg: u64, on: bool) {
        self.on[slot_of(txg)] = on;
        self.volumes
            .iter_mut()
            .for_each(|one| one.last[slot_of(txg)] = 0);
    }

    pub(super) fn is_on(&self, txg: u64) -> bool {
        self.on[slot_of(txg)]
    }

    /// How many bytes of dirty metadata there are.
    pub(super) fn dirty(&self) -> u64 {
        self.dirty.iter().sum()
    }

    /// How many bytes of dirty metadata a txg has.
    pub(super) fn dirty_of(&self, txg: u64) -> u64 {
        self.dirty[slot_of(txg)]
    }

    pub(super) fn add_dirty(&mut self, txg: u64, bytes: u64) {
        self.dirty[slot_of(txg)] += bytes;
    }

    pub(super) fn take_dirty(&mut self, txg: u64, bytes: u64) {
        self.dirty[slot_of(txg)] -= bytes;
    }

    /// Counts a part of an I/O that a queue has picked, and the whole I/O with its first part.
    pub(super) fn count(&mut self, picked: &Picked, length: u32, is_first: bool) {
        self.queued.count(picked.op, length.into());
        if is_first {
            self.disks.count(picked.op, picked.length.into());
        }
    }

    pub(super) fn tree(&self, volume: usize) -> Tree {
        self.volumes[volume].tree
    }

    /// The last block of data of a volume that has become dirty in a txg.
    pub(super) fn last_of(&self, txg: u64, volume: usize) -> u32 {
        self.volumes[volume].last[slot_of(txg)]
    }

    /// Notes that a block of data has become dirty.
    pub(super) fn block_dirtied(&mut self, txg: u64, volume: usize, block: u32) {
        let last = &mut self.volumes[volume].last[slot_of(txg)];
        *last = block.max(*last);
    }

    /// Notes that a block right below this one has become dirty. Returns whether this one has become dirty
    /// by that.
    pub(super) fn dirtied(&mut self, txg: u64, key: Key) -> bool {
        self.edit(txg, key, |node| {
            node.below += 1;
            !core::mem::replace(&mut node.is_dirty, true)
        })
    }

    /// The first dirty block of a volume's metadata, counted through all levels, from this one on.
    pub(super) fn next_from(&self, txg: u64, volume: usize, from: u32) -> Option<u32> {
        self.volumes[volume].nodes[slot_of(txg)].next_used(from..u32::MAX)
    }

    /// How many volumes there are.
    pub(super) fn volumes(&self) -> usize {
        self.volumes.len()
    }

    /// Notes that the copies of a block are queued.
    pub(super) fn listed(&mut self, txg: u64, key: Key) {
        self.edit(txg, key, |node| node.copies = Some(COPIES));
    }

    /// Notes that a block right below this one, or a copy of this one, is on the disks. Returns whether this
    /// one is no longer dirty.
    pub(super) fn came_home(&mut self, txg: u64, key: Key, is_copy: bool) -> bool {
        self.edit(txg, key, |node| {
            if is_copy {
                node.copies = node.copies.map(|copies| copies - 1);
            } else {
                node.below -= 1;
            }
            let is_home = node.below == 0 && node.copies == Some(0);
            if is_home {
                *node = Node::default();
            }
            is_home
        })
    }

    fn edit<A>(&mut self, txg: u64, key: Key, change: impl FnOnce(&mut Node) -> A) -> A {
        let of_volume = &mut self.volumes[key.volume];
        let at = of_volume.tree.place_of(key);
        of_volume.nodes[slot_of(txg)].edit(at, change)
    }
}

impl Metadata {
    fn new(tree: Tree) -> Metadata {
        Metadata {
            tree,
            nodes: Default::default(),
            last: [0; TXGS],
        }
    }
}

/// The shape of a volume's metadata.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    blocks: u64,
    /// The levels of indirect blocks. The block of dnodes is right above them.
    indirect: u32,
}

impl Tree {
    /// The tree of a volume with this many blocks.
    pub(super) fn of(blocks: u64) -> Tree {
        let enough = |levels: &u32| POINTERS << (FAN_OUT_SHIFT * levels) >= blocks;
        let indirect = (1..MOST_INDIRECT).find(enough).unwrap_or(MOST_INDIRECT);
        Tree { blocks, indirect }
    }

    /// The indirect block right above a block of data.
    pub(super) fn above_block(volume: usize, block: u32) -> Key {
        Key {
            volume,
            level: 1,
            index: block >> FAN_OUT_SHIFT,
        }
    }

    /// The block right above this one; `None` above the root.
    pub(super) fn above(self, key: Key) -> Option<Key> {
        let is_indirect = key.level < self.indirect;
        (key.level < self.root()).then_some(Key {
            level: key.level + 1,
            index: if is_indirect {
                key.index >> FAN_OUT_SHIFT
            } else {
                0
            },
            ..key
        })
    }

    /// How many bytes of dirty data a block counts as. The root is no buffer of its own.
    pub(super) fn size(self, key: Key) -> u64 {
        match key.level {
            level if level == self.root() => 0,
            level if level == self.indirect + 1 => DNODE_BLOCK,
            _ => INDIRECT_BLOCK,
        }
    }

    /// The place of a block when the blocks of all levels are counted through, the lowest level first.
    fn place_of(self, key: Key) -> u32 {
        let below = (1..key.level).map(|level| self.count(level));
        below.sum::<u32>() + key.index
    }

    /// The block at this place.
    pub(super) fn at(self, volume: usize, place: u32) -> Key {
        let (mut level, mut index) = (1, place);
        while index >= self.count(level) {
            index -= self.count(level);
            level += 1;
        }
        Key {
            volume,
            level,
            index,
        }
    }

    /// How many blocks a level has.
    fn count(self, level: u32) -> u32 {
        if level <= self.indirect {
            self.blocks.div_ceil(1 << (FAN_OUT_SHIFT * level)) as u32
        } else {
            1
        }
    }

    /// Where the copies of a block are: how many members after the first, and how many bytes behind the
    /// volume's last dirty block on that member. Also returns the length. The members take turns. On a
    /// member, blocks that follow one another are adjacent, so that a queue can join them.
    pub(super) fn spot(self, key: Key, members: u64) -> (u64, u64, u32) {
        let index = u64::from(key.index);
        if key.level == 1 {
            let row = index / members;
            return (index, row * u64::from(FIRST_LENGTH), FIRST_LENGTH);
        }
        let firsts = u64::from(self.count(1)).div_ceil(members) * u64::from(FIRST_LENGTH);
        let row = u64::from(self.place_of(key) - self.count(1));
        (0, firsts + row * u64::from(LENGTH), LENGTH)
    }

    fn root(self) -> u32 {
        self.indirect + 1 + DNODE_LEVELS + 1
    }
}

/// The binary logarithm of how many blocks an indirect block points to: 128 KiB of pointers of 128 bytes.
const FAN_OUT_SHIFT: u32 = 10;
/// How many blocks a dnode points to.
const POINTERS: u64 = 3;
/// The levels of indirect blocks that are enough for every volume.
const MOST_INDIRECT: u32 = 4;
const INDIRECT_BLOCK: u64 = 128 << 10;
const DNODE_BLOCK: u64 = 16 << 10;
/// The levels of indirect blocks above the block of dnodes. ZFS makes as many as 2^48 dnodes need.
const DNODE_LEVELS: u32 = 5;
/// ZFS keeps two copies of metadata.
pub(super) const COPIES: u32 = 2;
/// The length of an indirect block above data after its compression: the checksums in it do not compress. If a
/// pool has no checksums it is about 6 KiB.
const FIRST_LENGTH: u32 = 32 << 10;
/// The length of any other block after its compression.
pub(super) const LENGTH: u32 = 4 << 10;
/// The copies of a block on one disk are this part of the disk apart.
pub(super) const COPY_GAP: u64 = 8;

/// How many blocks each later pass writes. With these counts a txg has as many zios beside its data as in
/// OpenZFS 2.3.2, which had 106, 135 to 141 and 202 to 211 with 16, 32 and 64 indirect blocks above data.
pub(super) const PASSES: [u32; 3] = [10, 5, 3];
/// ZFS keeps three copies of the pool's own objects.
pub(super) const PASS_COPIES: u32 = 3;
/// How many bytes of dirty data a block of a later pass counts as, on average.
pub(super) const PASS_BLOCK: u64 = 48 << 10;
/// How many members get uberblocks (ZFS: `SPA_SYNC_MIN_VDEVS`).
pub(super) const UBERBLOCK_MEMBERS: usize = 3;
/// How many labels a disk has.
pub(super) const LABELS: u64 = 4;
