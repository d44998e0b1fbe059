//! The dynamic layout's table of places: which block is in which row of which member.
//!
//! A block gets a row when it is first written, and gives it back when it has been trimmed. A row is as long
//! as a block, so all volumes of the pool have blocks of one size. A row may still hold the bytes of the
//! block that had the row before, so a place counts only once its block has been written there. A power cut
//! takes a block's place away if no sync of the disks has covered the first write to that place. A real pool
//! keeps a table of places on its disks and writes it with each sync, and would lose the same places.

use alloc::vec::Vec;
use core::ops::Range;

use super::config::{PoolDisk, PoolError, VolumeConfig};
use super::table::Table;

#[derive(Debug)]
pub(super) struct Placement {
    /// The size of a block in bytes; 0 before there is a volume.
    block_size: u32,
    /// The size of the smallest side of each member.
    sizes: Vec<u64>,
    members: Vec<Rows>,
    /// The table of each volume.
    places: Vec<Table<Option<Place>>>,
}

/// The place of a block. A place takes eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) row: u32,
    member: u16,
    /// Whether a write has put the block's bytes at this place.
    pub(super) written: bool,
}

impl Place {
    pub(super) fn member(&self) -> usize {
        usize::from(self.member)
    }
}

/// The rows of a member.
#[derive(Debug, Default)]
struct Rows {
    count: u32,
    /// The first row that was never taken.
    next: u32,
    /// Rows that were given back.
    free: Vec<u32>,
    /// For each row, the serial number of its first write: the write that first put the present block there.
    /// A first write gets its number when it ends.
    firsts: Table<u64>,
    /// How many first writes have ended.
    ended: u64,
    /// For each side, the number of first writes that syncs of the side's disk have covered.
    covered: Vec<u64>,
}

impl Rows {
    fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let row = self.next;
            (row < self.count).then(|| {
                self.next += 1;
                row
            })
        })
    }

    fn left(&self) -> u32 {
        self.count - self.next + self.free.len() as u32
    }

    /// Whether the syncs of all sides have covered the first write of a row.
    fn is_covered(&self, row: u32) -> bool {
        let covered = self.covered.iter().min().copied();
        self.firsts.get(row) <= covered.unwrap_or(0)
    }
}

impl Placement {
    pub(super) fn new(members: &[Vec<PoolDisk>]) -> Placement {
        let members = &members[..members.len().min(MEMBERS_MAX)];
        let smallest = |sides: &Vec<PoolDisk>| sides.iter().map(|disk| disk.size).min();
        let rows = |sides: &Vec<PoolDisk>| Rows {
            covered: alloc::vec![0; sides.len()],
            ..Rows::default()
        };
        Placement {
            block_size: 0,
            sizes: members
                .iter()
                .map(|sides| smallest(sides).unwrap_or(0))
                .collect(),
            members: members.iter().map(rows).collect(),
            places: Vec::new(),
        }
    }

    /// Adds a volume. The other volumes have `taken` blocks in total.
    pub(super) fn add_volume(
        &mut self,
        config: &VolumeConfig,
        taken: u64,
    ) -> Result<(), PoolError> {
        let wanted = config.block_size;
        if self.block_size != 0 && self.block_size != wanted {
            let others = self.block_size;
            return Err(PoolError::OtherBlockSize { wanted, others });
        }
        let rows = self.sizes.iter().map(|size| rows_of(*size, wanted));
        let room = rows.clone().map(u64::from).sum::<u64>();
        let left = (room - taken) * u64::from(wanted);
        if config.size > left {
            let wanted = config.size;
            return Err(PoolError::NoRoom { wanted, left });
        }
        for (member, count) in self.members.iter_mut().zip(rows) {
            member.count = count;
        }
        self.block_size = wanted;
        self.places.push(Table::default());
        Ok(())
    }

    pub(super) fn get(&self, volume: usize, block: u32) -> Option<Place> {
        self.places[volume].get(block)
    }

    /// The places of those blocks of a range that have one, in the order of blocks.
    pub(super) fn placed(&self, volume: usize, range: Range<u32>) -> impl Iterator<Item = Place> {
        let places = &self.places[volume];
        places.used(range).filter_map(|block| places.get(block))
    }

    /// How many more blocks each member has room for.
    pub(super) fn left(&self) -> impl Iterator<Item = u32> {
        self.members.iter().map(Rows::left)
    }

    /// Gives a block a row of a member, if the member has a row left.
    pub(super) fn place(&mut self, volume: usize, block: u32, member: usize) {
        let Some(row) = self.members[member].take() else {
            return;
        };
        let place = Place {
            row,
            member: member as u16,
            written: false,
        };
        self.places[volume].edit(block, |value| *value = Some(place));
    }

    /// Notes that all sides have written a block.
    pub(super) fn written(&mut self, volume: usize, block: u32) {
        let Some(place) = self.get(volume, block).filter(|place| !place.written) else {
            return;
        };
        let written = Place {
            written: true,
            ..place
        };
        self.places[volume].edit(block, |value| *value = Some(written));
        let rows = &mut self.members[place.member()];
        rows.ended += 1;
        rows.firsts.edit(place.row, |first| *first = rows.ended);
    }

    /// Takes back the rows of a range of blocks.
    pub(super) fn release(&mut self, volume: usize, range: Range<u32>) {
        let blocks: Vec<u32> = self.places[volume].used(range).collect();
        // Rows are taken from the end of the list, so this order gives out the lowest row first.
        for block in blocks.into_iter().rev() {
            let before = self.places[volume].edit(block, |value| value.take());
            if let Some(place) = before {
                self.members[place.member()].free.push(place.row);
            }
        }
    }

