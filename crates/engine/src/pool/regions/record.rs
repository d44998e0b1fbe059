//! The durable record of the regions whose sides may differ. The driver keeps the record. After an unclean
//! stop, all recorded regions are out of sync.
//!
//! A write waits until the record has its regions (Linux's md: the write-intent bitmap). A clean region
//! leaves the record only after some time, because making a new record for each flush would be slow.

use core::ops::Range;

use super::{Record, Region, Regions, State};

impl Region {
    /// Whether the record has the region although the region is clean.
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Clean && self.record == Record::Present
    }

    pub(super) fn after_power_cut(self, is_recorded: bool) -> Region {
        let is_present = self.record == Record::Present;
        let differs = !is_recorded || is_present || self.state != State::Clean;
        Region {
            state: if differs { State::Nosync } else { State::Clean },
            record: if is_present {
                Record::Present
            } else {
                Record::Absent
            },
            ..Region::default()
        }
    }
}

impl Regions {
    /// The same mirror, divided into so few regions that a durable record can hold them. The caller must
    /// replace the mirror's regions with these before the first write.
    pub(in super::super) fn recorded(&self) -> Regions {
        Regions {
            is_recorded: true,
            ..Regions::at_most(RECORDED_SHIFT, self.covered.len(), self.size)
        }
    }

    /// Whether the record has the regions of a range. If it lacks any, marks them as wanted, and their
    /// neighbours, too, because later writes often touch these.
    pub(in super::super) fn are_recorded(&mut self, range: &Range<u64>) -> bool {
        let mut all = true;
        for at in self.of(range) {
            if self.table.get(at).record != Record::Present {
                all = false;
                self.want(at);
            }
        }
        all
    }

    fn want(&mut self, at: u32) {
        let first = at / GROUP * GROUP;
        let last = (first + GROUP - 1).min(*self.of(&(0..self.size.max(1))).end());
        for at in first..=last {
            if self.table.get(at).record == Record::Absent {
                self.change(at, |region| region.record = Record::Wanted);
            }
        }
    }

    /// Begins a new record. If `drops`, the new record leaves out the clean regions.
    pub(in super::super) fn begin_record(&mut self, drops: bool) {
        self.change_all(|region| {
            region.record = match region.record {
                Record::Present if drops && region.is_idle() => Record::Absent,
                Record::Absent if region.state == State::Clean => Record::Absent,
                Record::Absent | Record::Wanted => Record::Asked,
                record => record,
            }
        });
    }

    /// Notes that the driver has made the record, or has failed to.
    pub(in super::super) fn end_record(&mut self, failed: bool) {
        let record = if failed {
            Record::Wanted
        } else {
            Record::Present
        };
        self.change_all(|region| {
            if region.record == Record::Asked {
                region.record = record;
            }
        });
    }

    /// The regions that belong in the record that the driver is making.
    pub(in super::super) fn in_record(&self) -> impl Iterator<Item = u32> + '_ {
        let is_in = |at: &u32| {
            let record = self.table.get(*at).record;
            matches!(record, Record::Asked | Record::Present)
        };
        self.table.used(0..u32::MAX).filter(is_in)
    }

    /// The regions that are out of sync, or to which a write is in flight.
    pub(in super::super) fn out_of_sync(&self) -> impl Iterator<Item = u32> + '_ {
        let differs = |at: &u32| {
            let region = self.table.get(*at);
            matches!(region.state, State::Nosync | State::Recovering) || region.writes > 0
        };
        self.table.used(0..u32::MAX).filter(differs)
    }

    /// How many clean regions the record has.
    pub(in super::super) fn idle(&self) -> u32 {
        self.idle
    }

    /// The size of a region in bytes; the last region may be smaller.
    pub(in super::super) fn region_size(&self) -> u64 {
        1 << self.shift
    }
}

/// A recorded mirror has at most two to the power of this many regions, so that an extended attribute has
/// room for one bit per region.
const RECORDED_SHIFT: u32 = 13;
/// How many neighbouring regions become wanted together.
const GROUP: u32 = 16;
