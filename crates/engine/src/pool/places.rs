//! Where blocks are on the disks, and where new blocks go.
//!
//! With the static layout, the members take blocks in turn. The dynamic layout gives a new block to the
//! member with the fewest bytes queued. While all members have many I/Os queued, new blocks wait, and then go
//! to the first member whose queue is short again (OpenZFS: the allocation throttle of `metaslab.c` and
//! `zio.c`).

use alloc::vec::{self, Vec};
use core::cmp::Reverse;
use core::ops::Range;

use super::block_io::BlockWrite;
use super::blocks::Content;
use super::cut::Stage;
use super::jobs::TOUCHED_MAX;
use super::placement::{Place, Placement};
use super::pool::Pool;
use super::stats::Class;
use super::step::{Covers, Step};
use super::tunable::Tunable;

/// One step drops at most this many out-of-date entries from the list of unplaced writes.
const OLD_MAX: u32 = 4_096;

/// The part of a write on one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) member: usize,
    /// Where the part begins on the member.
    pub(super) offset: u64,
    /// The number of blocks in the part. On the member, they follow one another.
    pub(super) rows: u32,
}

/// Finds the places of blocks.
impl Pool {
    /// The member of a block, and where the block begins there. `None` if no disk has the block; the block
    /// is then zeroes.
    #[inline]
    pub(super) fn place_of(&self, volume: usize, block: u32) -> Option<(usize, u64)> {
        let Some(placement) = &self.placement else {
            let part = self.static_part(volume, block, 1);
            return Some((part.member, part.offset));
        };
        let place = placement.get(volume, block).filter(|place| place.written)?;
        Some((place.member(), self.offset_of(volume, place)))
    }

    /// Where the blocks of a volume begin, on every disk. `None` under the dynamic layout.
    pub(crate) fn base_of(&self, volume: usize) -> Option<u64> {
        let is_static = self.placement.is_none();
        is_static.then(|| self.volumes[volume].base)
    }

    fn offset_of(&self, volume: usize, place: Place) -> u64 {
        u64::from(place.row) * u64::from(self.volumes[volume].block_size)
    }

    fn static_part(&self, volume: usize, block: u32, rows: u32) -> Part {
        let (volume, members) = (&self.volumes[volume], self.members.len());
        let row = block as usize / members;
        Part {
            member: block as usize % members,
            offset: volume.base + row as u64 * u64::from(volume.block_size),
            rows,
        }
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

    /// The range in bytes that a part of a write covers on its member.
    pub(super) fn range_of(&self, id: u32, part: Part) -> Range<u64> {
        part.offset..part.end(self.volumes[self.writes[id].volume].block_size)
    }

    /// How many sides a write goes to; 0 if the write needs a place first, or if no disk has its blocks.
    #[inline]
    pub(super) fn sides_of(&self, write: &BlockWrite) -> u32 {
        let sides = |member: usize| self.members[member].len() as u32;
        if self.placement.is_some() {
            return self.parts_of(write).map(|part| sides(part.member)).sum();
        }
        let members = self.members.len() as u32;
        let blocks = write.block..write.block + write.count.min(members);
        blocks.map(|block| sides((block % members) as usize)).sum()
    }

    /// The parts of a write.
    #[inline]
    pub(super) fn parts_of(&self, write: &BlockWrite) -> Parts {
        match &self.placement {
            None => Parts::InTurn(self.in_turn(write)),
            Some(placement) => self.placed_parts(placement, write),
        }
    }

    /// The parts of a write under the static layout.
    #[inline]
    pub(super) fn in_turn(&self, write: &BlockWrite) -> InTurn {
        InTurn {
            base: self.volumes[write.volume].base,
            block_size: self.volumes[write.volume].block_size,
            members: self.members.len() as u32,
            block: write.block,
            count: write.count,
            at: 0,
        }
    }

    #[inline(never)]
    fn placed_parts(&self, placement: &Placement, write: &BlockWrite) -> Parts {
        let block_size = self.volumes[write.volume].block_size;
        if write.count == 1 {
            let place = placement.get(write.volume, write.block);
            return Parts::One(place.map(|place| part_of(place, block_size)));
        }
        let range = write.block..write.block + write.count;
        let places = placement.placed(write.volume, range).collect();
        Parts::Many(runs_of(places, block_size).into_iter())
    }
}

/// The parts of a write, one for each run of rows.
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
}

/// The parts of a write under the static layout: one for each member.
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

/// Gives places to new blocks.
impl Pool {
    /// Whether a write can go into the queues of its disks now. If the write needs a place first, it waits
    /// for the place. A write of zeroes needs none: if no disk has any of its blocks, there is nothing to do.
    #[inline]
    pub(super) fn can_be_queued(&mut self, id: u32) -> bool {
        self.writes[id].sides > 0 || self.file(id)
    }

    /// Notes a write that cannot be queued now: the write waits for a place, or ends because it has nothing
    /// to do. Always returns false.
    #[inline(never)]
    fn file(&mut self, id: u32) -> bool {
        let write = &self.writes[id];
        match write.unplaced {
            true => self.unplaced.push(id, write.class),
            false => self.done_at_once.push_back(id),
        }
        false
    }

