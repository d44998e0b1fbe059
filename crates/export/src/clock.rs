//! `CLOCK_MONOTONIC`, which is the engine's time, and the clocks that measure CPU time and suspensions.

use dashpot_engine::{Duration, Instant};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The time now. A call takes 25–30 ns.
pub fn now() -> Instant {
    Instant::from_nanos(read(ClockId::Monotonic))
}

/// The CPU time that this thread has used. Unlike the other clocks, this clock needs a system call.
pub(crate) fn cpu_time() -> Duration {
    Duration::from_nanos(read(ClockId::ThreadCPUTime))
}

/// The CPU time that all threads of this process have used.
pub(crate) fn process_cpu_time() -> Duration {
    Duration::from_nanos(read(ClockId::ProcessCPUTime))
}

/// How often this thread has waited for something other than a CPU.
pub(crate) fn waits() -> u64 {
    dashpot_sys::voluntary_switches()
}

/// How long the host has been suspended since it started. `CLOCK_BOOTTIME` counts the time during a
/// suspension, and `CLOCK_MONOTONIC` does not. `None` if this thread was interrupted between reading one
/// clock and the other.
pub(crate) fn suspended() -> Option<Duration> {
    let before = read(ClockId::Monotonic);
    let boot = read(ClockId::Boottime);
    let after = read(ClockId::Monotonic);
    let uncertain = Duration::from_nanos(after - before);
    (uncertain < UNCERTAIN_MAX).then(|| Duration::from_nanos(boot.saturating_sub(before)))
}

/// Converts a duration into the kernel's form.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    let nanos = duration.as_nanos();
    Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// If it takes longer than this to read both clocks, the thread was interrupted in between, and the readings
/// are not compared.
const UNCERTAIN_MAX: Duration = Duration::from_micros(100);
