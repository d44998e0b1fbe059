//! How long a device was busy, and how many zios it had in that time (iostat: `%util`, `aqu-sz`).

use crate::depths::DepthTimes;
use crate::stats::DiskStats;
use crate::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Occupancy {
    outstanding: u32,
    counted_until: Instant,
}

impl Occupancy {
    pub(crate) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Counts a zio that arrives. Returns how many zios the device has now.
    #[inline]
    pub(crate) fn enter(&mut self, now: Instant, stats: &mut DiskStats) -> u32 {
        self.count(now, stats);
        self.outstanding += 1;
        self.outstanding
    }

    #[inline]
    pub(crate) fn leave(&mut self, now: Instant, stats: &mut DiskStats) {
        self.count(now, stats);
        self.outstanding -= 1;
    }

    /// The counters as of `now`.
    pub(crate) fn stats_at(mut self, now: Instant, stats: &DiskStats) -> DiskStats {
        let mut stats = stats.clone();
        self.count(now, &mut stats);
        stats
    }

    /// The time spent at each depth as of `now`.
    pub(crate) fn depths_at(self, now: Instant, stats: &DiskStats) -> DepthTimes {
        let mut depths = stats.depths.clone();
        depths.add(self.outstanding, now.since(self.counted_until));
        depths
    }

    /// Adds the time since the last call to the time at the present depth.
    #[inline]
    fn count(&mut self, now: Instant, stats: &mut DiskStats) {
        let span = now.since(self.counted_until);
        if span > Duration::ZERO {
            self.counted_until = now;
            stats.depths.add(self.outstanding, span);
        }
    }
}
