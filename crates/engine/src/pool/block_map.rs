//! Where the blocks of a pool's volumes are on its disks. This is the only owner of that knowledge.
//!
//! With the static layout, the members take blocks in turn. With the dynamic layout, a table has the place of
//! each block ([`Placement`]).

use alloc::vec::{self, Vec};
use core::ops::Range;

use super::block_io::BlockWrite;
use super::blocks::Content;
use super::config::{Layout, PoolConfig, PoolDisk, PoolError, VolumeConfig};
use super::jobs::TOUCHED_MAX;
use super::placement::{Place, Placement};

#[derive(Debug)]
pub(crate) struct BlockMap {
    /// The sides of each member, as indices of the pool's disks.
    members: Vec<Vec<usize>>,
    /// For each disk, its member and its place among the sides of the member.
    sides: Vec<(usize, usize)>,
    /// The size of the smallest disk in bytes.
    smallest: u64,
    volumes: Vec<Extent>,
    /// The places of blocks under the dynamic layout.
    placement: Option<Placement>,
}

/// The room that a volume has on every disk.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Where the volume's blocks begin, under the static layout.
    base: u64,
    /// The number of blocks.
    count: u64,
    block_size: u32,
}

/// The part of a run of blocks on one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) member: usize,
    /// Where the part begins on the member.
    pub(super) offset: u64,
    /// The number of blocks in the part. On the member, they follow one another.
    pub(super) rows: u32,
}

impl BlockMap {
    pub(super) fn new(config: &PoolConfig) -> BlockMap {
        let disks = || config.members.iter().flatten();
        let mut indices = 0..disks().count();
        let of_member = |sides: &Vec<PoolDisk>| indices.by_ref().take(sides.len()).collect();
        let sides = |(member, sides): (usize, &Vec<PoolDisk>)| {
            (0..sides.len()).map(move |side| (member, side))
        };
        let is_dynamic = config.layout == Layout::Dynamic;
        BlockMap {
            members: config.members.iter().map(of_member).collect(),
            sides: config.members.iter().enumerate().flat_map(sides).collect(),
            smallest: disks().map(|disk| disk.size).min().unwrap_or(0),
            volumes: Vec::new(),
            placement: is_dynamic.then(|| Placement::new(&config.members)),
        }
    }

    /// Reserves room for a new volume behind the other volumes.
    pub(super) fn add_volume(&mut self, config: &VolumeConfig) -> Result<(), PoolError> {
        let block_size = config.block_size;
        let mut extent = Extent {
            base: 0,
            count: config.size / u64::from(block_size),
            block_size,
        };
        match &mut self.placement {
            Some(placement) => {
                let taken = self.volumes.iter().map(|other| other.count).sum();
                placement.add_volume(config, taken)?;
            }
            None => {
                extent.base = self.end().next_multiple_of(u64::from(block_size));
                if self.end_of(&extent) > self.smallest {
                    let left = self.smallest.saturating_sub(extent.base) / u64::from(block_size);
                    return Err(PoolError::NoRoom {
                        wanted: config.size,
                        left: left * u64::from(block_size) * self.members.len() as u64,
                    });
                }
            }
        }
        self.volumes.push(extent);
        Ok(())
    }

    /// Where the last volume's blocks end on every disk, under the static layout.
    fn end(&self) -> u64 {
        let ends = self.volumes.iter().map(|extent| self.end_of(extent));
        ends.max().unwrap_or(0)
    }

    fn end_of(&self, extent: &Extent) -> u64 {
        let rows = extent.count.div_ceil(self.members.len() as u64);
        extent.base + rows * u64::from(extent.block_size)
    }

    pub(super) fn is_dynamic(&self) -> bool {
        self.placement.is_some()
    }

    /// The number of members.
    pub(super) fn members(&self) -> usize {
        self.members.len()
    }

    /// The sides of a member, as indices of the pool's disks.
    #[inline]
    pub(super) fn sides(&self, member: usize) -> &[usize] {
        &self.members[member]
    }

    /// The member of a disk, and the disk's place among the sides of the member.
    #[inline]
    pub(super) fn side_of(&self, disk: usize) -> (usize, usize) {
        self.sides[disk]
    }

    /// Notes that a write has ended on all sides: it has filled the places of its blocks, or freed them.
    /// Returns whether it has freed them, so that other blocks may get their rows.
    #[inline]
    pub(super) fn ended(&mut self, write: &BlockWrite) -> bool {
        self.placement
            .as_mut()
            .is_some_and(|placement| note_end(placement, write))
    }

    /// The places of blocks under the dynamic layout; `None` under the static layout.
    pub(super) fn placement(&self) -> Option<&Placement> {
        self.placement.as_ref()
    }

    pub(super) fn placement_mut(&mut self) -> Option<&mut Placement> {
        self.placement.as_mut()
    }

    /// The member of a block, and where the block begins there. `None` if no disk has the block; the block
    /// is then zeroes.
    #[inline]
    pub(super) fn place_of(&self, volume: usize, block: u32) -> Option<(usize, u64)> {
        let extent = &self.volumes[volume];
        let Some(placement) = &self.placement else {
            let members = self.members.len() as u32;
            let offset = u64::from(block / members) * u64::from(extent.block_size);
            return Some(((block % members) as usize, extent.base + offset));
        };
        let place = placement.get(volume, block).filter(|place| place.written)?;
        let part = part_of(place, extent.block_size);
        Some((part.member, part.offset))
    }

