//! The wall's clock, and how the local one differs from it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// Nanoseconds since 1970, of a moment so long ago.
pub(super) fn unix_ns_before(age: Duration) -> u64 {
    unix_ns().saturating_sub(age.as_nanos() as u64)
}

/// What is added to have the local time of day, today.
pub(crate) fn zone_ns() -> i64 {
    i64::from(jiff::Zoned::now().offset().seconds()) * 1_000_000_000
}
