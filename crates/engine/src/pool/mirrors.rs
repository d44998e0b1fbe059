//! The mirrors of a pool: their regions, and the piece of a region that is being repaired.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use super::recording::Recording;
use super::regions::Regions;
use super::stats::MirrorStats;
use crate::bytes::Buf;
use crate::time::{Duration, Instant};

/// The mirrors of a pool.
#[derive(Debug)]
pub(super) struct Mirrors {
    /// The regions of each member; `None` for a single disk.
    pub(super) regions: Vec<Option<Regions>>,
    pub(super) recovery: Option<Recovery>,
    /// Writes that wait for the piece that is being copied, or for the record of their regions.
    pub(super) held: Vec<u32>,
    /// Writes that no longer wait, but still have to be queued, one after another.
    pub(super) released: VecDeque<u32>,
    /// The earliest moment at which the repair may begin its next piece.
    pub(super) not_before: Instant,
    /// Whether no piece may begin, because the mirrors are not open yet, the power is off, or the pool ends.
    pub(super) stopped: bool,
    /// Whether there are more regions to clean.
    pub(super) cleans: bool,
    /// `None` if the driver keeps no durable record of the regions.
    pub(super) recording: Option<Recording>,
    repaired: u64,
    failed: u64,
}

/// A region that is being repaired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    pub(super) member: usize,
    pub(super) region: u32,
    /// Where the current piece begins on the member.
    pub(super) at: u64,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// The piece waits until it is due, and until no write to its region is in flight.
    Waits,
    /// A side reads the piece. `tried` has the sides that were asked, one bit each.
    Reads { buf: Buf, length: u32, tried: u64 },
    /// The other sides write the piece.
    Writes {
        buf: Buf,
        length: u32,
        left: u32,
        failed: bool,
    },
}

impl Mirrors {
    /// The mirrors among these members. Each member is given as its number of sides and the size of its
    /// smallest side in bytes. `None` if there are no mirrors.
    pub(super) fn new(members: impl Iterator<Item = (usize, u64)>) -> Option<Box<Mirrors>> {
        let regions = members.map(|(sides, size)| (sides > 1).then(|| Regions::new(sides, size)));
        let regions: Vec<Option<Regions>> = regions.collect();
        let has_mirrors = regions.iter().any(Option::is_some);
        has_mirrors.then(|| {
            Box::new(Mirrors {
                regions,
                recovery: None,
                held: Vec::new(),
                released: VecDeque::new(),
                not_before: Instant::ZERO,
                stopped: false,
                cleans: false,
                recording: None,
                repaired: 0,
                failed: 0,
            })
        })
    }

    pub(super) fn stats(&self) -> MirrorStats {
        let regions = || self.regions.iter().flatten();
        MirrorStats {
            dirty_regions: regions().map(Regions::dirty).sum(),
            nosync_regions: regions().map(Regions::nosync).sum(),
            nosync_bytes: regions().map(Regions::nosync_bytes).sum(),
            repaired_bytes: self.repaired,
            failed_pieces: self.failed,
            stale_sides: (0..self.regions.len())
                .map(|at| self.stale(at).count_ones())
                .sum(),
            is_unrecorded: self.recording.as_ref().is_some_and(|r| r.has_failed),
        }
    }

    /// Whether the sides of a member hold the same bytes at this place, apart from writes in flight.
    pub(super) fn are_in_sync(&self, member: usize, offset: u64) -> bool {
        let regions = self.regions[member].as_ref();
        regions.is_none_or(|regions| regions.is_in_sync(offset))
    }

    /// Whether any region is out of sync.
    pub(super) fn differ(&self) -> bool {
        let mut regions = self.regions.iter().flatten();
        regions.any(|regions| regions.nosync() > 0)
    }

    /// How many times so far a region of a member has become quiet, which means that its last write in flight
    /// has ended. A FLUSH that begins now covers the writes that have ended by now, so the caller keeps this
    /// number and passes it to `flushed` when the FLUSH has ended.
    pub(super) fn covers(&self, member: usize) -> u64 {
        self.regions[member].as_ref().map_or(0, Regions::covers)
    }

    /// Notes that a side of a member has completed a FLUSH.
    pub(super) fn flushed(&mut self, member: usize, side: usize, covers: u64) {
        if let Some(regions) = &mut self.regions[member] {
            regions.flushed(side, covers);
            self.cleans = true;
        }
    }

    /// Forgets the writes and the repair in flight. Dirty regions are then out of sync, and their repair
    /// waits for [`crate::Command::Repair`].
    pub(super) fn power_cut(&mut self) {
        self.regions
            .iter_mut()
            .flatten()
            .for_each(Regions::power_cut);
        self.recovery = None;
        self.held.clear();
        self.released.clear();
        self.stopped = true;
    }

    /// Notes that the disks have lost the writes that no FLUSH has covered.
    pub(super) fn lose_caches(&mut self) {
        let regions = self.regions.iter_mut().flatten();
        regions.for_each(Regions::lose_caches);
    }

    pub(super) fn buf(&self) -> Option<Buf> {
        match self.recovery?.phase {
            Phase::Waits => None,
            Phase::Reads { buf, .. } | Phase::Writes { buf, .. } => Some(buf),
        }
    }

    /// The next moment at which regions may have to be cleaned, a piece copied, or a record made.
    #[inline]
    pub(super) fn next_deadline(&self, now: Instant) -> Instant {
        self.next_step(now).min(self.next_record())
    }

    fn next_step(&self, now: Instant) -> Instant {
        match self.recovery {
            _ if self.cleans => now,
            _ if self.stopped => Instant::NEVER,
            Some(recovery) => match recovery.phase {
                Phase::Waits if self.is_quiet(&recovery) => self.not_before,
                _ => Instant::NEVER,
            },
            None if self.differ() => self.not_before,
            None => Instant::NEVER,
        }
    }