    /// How many first writes a sync of a member will cover if it begins now.
    pub(super) fn covers(&self, member: usize) -> u64 {
        self.members[member].ended
    }

    /// Notes that a side has synced.
    pub(super) fn synced(&mut self, member: usize, side: usize, covers: u64) {
        let rows = &mut self.members[member];
        rows.covered[side] = rows.covered[side].max(covers);
    }

    /// After a power cut, looks at the next block that has a place, and takes the block's row back if the
    /// first write to the row may be lost. Returns where to go on; `None` if no block is left.
    pub(super) fn lose_next(&mut self, volume: usize, from: u32) -> Option<u32> {
        // A pool may have no volume.
        let places = self.places.get(volume)?;
        let block = places.next_used(from..u32::MAX)?;
        let is_kept = |place: Place| {
            let rows = &self.members[place.member()];
            place.written && rows.is_covered(place.row)
        };
        if !places.get(block).is_some_and(is_kept) {
            self.release(volume, block..block + 1);
        }
        Some(block + 1)
    }
}

fn rows_of(size: u64, block_size: u32) -> u32 {
    u32::try_from(size / u64::from(block_size)).unwrap_or(u32::MAX)
}

/// The maximum number of members, because a place has two bytes for its member.
const MEMBERS_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::Placement;
    use crate::pool::config::{PoolDisk, PoolError, VolumeConfig, WritePolicy};
    use crate::zio::{DiskId, PoolId};
    use alloc::vec;

    const BLOCK: u32 = 4_096;

    fn volume(blocks: u64, block_size: u32) -> VolumeConfig {
        VolumeConfig {
            pool: PoolId(0),
            size: blocks * u64::from(block_size),
            block_size,
            write: WritePolicy::Back,
        }
    }

    /// A mirror of two sides with five rows, and a disk with three rows.
    fn placement() -> Placement {
        let disk = |disk, rows: u64| PoolDisk {
            disk: DiskId(disk),
            size: rows * u64::from(BLOCK) + 7,
            rotational: false,
        };
        Placement::new(&[vec![disk(0, 5), disk(1, 6)], vec![disk(2, 3)]])
    }

    /// The places of a mirror and a disk, with a volume whose first blocks have been written to the mirror.
    fn with_blocks(blocks: u32) -> Placement {
        let mut placement = placement();
        placement.add_volume(&volume(8, BLOCK), 0).unwrap();
        for block in 0..blocks {
            placement.place(0, block, 0);
            placement.written(0, block);
        }
        placement
    }

    fn power_cut(placement: &mut Placement) {
        let mut at = Some(0);
        while let Some(from) = at {
            at = placement.lose_next(0, from);
        }
    }

    fn row(placement: &Placement, block: u32) -> Option<u32> {
        placement.get(0, block).map(|place| place.row)
    }

    #[test]
    fn members_give_all_of_their_rows() {
        let mut placement = placement();
        placement.add_volume(&volume(6, BLOCK), 0).unwrap();
        let (wanted, left) = (3 * u64::from(BLOCK), 2 * u64::from(BLOCK));
        let added = placement.add_volume(&volume(3, BLOCK), 6);
        assert_eq!(added, Err(PoolError::NoRoom { wanted, left }));
        let (wanted, others) = (8_192, BLOCK);
        let added = placement.add_volume(&volume(1, wanted), 6);
        assert_eq!(added, Err(PoolError::OtherBlockSize { wanted, others }));
        assert_eq!(placement.add_volume(&volume(2, BLOCK), 6), Ok(()));
        assert!(placement.left().eq([5, 3]));
    }

    #[test]
    fn rows_are_used_again_the_lowest_first() {
        let mut placement = with_blocks(5);
        placement.release(0, 1..4);
        assert!(placement.left().eq([3, 3]));
        placement.place(0, 7, 0);
        placement.place(0, 6, 0);
        assert_eq!(row(&placement, 7), Some(1));
        assert_eq!(row(&placement, 6), Some(2));
        assert_eq!(row(&placement, 2), None);
    }

    #[test]
    fn a_power_cut_takes_what_no_sync_of_all_sides_covers() {
        let mut placement = with_blocks(2);
        let covers = placement.covers(0);
        placement.place(0, 2, 0);
        // This write ends, and another block gets a place, while the disks sync.
        placement.written(0, 2);
        placement.place(0, 3, 0);
        placement.synced(0, 0, covers);
        let mut half = with_blocks(2);
        half.synced(0, 0, covers);
        power_cut(&mut half);
        assert_eq!(row(&half, 0), None, "the other side may have lost it");
        placement.synced(0, 1, covers);
        power_cut(&mut placement);
        let rows = [0, 1, 2, 3].map(|block| row(&placement, block));
        assert_eq!(rows, [Some(0), Some(1), None, None]);
        assert!(placement.left().eq([3, 3]));
    }

    #[test]
    fn a_row_that_is_used_again_must_be_synced_again() {
        let mut placement = with_blocks(1);
        let covers = placement.covers(0);
        placement.release(0, 0..1);
        placement.place(0, 4, 0);
        placement.written(0, 4);
        placement.synced(0, 0, covers);
        placement.synced(0, 1, covers);
        power_cut(&mut placement);
        assert_eq!(row(&placement, 4), None);
    }
}
