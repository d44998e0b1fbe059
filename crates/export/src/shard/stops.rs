//! Stops: times in which the host keeps a shard from running. The cause may be another process on the shard's
//! CPU, a SIGSTOP, a frozen container, a paused virtual machine, or a suspended host.
//!
//! A shard detects stops in three ways. If the shard wakes later than it asked for, the difference is a stop.
//! If time passes in a pass while the shard's thread uses no CPU time, that time is a stop. And if
//! `CLOCK_BOOTTIME` advances more than `CLOCK_MONOTONIC`, the host was suspended for the difference. Less
//! than 1 ms does not count as a stop, because an ordinary wake-up sometimes takes that long.
//!
//! A call to a file or a device can make the shard itself wait. If the thread has waited for anything since
//! the first such call of a pass, the time without CPU is the shard's own, and no stop. Nor is the time for
//! which the shard may have waited for a CPU behind other threads of dashpot, its [rivals](super::rivals).
//!
//! A shard that sleeps until something arrives cannot tell whether it wakes late. So while clients are
//! connected, the shard asks to be woken every 20 ms. Once a second has passed without requests and replies,
//! it asks to be woken only once per second. The shard may count too little of a stop, by up to the interval
//! between two wake-ups. (The arrival times of bytes cannot help, because the kernel does not record them on
//! unix stream sockets.) Under some hypervisors, the kernel counts a stop as CPU time of the thread, and the
//! shard mistakes the stop for work.

use dashpot_engine::{Duration, Instant};

use super::rivals::Rivals;
use crate::clock;
use crate::snapshot::{StopSum, Stops};

/// Counts the stops of a shard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StopCounts {
    all: StopSum,
    last: Option<Instant>,
    /// When the current [`WINDOW`] began.
    start: Instant,
    /// The stops in the current window so far.
    this: StopSum,
    /// The stops in the previous window.
    before: StopSum,
}

impl StopCounts {
    /// Counts a stop of this length that ended at `until`.
    pub(super) fn add(&mut self, length: Duration, until: Instant) {
        self.advance(until);
        self.all.add(length);
        self.this.add(length);
        self.last = Some(until);
    }

    pub(super) fn at(mut self, now: Instant) -> Stops {
        self.advance(now);
        Stops {
            all: self.all,
            recent: self.this.and(self.before),
            last: self.last,
        }
    }

    fn advance(&mut self, now: Instant) {
        let passed = now.since(self.start);
        if passed < WINDOW {
            return;
        }
        let this = std::mem::take(&mut self.this);
        let next = passed < WINDOW + WINDOW;
        self.before = if next { this } else { StopSum::default() };
        self.start = if next { self.start + WINDOW } else { now };
    }
}

/// Detects stops during a shard's passes. For that it reads how much CPU time the thread has used, and for
/// how long the host was suspended.
#[derive(Debug, Default)]
pub(super) struct StopDetector {
    /// The last reading of the thread's CPU time.
    cpu: Duration,
    /// How often the thread had waited before the first call of this pass that may wait. `None` if there was
    /// no such call.
    waits: Option<u64>,
    /// When the detector last read the CPU time and the suspensions at the end of a pass.
    read: Instant,
    /// The total time for which the host had been suspended when the clocks were last read.
    suspended: Option<Duration>,
    rivals: Rivals,
}

impl StopDetector {
    /// How much of the `passed` time was a stop: the time that passed, minus the CPU time that the thread
    /// used. The CPU time is counted from its last reading, which may lie before the `passed` time, so the
    /// result can be too small by up to [`READ_EVERY`].
    pub(super) fn stopped(&mut self, passed: Duration) -> Option<Duration> {
        if passed <= STOP_MIN {
            return None;
        }
        let cpu = clock::cpu_time();
        let stopped = passed - (cpu - self.cpu);
        self.cpu = cpu;
        let before = self.waits.take();
        if before.is_some_and(|before| clock::waits() != before) {
            return None;
        }
        self.by_host(stopped)
    }

    /// How much of a sleep that ended late was a stop.
    pub(super) fn overslept(&mut self, meant: Option<Instant>, woke: Instant) -> Option<Duration> {
        self.by_host(woke.since(meant?))
    }

    /// How much of the time in which the shard did not run is a stop. `None` if it is too short to be one.
    fn by_host(&mut self, length: Duration) -> Option<Duration> {
        if length <= STOP_MIN {
            return None;
        }
        let stopped = length - self.rivals.caused(length);
        (stopped > STOP_MIN).then_some(stopped)
    }

    /// Notes that the shard is about to make a call that may wait.
    pub(super) fn note_call(&mut self) {
        self.waits.get_or_insert_with(clock::waits);
    }

    /// Begins a pass.
    pub(super) fn begin(&mut self) {
        self.waits = None;
    }

    /// At the end of a pass, reads the thread's CPU time and the host's suspensions, unless their last
    /// reading is recent. Returns how long the host was suspended since the last reading.
    pub(super) fn read(&mut self, now: Instant) -> Option<Duration> {
        self.rivals.read(now);
        if now.since(self.read) < READ_EVERY {
            return None;
        }
        self.read = now;
        self.cpu = clock::cpu_time();
        let suspended = clock::suspended()?;
        let before = self.suspended.replace(suspended)?;
        Some(suspended - before).filter(|slept| *slept > STOP_MIN)
    }
}

