//! The clocks that the recorder reads. Tests have their own clock.

use rustix::time::{ClockId, clock_gettime};

/// The same moment on three clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The time of the clock that stands still while the machine is suspended.
    pub monotonic_ns: u64,
    /// The time of the clock that continues while the machine is suspended.
    pub boottime_ns: u64,
    /// The time of the clock that counts nanoseconds since 1970, and that can step.
    pub unix_ns: u64,
}

/// A source of the time.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Moment;

    /// The CPU time of the calling thread so far, in nanoseconds.
    fn thread_cpu_ns(&self) -> u64;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Moment {
        Moment {
            monotonic_ns: read(ClockId::Monotonic),
            boottime_ns: read(ClockId::Boottime),
            unix_ns: read(ClockId::Realtime),
        }
    }

    fn thread_cpu_ns(&self) -> u64 {
        read(ClockId::ThreadCPUTime)
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec as u64)
}

/// An irregularity of the clocks between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jump {
    /// The time since 1970 stepped by this many nanoseconds.
    Step(i64),
    /// The machine was suspended for this many nanoseconds.
    Suspend(u64),
}

/// The least difference between clocks that counts as a jump. Normally clocks drift apart by less between two
/// readings, because an adjusted clock gains or loses at most 5 ms in ten seconds.
const JUMP_NS: u64 = 20_000_000;

/// The jumps of the clocks between two moments.
pub(crate) fn jumps(before: &Moment, now: &Moment) -> impl Iterator<Item = Jump> {
    let lag = |moment: &Moment| moment.boottime_ns.saturating_sub(moment.monotonic_ns);
    let suspended_ns = lag(now).saturating_sub(lag(before));
    let step = now
        .unix_ns
        .wrapping_sub(now.boottime_ns)
        .wrapping_sub(before.unix_ns.wrapping_sub(before.boottime_ns)) as i64;
    let suspend = (suspended_ns >= JUMP_NS).then_some(Jump::Suspend(suspended_ns));
    let step = (step.unsigned_abs() >= JUMP_NS).then_some(Jump::Step(step));
    suspend.into_iter().chain(step)
}