    /// Gives places to at most this many new blocks, while a member has a short queue. Returns whether a
    /// block got a place.
    pub(super) fn place_new(&mut self, most: &mut u32, step: &mut Step<'_>) -> bool {
        let (before, mut old) = (*most, OLD_MAX);
        while let Some(id) = self.next_unplaced(&mut old)
            && let Some(member) = self.member_for_new()
        {
            if *most == 0 {
                self.jobs.place_later();
                break;
            }
            *most -= 1;
            self.place(id, member);
            self.queue_write(id, step);
        }
        if old == 0 {
            self.jobs.place_later();
        }
        let has_placed = *most < before;
        if has_placed {
            (0..self.disks.len()).for_each(|disk| self.pump(disk, step));
        }
        has_placed
    }

    fn next_unplaced(&mut self, most_old: &mut u32) -> Option<u32> {
        let writes = &self.writes;
        let waits = |id, is_sync| {
            let write: &BlockWrite = &writes[id];
            write.unplaced && (write.class == Class::SyncWrite) == is_sync
        };
        self.unplaced.next(waits, most_old)
    }

    fn place(&mut self, id: u32, member: usize) {
        let sides = self.members[member].len() as u32;
        let write = &mut self.writes[id];
        (write.sides, write.left, write.unplaced) = (sides, sides, false);
        if let Some(placement) = &mut self.placement {
            placement.place(write.volume, write.block, member);
        }
    }

    /// Of the members that have room and a short queue, the member with the fewest bytes queued. Among
    /// members with equally few bytes, the one with the most room.
    fn member_for_new(&self) -> Option<usize> {
        let most = self.queue_depth();
        let members = self.placement.iter().flat_map(Placement::left).enumerate();
        let loads = members.map(|(member, left)| (member, left, self.load(member)));
        let short = loads.filter(|(_, left, (_, queued))| *left > 0 && *queued < most);
        let best = short.min_by_key(|(_, left, (bytes, _))| (*bytes, Reverse(*left)));
        best.map(|(member, ..)| member)
    }

    /// How many bytes and I/Os are queued or in flight on the busiest side of a member.
    fn load(&self, member: usize) -> (u64, u64) {
        let loads = self.members[member].iter();
        let loads = loads.map(|disk| self.disks[*disk].queue.load());
        loads.max().unwrap_or_default()
    }

    /// A member takes new blocks while it has fewer I/Os queued than this number.
    fn queue_depth(&self) -> u64 {
        let percent = self.tunables.get(Tunable::QueueDepthPct);
        let active = self.tunables.get(Tunable::AsyncWriteMaxActive);
        (percent * active / 100).max(1)
    }

    /// Ends a write that has nothing to do, because no disk has its blocks. Returns whether there was a
    /// write to end.
    pub(super) fn end_done_at_once(&mut self, step: &mut Step<'_>) -> bool {
        let id = self.done_at_once.pop_front();
        if let Some(id) = id {
            self.end_write(id, step);
        }
        id.is_some()
    }
}

/// Handles the completion of writes and syncs.
impl Pool {
    /// Notes that a write has ended on all sides: it has filled the places of its blocks, or freed them.
    #[inline(never)]
    pub(super) fn note_places(&mut self, id: u32) {
        let write = self.writes[id];
        let Some(placement) = &mut self.placement else {
            return;
        };
        let (volume, blocks) = (write.volume, write.block..write.block + write.count);
        match write.content {
            // The place stays unwritten. The next write of the block goes to the same place.
            _ if write.failed => {}
            Content::Trim => {
                placement.release(volume, blocks.clone());
                self.answer_zeroes(volume, blocks);
            }
            _ if write.count == 1 => placement.written(volume, write.block),
            _ => {}
        }
    }

    /// Makes reads of these blocks that are in flight answer zeroes, because the rows of these blocks may now
    /// go to other blocks.
    fn answer_zeroes(&mut self, volume: usize, blocks: Range<u32>) {
        let mut next = self.reads.next_live(0);
        while let Some(id) = next {
            let read = &mut self.reads[id];
            read.trimmed |= read.volume == volume && blocks.contains(&read.block);
            next = self.reads.next_live(id + 1);
        }
    }

    /// The writes that a sync of a disk will cover if the sync begins now.
    pub(super) fn covers(&self, disk: usize) -> Covers {
        let member = || self.side_of(disk).0;
        let (placement, mirrors) = (self.placement.as_ref(), self.mirrors.as_ref());
        Covers {
            firsts: placement.map_or(0, |placement| placement.covers(member())),
            quiet: mirrors.map_or(0, |mirrors| mirrors.covers(member())),
        }
    }

    /// Notes that a disk has synced.
    pub(super) fn note_sync(&mut self, disk: usize, covers: Covers) {
        let (member, side) = self.side_of(disk);
        // Until the pool has looked at all places after a power cut, `covers.firsts` may count writes that
        // the cut has lost.
        let loses = self
            .cut
            .as_ref()
            .is_some_and(|cut| cut.stage != Stage::Over);
        if let Some(placement) = self.placement.as_mut().filter(|_| !loses) {
            placement.synced(member, side, covers.firsts);
        }
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.flushed(member, side, covers.quiet);
        }
    }

    /// The member of a disk, and the disk's place among the sides of the member.
    fn side_of(&self, disk: usize) -> (usize, usize) {
        let members = self.members.iter().enumerate();
        let side = |sides: &Vec<usize>| sides.iter().position(|other| *other == disk);
        let mut sides = members.filter_map(|(member, sides)| Some((member, side(sides)?)));
        sides.next().unwrap_or_default()
    }
}
