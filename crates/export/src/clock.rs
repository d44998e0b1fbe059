//! `CLOCK_MONOTONIC`, as the engine's time.

use dashpot_engine::Instant;
use rustix::time::{ClockId, clock_gettime};

/// The time now. Costs 25–30 ns.
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