/// When to wake a shard that has clients, if nothing happens before. `active` is when a client last sent a
/// request or took a reply.
pub(super) fn next_beat(now: Instant, active: Instant) -> Instant {
    if now.since(active) < BEATS_FAST_FOR {
        now + BEAT_FAST
    } else {
        now + BEAT_SLOW
    }
}

/// Only longer times count as stops.
pub(super) const STOP_MIN: Duration = Duration::from_millis(1);
/// At the end of a pass, the CPU time is read again if its last reading is at least this old.
const READ_EVERY: Duration = Duration::from_micros(500);
const WINDOW: Duration = Duration::from_secs(30);
const BEAT_FAST: Duration = Duration::from_millis(20);
const BEAT_SLOW: Duration = Duration::from_secs(1);
const BEATS_FAST_FOR: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::{BEAT_FAST, BEAT_SLOW, Rivals, STOP_MIN, StopCounts, StopDetector, next_beat};
    use crate::clock;
    use crate::snapshot::StopSum;
    use dashpot_engine::{Duration, Instant};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn ms(at: u64) -> Instant {
        Instant::from_nanos(at * 1_000_000)
    }

    #[test]
    fn what_comes_after_the_end_of_a_sleep_is_a_stop() {
        let mut watch = StopDetector::default();
        watch.read(ms(10));
        assert_eq!(watch.overslept(None, ms(5_000)), None);
        assert_eq!(watch.overslept(Some(ms(10)), ms(10) + STOP_MIN), None);
        let hour = 3_600_000;
        let stopped = watch.overslept(Some(ms(10)), ms(10 + hour)).unwrap();
        assert!(stopped > Duration::from_millis(hour / 2));
    }

    #[test]
    fn time_that_rivals_may_have_taken_is_no_stop() {
        let mut watch = StopDetector {
            rivals: Rivals::without_times(),
            ..StopDetector::default()
        };
        watch.read(ms(10));
        let begun = clock::process_cpu_time() - clock::cpu_time();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let late = STOP_MIN + STOP_MIN;
            while clock::process_cpu_time() - clock::cpu_time() < begun + late + late {
                std::thread::yield_now();
            }
            over.store(true, Ordering::Relaxed);
            assert_eq!(watch.overslept(Some(ms(10)), ms(10) + late), None);
        });
    }

    #[test]
    fn stops_are_added_up_and_recent_ones_told_apart() {
        let mut counts = StopCounts::default();
        let sum = |count, total, longest| StopSum {
            count,
            total: Duration::from_millis(total),
            longest: Duration::from_millis(longest),
        };
        assert_eq!(counts.at(ms(1_000)).all, sum(0, 0, 0));
        counts.add(Duration::from_millis(4_000), ms(40_000));
        counts.add(Duration::from_millis(2), ms(61_000));
        let stops = counts.at(ms(62_000));
        assert_eq!(
            (stops.all, stops.last),
            (sum(2, 4_002, 4_000), Some(ms(61_000)))
        );
        assert_eq!(stops.recent, stops.all);
        assert_eq!(counts.at(ms(95_000)).recent, sum(1, 2, 2));
        assert_eq!(counts.at(ms(200_000)).recent, sum(0, 0, 0));
        assert_eq!(counts.at(ms(200_000)).all, stops.all);
    }

    #[test]
    fn work_is_no_stop_and_time_without_work_is_one() {
        let mut watch = StopDetector::default();
        watch.read(clock::now());
        let begun = clock::cpu_time();
        while clock::cpu_time() - begun < STOP_MIN + STOP_MIN {}
        assert_eq!(watch.stopped(STOP_MIN + STOP_MIN), None);
        // Of so long a time, other tests that run meanwhile take only a little.
        let hour = Duration::from_secs(3_600);
        let stopped = watch.stopped(hour);
        assert!(stopped.is_some_and(|stopped| stopped > Duration::from_secs(1_800)));
        assert_eq!(watch.stopped(STOP_MIN), None);
    }

    #[test]
    fn time_in_which_the_shard_itself_has_waited_is_no_stop() {
        let second = Duration::from_secs(1);
        for (calls, waits, is_stop) in [
            (true, true, false),
            (true, false, true),
            (false, true, true),
        ] {
            let mut watch = StopDetector::default();
            watch.read(clock::now());
            watch.begin();
            if calls {
                watch.note_call();
            }
            if waits {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            assert_eq!(watch.stopped(second).is_some(), is_stop, "{calls} {waits}");
        }
    }

    #[test]
    fn a_host_that_was_not_suspended_is_not_called_so() {
        let mut watch = StopDetector::default();
        for second in 1..100 {
            assert_eq!(watch.read(ms(second * 1_000)), None);
        }
    }

    #[test]
    fn a_shard_whose_clients_are_quiet_is_woken_less_often() {
        assert_eq!(next_beat(ms(1_999), ms(1_000)), ms(1_999) + BEAT_FAST);
        assert_eq!(next_beat(ms(2_000), ms(1_000)), ms(2_000) + BEAT_SLOW);
    }
}
