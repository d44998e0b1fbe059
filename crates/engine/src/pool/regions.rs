//! The regions of a mirror: where its sides may differ.
//!
//! Modelled on the write-intent bitmap of Linux's md and the region log of its dm-raid1. A region is
//! marked dirty before the first write to it is queued. The region is clean again once no write to it is in
//! flight, and every side has completed a FLUSH that began after the last write had ended. After a power
//! cut the dirty regions are out of sync.

mod record;

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Range, RangeInclusive};

use super::table::Table;

/// The state of a region. The names of the states are those of dm-raid1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// The sides hold the same data, and will hold the same data after a power cut.
    #[default]
    Clean,
    /// The sides may differ after a power cut.
    Dirty,
    /// The sides may differ now.
    Nosync,
    /// A repair is making the sides identical.
    Recovering,
}

/// The state of a region in the durable record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Record {
    /// The record may lack the region.
    #[default]
    Absent,
    /// A write waits until the record has the region.
    Wanted,
    /// The record that the driver is making will have the region.
    Asked,
    /// The record has the region.
    Present,
}

/// The regions of one mirror.
#[derive(Debug)]
pub(super) struct Regions {
    /// The size of each side, in bytes.
    size: u64,
    /// The binary logarithm of the size of a region in bytes.
    shift: u32,
    table: Table<Region>,
    /// How many regions are dirty.
    dirty: u32,
    /// How many regions are out of sync or recovering.
    nosync: u32,
    /// How many times a region has become quiet. A region becomes quiet when its last write in flight ends.
    ended: u64,
    /// For each side, the value that `ended` had when the side's last completed FLUSH began.
    covered: Vec<u64>,
    /// Regions that have become quiet, each listed once, with the value that `ended` had then.
    quiet: VecDeque<(u32, u64)>,
    /// Where to look for the next region to repair.
    next: u32,
    /// Whether the driver keeps a durable record of the regions.
    is_recorded: bool,
    /// How many clean regions the record has.
    idle: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Region {
    state: State,
    record: Record,
    /// Whether the region is in the list of quiet regions.
    listed: bool,
    /// The number of writes in flight.
    writes: u32,
    /// The value of [`Regions::ended`] when the region last became quiet.
    ended: u64,
}

impl Regions {
    pub(super) fn new(sides: usize, size: u64) -> Regions {
        Regions::at_most(REGIONS_SHIFT, sides, size)
    }

    /// The regions of a mirror, at most two to the power of `regions`.
    fn at_most(regions: u32, sides: usize, size: u64) -> Regions {
        let needed = u64::BITS - size.saturating_sub(1).leading_zeros();
        Regions {
            size: size / SECTOR * SECTOR,
            shift: REGION_SHIFT.max(needed.saturating_sub(regions)),
            table: Table::default(),
            dirty: 0,
            nosync: 0,
            ended: 0,
            covered: vec![0; sides],
            quiet: VecDeque::new(),
            next: 0,
            is_recorded: false,
            idle: 0,
        }
    }

    /// How many regions are dirty.
    pub(super) fn dirty(&self) -> u32 {
        self.dirty
    }

    /// How many regions are out of sync, including the one that is being repaired.
    pub(super) fn nosync(&self) -> u32 {
        self.nosync
    }

    /// The total size in bytes of the regions that are out of sync.
    pub(super) fn nosync_bytes(&self) -> u64 {
        (u64::from(self.nosync) << self.shift).min(self.size)
    }

    /// The regions that overlap a range in bytes. The range must not be empty.
    pub(super) fn of(&self, range: &Range<u64>) -> RangeInclusive<u32> {
        (range.start >> self.shift) as u32..=((range.end - 1) >> self.shift) as u32
    }

    /// The range of a region in bytes.
    pub(super) fn range(&self, region: u32) -> Range<u64> {
        let start = u64::from(region) << self.shift;
        start..self.size.min(start + (1 << self.shift))
    }

    /// Whether the sides hold the same bytes at this place, apart from writes in flight.
    pub(super) fn is_in_sync(&self, offset: u64) -> bool {
        let region = self.table.get((offset >> self.shift) as u32);
        matches!(region.state, State::Clean | State::Dirty)
    }

    /// Whether no write to a region is in flight.
    pub(super) fn is_quiet(&self, region: u32) -> bool {
        self.table.get(region).writes == 0
    }
}

/// Counts the writes to regions.
impl Regions {
    /// Notes that a write is about to be queued.
    pub(super) fn begin(&mut self, range: &Range<u64>) {
        for at in self.of(range) {
            self.change(at, |region| {
                region.writes += 1;
                if region.state == State::Clean {
                    region.state = State::Dirty;
                }
            });
        }
    }

    /// Notes that all sides have answered a write. If the write has failed, its regions are out of sync.
    pub(super) fn end(&mut self, range: &Range<u64>, failed: bool) {
        for at in self.of(range) {
            self.change(at, |region| {
                region.writes -= 1;
                if failed {
                    region.state = State::Nosync;
                }
            });
            if self.is_quiet(at) {
                self.note_quiet(at);
            }
        }
    }

    fn note_quiet(&mut self, at: u32) {
        self.ended += 1;
        let ended = self.ended;
        let set = |region: &mut Region| {
            region.ended = ended;
            core::mem::replace(&mut region.listed, true)
        };
        if !self.table.edit(at, set) {
            self.quiet.push_back((at, ended));
        }
    }