    /// Cleans some of the regions that FLUSHes have covered.
    pub(super) fn clean(&mut self) {
        self.cleans = false;
        for regions in self.regions.iter_mut().flatten() {
            self.cleans |= regions.clear_covered(CLEANED_AT_ONCE);
        }
    }

    /// Ends the repair, so that no more pieces begin.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        if let Some(recovery) = self.recovery
            && matches!(recovery.phase, Phase::Waits)
        {
            self.give_up(recovery);
        }
    }

    fn give_up(&mut self, recovery: Recovery) {
        self.recovery = None;
        if let Some(regions) = &mut self.regions[recovery.member] {
            regions.not_recovered(recovery.region);
        }
    }

    fn is_quiet(&self, recovery: &Recovery) -> bool {
        let regions = self.regions[recovery.member].as_ref();
        regions.is_none_or(|regions| regions.is_quiet(recovery.region))
    }

    /// Marks the ranges of a write, each on a member, before the write is queued. Returns false, and marks
    /// nothing, if the write has to wait for the repair or for the record.
    pub(super) fn begin_write(
        &mut self,
        ranges: impl Iterator<Item = (usize, Range<u64>)> + Clone,
        now: Instant,
    ) -> bool {
        let mut parts = ranges.clone();
        let mut is_held =
            self.recovery.is_some() && parts.any(|(member, range)| self.holds(member, &range, now));
        if self.recording.is_some() {
            for (member, range) in ranges.clone() {
                is_held |= !self.has_recorded(member, &range);
            }
        }
        if !is_held {
            self.each_region(ranges, Regions::begin);
        }
        !is_held
    }

    /// Notes that all sides have answered a write.
    pub(super) fn end_write(
        &mut self,
        ranges: impl Iterator<Item = (usize, Range<u64>)>,
        failed: bool,
        now: Instant,
    ) {
        if failed && !self.differ() {
            self.not_before = now + AGAIN_AFTER;
        }
        self.each_region(ranges, |regions, range| regions.end(range, failed));
    }

    fn each_region(
        &mut self,
        ranges: impl Iterator<Item = (usize, Range<u64>)>,
        mut act: impl FnMut(&mut Regions, &Range<u64>),
    ) {
        for (member, range) in ranges {
            if let Some(regions) = &mut self.regions[member] {
                act(regions, &range);
            }
        }
    }

    /// Whether a write of this range of a member must wait for the repair.
    fn holds(&self, member: usize, range: &Range<u64>, now: Instant) -> bool {
        let Some(recovery) = self.recovery.filter(|recovery| recovery.member == member) else {
            return false;
        };
        let copies = !matches!(recovery.phase, Phase::Waits) || now >= self.not_before;
        let regions = self.regions[member].as_ref();
        copies && regions.is_some_and(|regions| regions.of(range).contains(&recovery.region))
    }

    /// The next piece to copy, if it is due.
    pub(super) fn next_piece(&mut self, now: Instant) -> Option<Recovery> {
        if self.stopped || now < self.not_before {
            return None;
        }
        if self.recovery.is_none() {
            self.recovery = self.next_region();
        }
        let recovery = self.recovery?;
        let is_due = matches!(recovery.phase, Phase::Waits) && self.is_quiet(&recovery);
        is_due.then_some(recovery)
    }

    fn next_region(&mut self) -> Option<Recovery> {
        let regions = self.regions.iter_mut().enumerate();
        let mut found = regions.filter_map(|(member, regions)| {
            let regions = regions.as_mut()?;
            let region = regions.recover()?;
            Some(Recovery {
                member,
                region,
                at: regions.range(region).start,
                phase: Phase::Waits,
            })
        });
        found.next()
    }

    /// The length of a repair's current piece: a power of two, like the size of every buffer.
    pub(super) fn piece_length(&self, recovery: &Recovery) -> u32 {
        let regions = self.regions[recovery.member].as_ref();
        let end = regions.map_or(0, |regions| regions.range(recovery.region).end);
        1 << (end - recovery.at).clamp(1, PIECE).ilog2()
    }

    /// Ends a piece of this length: goes on to the next piece, or ends the repair of the region.
    pub(super) fn piece_copied(&mut self, recovery: Recovery, length: u32, now: Instant) {
        self.not_before = now + PACE;
        self.repaired += u64::from(length);
        let at = recovery.at + u64::from(length);
        let Some(regions) = &mut self.regions[recovery.member] else {
            return;
        };
        let phase = Phase::Waits;
        self.recovery = Some(Recovery {
            at,
            phase,
            ..recovery
        });
        if at >= regions.range(recovery.region).end {
            regions.recovered(recovery.region);
            self.recovery = None;
        }
        if self.stopped {
            self.stop();
        }
    }

    pub(super) fn piece_failed(&mut self, recovery: Recovery, now: Instant) {
        self.failed += 1;
        self.not_before = now + AGAIN_AFTER;
        self.give_up(recovery);
    }
}

/// The maximum size of a piece, in bytes.
const PIECE: u64 = 128 << 10;
/// The time from the end of one piece to the beginning of the next. In that time the pool sends the writes
/// that waited for the piece. So a repair copies at most 125 MiB/s, and each pass of a shard begins
/// at most one piece for each pool.
const PACE: Duration = Duration::from_millis(1);
/// How many regions of a mirror one step cleans.
const CLEANED_AT_ONCE: usize = 256;
/// How long the repair waits after a failure. Meanwhile the pool repeats failed writes.
pub(super) const AGAIN_AFTER: Duration = Duration::from_secs(1);
