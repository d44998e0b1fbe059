//! The wall clock, and the local time zone.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The present time, in nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// The moment that was `age` ago, in nanoseconds since 1970.
pub(super) fn unix_ns_before(age: Duration) -> u64 {
    unix_ns().saturating_sub(age.as_nanos() as u64)
}

/// The present offset of the local time zone from UTC, in nanoseconds.
pub(crate) fn zone_ns() -> i64 {
    i64::from(jiff::Zoned::now().offset().seconds()) * 1_000_000_000
}