    /// How many times a region has become quiet so far. A FLUSH that begins now covers the writes that have
    /// ended by now, so the caller keeps this number and passes it to `flushed` when the FLUSH has ended.
    pub(super) fn covers(&self) -> u64 {
        self.ended
    }

    /// Notes that a side has completed a FLUSH.
    pub(super) fn flushed(&mut self, side: usize, covers: u64) {
        self.covered[side] = self.covered[side].max(covers);
    }

    /// The lowest of the sides' values in `covered`. FLUSHes of all sides have covered every region that last
    /// became quiet when `ended` had at most this value.
    pub(super) fn covered(&self) -> u64 {
        self.covered.iter().min().copied().unwrap_or(0)
    }

    /// Cleans regions that the FLUSHes of all sides have covered, and returns whether there may be more. A
    /// step of the engine is bounded, so this function cleans at most `most` regions.
    pub(super) fn clear_covered(&mut self, most: usize) -> bool {
        let covered = self.covered();
        for _ in 0..most {
            let Some((at, _)) = self.quiet.front().filter(|(_, ended)| *ended <= covered) else {
                return false;
            };
            let at = *at;
            self.quiet.pop_front();
            let region = self.table.get(at);
            if region.writes == 0 && region.ended > covered {
                self.quiet.push_back((at, region.ended));
                continue;
            }
            self.change(at, |region| {
                region.listed = false;
                if region.writes == 0 && region.state == State::Dirty {
                    *region = Region {
                        record: region.record,
                        ..Region::default()
                    };
                }
            });
        }
        true
    }
}

/// Repairs regions.
impl Regions {
    /// Forgets the writes in flight. Every dirty region is then out of sync. If there is a durable record,
    /// every region in the record is out of sync, too.
    pub(super) fn power_cut(&mut self) {
        let is_recorded = self.is_recorded;
        self.change_all(|region| *region = region.after_power_cut(is_recorded));
        self.quiet.clear();
    }

    /// Notes that the caches of the disks are lost, while writes go on. A repair that is in progress
    /// starts over.
    pub(super) fn lose_caches(&mut self) {
        self.change_all(|region| {
            if region.state != State::Clean {
                region.state = State::Nosync;
            }
        });
    }

    /// Notes that the sides differ in a range in bytes. The range must not be empty.
    pub(super) fn differ(&mut self, range: &Range<u64>) {
        for at in self.of(range) {
            self.change(at, |region| region.state = State::Nosync);
        }
    }

    /// Changes all regions that are not in their initial state. This function visits them one by one, because
    /// a list of them would take memory.
    fn change_all(&mut self, change: impl Fn(&mut Region)) {
        let mut from = 0;
        while let Some(at) = self.table.next_used(from..u32::MAX) {
            self.change(at, &change);
            from = at + 1;
        }
    }

    /// Begins to repair a region that is out of sync.
    pub(super) fn recover(&mut self) -> Option<u32> {
        if self.nosync == 0 {
            return None;
        }
        let found = self.first_nosync(self.next..u32::MAX);
        let found = found.or_else(|| self.first_nosync(0..self.next))?;
        self.change(found, |region| region.state = State::Recovering);
        self.next = found + 1;
        Some(found)
    }

    fn first_nosync(&self, range: Range<u32>) -> Option<u32> {
        let is_nosync = |at: &u32| self.table.get(*at).state == State::Nosync;
        self.table.used(range).find(is_nosync)
    }

    /// Ends the repair of a region. The sides of the region hold the same bytes, unless a write to it has
    /// failed meanwhile. The copies may still be in the caches of disks, so the region is dirty.
    pub(super) fn recovered(&mut self, at: u32) {
        if self.table.get(at).state == State::Recovering {
            self.change(at, |region| region.state = State::Dirty);
        }
        self.note_quiet(at);
    }

    /// Gives up this attempt to repair a region.
    pub(super) fn not_recovered(&mut self, at: u32) {
        self.change(at, |region| region.state = State::Nosync);
    }

    /// Changes a region, and moves it from the count of its old state to the count of its new state.
    fn change(&mut self, at: u32, change: impl FnOnce(&mut Region)) {
        let (before, after) = self.table.edit(at, |region| {
            let before = *region;
            change(region);
            (before, *region)
        });
        self.idle = self.idle + u32::from(after.is_idle()) - u32::from(before.is_idle());
        let (before, after) = (before.state, after.state);
        if before == after {
            return;
        }
        for (state, up) in [(before, false), (after, true)] {
            let count = match state {
                State::Clean => continue,
                State::Dirty => &mut self.dirty,
                State::Nosync | State::Recovering => &mut self.nosync,
            };
            *count = if up { *count + 1 } else { *count - 1 };
        }
    }
}

/// The binary logarithm of the size of the smallest region: 1 MiB.
const REGION_SHIFT: u32 = 20;
/// A mirror has at most two to the power of this many regions. On disks above 1 TiB the regions are larger,
/// so that a mirror's table has at most 24 MiB.
const REGIONS_SHIFT: u32 = 20;
const SECTOR: u64 = 512;

#[cfg(test)]
mod tests;
