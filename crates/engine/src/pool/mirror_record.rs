//! The durable record of a pool's mirrors: this file decides when the driver makes a new record, and which
//! sides the pool must not read.

use alloc::vec::Vec;
use core::ops::Range;

use super::mirrors::{AGAIN_AFTER, Mirrors};
use super::pool::Pool;
use super::recording::{MirrorRecord, MirrorStart, Recording};
use super::regions::Regions;
use super::step::Step;
use crate::command::Action;
use crate::time::{Duration, Instant};
use crate::zio::{Outcome, PoolId};

impl Mirrors {
    /// Turns on the durable record. The driver makes no record until [`crate::Command::Repair`] opens the
    /// pool's mirrors.
    fn record(&mut self, starts: &[MirrorStart], now: Instant) {
        let mut stale = Vec::new();
        for (member, regions) in self.regions.iter_mut().enumerate() {
            let start = starts.get(member).cloned().unwrap_or_default();
            if let Some(regions) = regions {
                *regions = regions.recorded();
                start.differ.iter().for_each(|range| regions.differ(range));
            }
            stale.push(start.stale);
        }
        self.stopped = true;
        self.recording = Some(Recording {
            is_open: false,
            is_making: false,
            is_wanted: true,
            not_before: now,
            drops_at: now,
            has_failed: false,
            copied: stale.iter().map(|_| None).collect(),
            stale,
        });
    }

    /// Lets the driver make records, because the pool's mirrors are open.
    pub(super) fn open(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.is_open = true;
        }
    }

    /// The sides of a member that must not be read where the mirror is out of sync, as a bit mask.
    pub(super) fn stale(&self, member: usize) -> u64 {
        let recording = self.recording.as_ref();
        recording.map_or(0, |recording| recording.stale[member])
    }

    /// Whether the durable record has the regions that a part of a write touches. If the record lacks any of
    /// them, the pool will ask for a new record that has them.
    pub(super) fn has_recorded(&mut self, member: usize, range: &Range<u64>) -> bool {
        let (Some(recording), Some(regions)) = (&mut self.recording, &mut self.regions[member])
        else {
            return true;
        };
        let has = regions.are_recorded(range);
        recording.is_wanted |= !has;
        has
    }

    /// The moment at which the driver is to make the next record.
    pub(super) fn next_record(&self) -> Instant {
        match &self.recording {
            Some(recording) if recording.is_making || !recording.is_open => Instant::NEVER,
            Some(recording) if recording.is_wanted => recording.not_before,
            Some(recording) if self.has_idle() => recording.drops_at,
            _ => Instant::NEVER,
        }
    }

    fn has_idle(&self) -> bool {
        let mut regions = self.regions.iter().flatten();
        regions.any(|regions| regions.idle() > 0)
    }

    /// Lets the pool read stale sides whose repair is complete and safe from a power cut.
    fn believe_repaired(&mut self) {
        let Some(recording) = &mut self.recording else {
            return;
        };
        for (member, regions) in self.regions.iter().enumerate() {
            let Some(regions) = regions.as_ref().filter(|_| recording.stale[member] != 0) else {
                continue;
            };
            if regions.nosync() > 0 {
                recording.copied[member] = None;
                continue;
            }
            let copied = *recording.copied[member].get_or_insert(regions.covers());
            if regions.covered() >= copied {
                recording.stale[member] = 0;
                recording.is_wanted = true;
            }
        }
    }

    /// Begins a record, if one is due.
    fn begin_record(&mut self, now: Instant) -> bool {
        if self.next_record() > now {
            return false;
        }
        let Some(recording) = &mut self.recording else {
            return false;
        };
        let drops = recording.drops_at <= now;
        recording.is_making = true;
        recording.is_wanted = false;
        let regions = self.regions.iter_mut().flatten();
        regions.for_each(|regions| regions.begin_record(drops));
        true
    }

    fn end_record(&mut self, outcome: Outcome, now: Instant) {
        if let Some(recording) = &mut self.recording {
            recording.is_making = false;
            recording.has_failed = outcome.is_err();
            recording.is_wanted |= outcome.is_err();
            recording.drops_at = now + DROPS_AFTER;
            if outcome.is_err() {
                recording.not_before = now + AGAIN_AFTER;
            }
        }
        let regions = self.regions.iter_mut().flatten();
        regions.for_each(|regions| regions.end_record(outcome.is_err()));
    }

    fn records(&self, regions_of: impl Fn(&Regions) -> Vec<u32>) -> Vec<MirrorRecord> {
        let members = self.regions.iter().enumerate();
        let record = |(member, regions): (usize, &Option<Regions>)| {
            let regions = regions.as_ref()?;
            Some(MirrorRecord {
                member,
                region_size: regions.region_size(),
                regions: regions_of(regions),
                stale: self.stale(member),
            })
        };
        members.filter_map(record).collect()
    }
}

impl Pool {
    /// Turns on the durable record of the mirrors. `starts` are in the order of the members.
    pub(crate) fn record_mirrors(&mut self, starts: &[MirrorStart], step: &mut Step<'_>) {
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.record(starts, step.now);
        }
    }

    /// Asks the driver for a record, if one is due.
    pub(super) fn go_on_recording(&mut self, step: &mut Step<'_>) {
        let Some(mirrors) = &mut self.mirrors else {
            return;
        };
        mirrors.believe_repaired();
        if mirrors.begin_record(step.now) {
            step.actions.push(Action::Record(PoolId(self.id)));
        }
    }

    /// Notes that the driver has made the record, or has failed to.
    pub(crate) fn recorded(&mut self, outcome: Outcome, step: &mut Step<'_>) {
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.end_record(outcome, step.now);
        }
        if outcome.is_ok() {
            self.release_held(step);
        }
    }

    /// A record of each mirror. The driver must make these records durable when the engine asks for them.
    pub(crate) fn record(&self) -> Vec<MirrorRecord> {
        let mirrors = self.mirrors.as_ref();
        mirrors.map_or_else(Vec::new, |mirrors| {
            mirrors.records(|regions| regions.in_record().collect())
        })
    }

    /// The records that the driver keeps when the pool ends after a sync of all disks. They list only the
    /// regions that are out of sync, or to which a write is in flight.
    pub(crate) fn last_record(&self) -> Vec<MirrorRecord> {
        let mirrors = self.mirrors.as_ref();
        let mut records = mirrors.map_or_else(Vec::new, |mirrors| {
            mirrors.records(|regions| regions.out_of_sync().collect())
        });
        for record in records
            .iter_mut()
            .filter(|record| record.regions.is_empty())
        {
            record.stale = 0;
        }
        records
    }
}

/// A new record that only drops clean regions is made at least this long after the record before it.
const DROPS_AFTER: Duration = Duration::from_secs(5);