    /// Where the blocks of a volume begin, on every disk. `None` under the dynamic layout.
    pub(crate) fn base_of(&self, volume: usize) -> Option<u64> {
        (!self.is_dynamic()).then(|| self.volumes[volume].base)
    }

    /// Whether a member has any block of a range. Under the dynamic layout, every member counts as having
    /// blocks of a long range, because looking at each block would take too long.
    pub(super) fn has_part(&self, volume: usize, range: Range<u32>, member: usize) -> bool {
        let Some(placement) = &self.placement else {
            let members = self.members.len();
            let ahead = (member + members - range.start as usize % members) % members;
            return ahead < range.len();
        };
        if range.len() > TOUCHED_MAX as usize {
            return true;
        }
        let mut places = placement.placed(volume, range);
        places.any(|place| place.member() == member)
    }

    /// The ranges in bytes that a write covers, each with its member.
    pub(super) fn ranges_of(
        &self,
        write: &BlockWrite,
    ) -> impl Iterator<Item = (usize, Range<u64>)> + Clone + use<> {
        let block_size = self.volumes[write.volume].block_size;
        let range = move |part: Part| part.offset..part.end(block_size);
        self.parts_of(write)
            .map(move |part| (part.member, range(part)))
    }

    /// How many sides a write goes to; 0 if the write needs a place first, or if no disk has its blocks.
    #[inline]
    pub(super) fn sides_of(&self, write: &BlockWrite) -> u32 {
        let sides = |member: usize| self.members[member].len() as u32;
        if self.is_dynamic() {
            return self.parts_of(write).map(|part| sides(part.member)).sum();
        }
        let members = self.members.len() as u32;
        let blocks = write.block..write.block + write.count.min(members);
        blocks.map(|block| sides((block % members) as usize)).sum()
    }

    #[inline]
    pub(super) fn parts_of(&self, write: &BlockWrite) -> Parts {
        let Extent {
            base, block_size, ..
        } = self.volumes[write.volume];
        match &self.placement {
            None => Parts::InTurn(InTurn {
                base,
                block_size,
                members: self.members.len() as u32,
                block: write.block,
                count: write.count,
                at: 0,
            }),
            Some(placement) => placed_parts(placement, write, block_size),
        }
    }
}

/// The parts of a write, one for each run of rows.
#[derive(Clone)]
pub(super) enum Parts {
    InTurn(InTurn),
    One(Option<Part>),
    Many(vec::IntoIter<Part>),
}

impl Iterator for Parts {
    type Item = Part;

    #[inline]
    fn next(&mut self) -> Option<Part> {
        match self {
            Parts::InTurn(parts) => parts.next(),
            Parts::One(part) => part.take(),
            Parts::Many(parts) => parts.next(),
        }
    }

    /// Matches once, and not for each part: a sync visits the parts of many writes.
    #[inline]
    fn fold<B, F: FnMut(B, Part) -> B>(self, init: B, f: F) -> B {
        match self {
            Parts::InTurn(parts) => parts.fold(init, f),
            Parts::One(part) => part.into_iter().fold(init, f),
            Parts::Many(parts) => parts.fold(init, f),
        }
    }
}

/// The parts of a write under the static layout: one for each member.
#[derive(Clone)]
pub(super) struct InTurn {
    base: u64,
    block_size: u32,
    members: u32,
    block: u32,
    count: u32,
    at: u32,
}

impl Iterator for InTurn {
    type Item = Part;

    #[inline]
    fn next(&mut self) -> Option<Part> {
        if self.at == self.count.min(self.members) {
            return None;
        }
        let block = self.block + self.at;
        let rows = (self.count - self.at).div_ceil(self.members);
        self.at += 1;
        Some(Part {
            member: (block % self.members) as usize,
            offset: self.base + u64::from(block / self.members) * u64::from(self.block_size),
            rows,
        })
    }
}

#[inline(never)]
fn placed_parts(placement: &Placement, write: &BlockWrite, block_size: u32) -> Parts {
    if write.count == 1 {
        let place = placement.get(write.volume, write.block);
        return Parts::One(place.map(|place| part_of(place, block_size)));
    }
    let places = placement.placed(write.volume, write.blocks()).collect();
    Parts::Many(runs_of(places, block_size).into_iter())
}

#[inline(never)]
fn note_end(placement: &mut Placement, write: &BlockWrite) -> bool {
    match write.content {
        // The place stays unwritten. The next write of the block goes to the same place.
        _ if write.failed => {}
        Content::Trim => {
            placement.release(write.volume, write.blocks());
            return true;
        }
        _ if write.count == 1 => placement.written(write.volume, write.block),
        _ => {}
    }
    false
}

fn part_of(place: Place, block_size: u32) -> Part {
    Part {
        member: place.member(),
        offset: u64::from(place.row) * u64::from(block_size),
        rows: 1,
    }
}

/// The parts of a write whose blocks have these places. Consecutive rows of one member become one part.
fn runs_of(mut places: Vec<Place>, block_size: u32) -> Vec<Part> {
    places.sort_unstable_by_key(|place| (place.member(), place.row));
    let mut parts: Vec<Part> = Vec::new();
    for next in places.into_iter().map(|place| part_of(place, block_size)) {
        match parts.last_mut() {
            Some(last) if last.member == next.member && last.end(block_size) == next.offset => {
                last.rows += 1;
            }
            _ => parts.push(next),
        }
    }
    parts
}

impl Part {
    fn end(&self, block_size: u32) -> u64 {
        self.offset + u64::from(self.rows) * u64::from(block_size)
    }
}
