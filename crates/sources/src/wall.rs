//! The wall clock, and the local time zone.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::signals::now_ns;

/// Converts times of a source's clock into nanoseconds since 1970, and into times of this host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Nanoseconds since 1970, minus the time of the source.
    pub ahead_ns: u64,
    /// By how much a converted time may be wrong. It is 0 for this host's own clock.
    off_ns: u64,
    /// The source's clock minus `CLOCK_MONOTONIC`.
    apart_ns: i64,
}

impl Axis {
    /// The axis of this host's own clock.
    pub fn here() -> Axis {
        Axis {
            ahead_ns: unix_ns().saturating_sub(now_ns()),
            off_ns: 0,
            apart_ns: 0,
        }
    }

    /// Reads the clock of a source, which may be this host's own clock.
    pub(crate) fn of(clock_ns: impl FnOnce() -> anyhow::Result<u64>) -> anyhow::Result<Axis> {
        let here = Axis::here();
        let before_ns = now_ns();
        let clock_ns = clock_ns()?;
        Ok(here.to(clock_ns, before_ns..=now_ns()))
    }

    /// The axis of a clock that showed `clock_ns` at some moment between two moments of this host's clock.
    fn to(self, clock_ns: u64, between: RangeInclusive<u64>) -> Axis {
        if between.contains(&clock_ns) {
            return self;
        }
        let off_ns = (between.end() - between.start()).div_ceil(2).max(1);
        let apart_ns = clock_ns.wrapping_sub(between.start() + off_ns) as i64;
        Axis {
            ahead_ns: self
                .ahead_ns
                .saturating_add_signed(apart_ns.saturating_neg()),
            off_ns,
            apart_ns,
        }
    }

    /// Takes over `ahead_ns` from another source, if this axis is that of this host's own clock. Returns by
    /// how much a converted time may be wrong.
    pub(crate) fn put_on(&mut self, ahead_ns: u64) -> u64 {
        if self.off_ns == 0 {
            self.ahead_ns = ahead_ns;
        }
        self.off_ns
    }

    /// The moment of `CLOCK_MONOTONIC` for a moment of the source's clock.
    pub(crate) fn here_ns(&self, clock_ns: u64) -> u64 {
        clock_ns.saturating_add_signed(self.apart_ns.saturating_neg())
    }
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// The moment that was `age` ago, in nanoseconds since 1970.
pub(crate) fn unix_ns_before(age: Duration) -> u64 {
    unix_ns().saturating_sub(age.as_nanos() as u64)
}

/// The present offset of the local time zone from UTC, in nanoseconds.
pub fn zone_ns() -> i64 {
    i64::from(jiff::Zoned::now().offset().seconds()) * 1_000_000_000
}

/// A moment in this host's time zone: `2026-11-23T03:10:05`.
pub fn shown_moment(ns: u64) -> String {
    let moment = Timestamp::from_nanosecond(ns.into()).unwrap_or(Timestamp::MAX);
    let local = TimeZone::system().to_datetime(moment);
    local.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_this_host_is_known_and_that_of_another_host_is_bracketed() {
        let here = Axis {
            ahead_ns: 1_000_000,
            off_ns: 0,
            apart_ns: 0,
        };
        assert_eq!(here.to(150, 100..=200), here);
        let other = here.to(5_000, 100..=200);
        assert_eq!((other.off_ns, other.apart_ns), (50, 4_850));
        // 5,000 on the other clock is 150 on this host's clock, give or take 50.
        assert_eq!((other.here_ns(5_000), other.ahead_ns), (150, 995_150));
        let behind = here.to(10, 100..=100);
        assert_eq!((behind.here_ns(10), behind.off_ns), (101, 1));
        let (mut one, mut another) = (here, other);
        assert_eq!((one.put_on(7), one.ahead_ns), (0, 7));
        assert_eq!((another.put_on(7), another.ahead_ns), (50, 995_150));
    }
}
