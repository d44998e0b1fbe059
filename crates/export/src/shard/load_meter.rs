//! The load meter measures how long the shard leaves its sockets unread, and what share of its time it spends
//! working.
//!
//! Between two polls of the sockets, the shard finishes a pass and sleeps. All of this time, except the sleep
//! that the shard asked for, counts as a gap in which the sockets are unread. So a stop by the host always
//! counts.
//!
//! A shard that works half of the time serves about half of the requests that it could. A request that
//! arrives while the shard works is late, and the less the shard rests, the later such requests are. So
//! dashpot promises accuracy only for shards that work at most half of the time. A shard that works more
//! counts as overloaded if any of its disks has a rule. Stops by the host count neither as work nor as rest.
//! Waiting for a deadline is not work, whether the shard spins or sleeps. The measure errs on the safe side.
//! A busier shard takes more requests in a pass, each at a lower cost, so at half of its maximum rate of I/Os
//! it already works more than half of the time.
//!
//! The meter has no timer. Each pass adds its times to the sums, and a snapshot computes the share.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Duration, Instant};

use super::stops::StopCounts;
use crate::snapshot::{Stops, Work};

#[derive(Debug, Default)]
pub(super) struct LoadMeter {
    /// How long the shard left its sockets unread each time. Lateness does not include this time, because a
    /// request has no target until it is read.
    gaps: Box<Histogram>,
    /// When the last pass began.
    begun: Instant,
    /// The moment up to which the meter has counted the work of the last pass.
    working: Instant,
    /// How long the last pass took.
    took: Duration,
    seconds: Seconds,
    stops: StopCounts,
}

impl LoadMeter {
    /// Notes whether any rule is armed. Without a rule, no zio has a target, so the shard never counts as
    /// overloaded.
    pub(super) fn set_armed(&mut self, armed: bool) {
        self.seconds.armed = armed;
    }

    /// Begins a new second when a rule is armed or updated, so that overload before this moment does not
    /// count against the rule.
    pub(super) fn mark(&mut self, now: Instant) {
        self.work_until(now);
        self.seconds.restart(now);
    }

    /// Begins a pass, after a sleep that took `overslept` longer than intended.
    pub(super) fn begin(&mut self, now: Instant, overslept: Duration) {
        self.gaps.record((self.took + overslept).as_nanos());
        (self.begun, self.working) = (now, now);
    }

    /// Notes that the host kept the shard from running between these moments, in this pass or in the sleep
    /// before it.
    pub(super) fn stopped(&mut self, from: Instant, until: Instant) {
        self.work_until(from);
        self.seconds.add(Kind::Stop, from, until);
        self.stops.add(until.since(from), until);
        self.working = until;
    }

    /// Notes that the host was suspended for this long. The shard's clock stood still meanwhile.
    pub(super) fn suspended(&mut self, length: Duration, now: Instant) {
        self.gaps.record(length.as_nanos());
        self.stops.add(length, now);
    }

    /// Ends the pass.
    pub(super) fn end(&mut self, now: Instant) {
        self.took = now.since(self.begun);
        self.work_until(now);
    }

    fn work_until(&mut self, now: Instant) {
        if now > self.working {
            self.seconds.add(Kind::Work, self.working, now);
            self.working = now;
        }
    }

    pub(super) fn gaps(&self) -> Box<Histogram> {
        self.gaps.clone()
    }

    pub(super) fn work(&self, now: Instant) -> Work {
        self.seconds.at(now)
    }

    pub(super) fn stops(&self, now: Instant) -> Stops {
        self.stops.at(now)
    }
}

/// The two kinds of time that the meter adds up.
#[derive(Clone, Copy)]
enum Kind {
    Work,
    Stop,
}

/// The total times of work and of stops in one second.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    work: Duration,
    stop: Duration,
}

impl Parts {
    fn and(self, other: Parts) -> Parts {
        Parts {
            work: self.work + other.work,
            stop: self.stop + other.stop,
        }
    }

    /// The share of the `passed` time, less its stops, in which the shard worked, in percent.
    fn busy_percent(self, passed: Duration) -> u32 {
        percent(self.work, passed - self.stop)
    }

    /// Estimates the times of work and of stops in a part of the second, in proportion to the part's length.
    fn scaled(self, part: Duration) -> Parts {
        let scaled = |all: Duration| {
            let part = u128::from(all.as_nanos()) * u128::from(part.as_nanos());
            Duration::from_nanos((part / u128::from(SECOND.as_nanos())) as u64)
        };
        Parts {
            work: scaled(self.work),
            stop: scaled(self.stop),
        }
    }
}

/// The times of work and of stops, by second.
#[derive(Clone, Copy, Debug, Default)]
struct Seconds {
    /// When the current second began.
    start: Instant,
    /// The times in the current second so far.
    this: Parts,
    /// The times in the previous second.
    last: Parts,
    armed: bool,
    /// How many seconds were overloaded.
    overloaded: u64,
}

impl Seconds {
    fn add(&mut self, kind: Kind, begun: Instant, ended: Instant) {
        let mut from = begun;
        loop {
            self.advance(from);
            let until = ended.min(self.start + SECOND);
            let part = match kind {
                Kind::Work => &mut self.this.work,
                Kind::Stop => &mut self.this.stop,
            };
            *part += until.since(from);
            if until >= ended {
                return;
            }
            from = until;
        }
    }

    /// Advances to the second that contains `now`.
    fn advance(&mut self, now: Instant) {
        let passed = now.since(self.start);
        if passed < SECOND {
            return;
        }
        let seconds = passed.as_nanos() / SECOND.as_nanos();
        self.overloaded += u64::from(self.is_too_much(self.this.busy_percent(SECOND)));
        self.last = match seconds {
            1 => self.this,
            _ => Parts::default(),
        };
        self.this = Parts::default();
        self.start = self.start + Duration::from_nanos(seconds * SECOND.as_nanos());
    }

    /// Begins a new second now. The current second is cut short, so it can no longer count as overloaded.
    fn restart(&mut self, now: Instant) {
        self.advance(now);
        let before = SECOND - now.since(self.start);
        self.last = self.this.and(self.last.scaled(before));
        self.this = Parts::default();
        self.start = now;
    }

    fn is_too_much(&self, busy_percent: u32) -> bool {
        self.armed && busy_percent > OVERLOADED_PERCENT
    }

    fn at(mut self, now: Instant) -> Work {
        self.advance(now);
        let passed = SECOND + now.since(self.start);
        let busy_percent = self.last.and(self.this).busy_percent(passed);
        Work {
            busy_percent,
            overloaded: self.is_too_much(busy_percent),
            overloaded_seconds: self.overloaded,
        }
    }
}

fn percent(part: Duration, whole: Duration) -> u32 {
    (part.as_nanos() * 100 / whole.as_nanos().max(1)) as u32
}

const SECOND: Duration = Duration::from_secs(1);
/// The largest percentage of its time that a shard may work without being overloaded.
const OVERLOADED_PERCENT: u32 = 50;

#[cfg(test)]
mod tests {
    use super::LoadMeter;
    use crate::snapshot::Work;
    use dashpot_engine::{Duration, Instant};
    use proptest::prelude::*;

    fn ms(at: u64) -> Instant {
        Instant::from_nanos(at * 1_000_000)
    }

    fn armed() -> LoadMeter {
        let mut passes = LoadMeter::default();
        passes.set_armed(true);
        passes
    }

    /// Feeds the meter passes with `busy` ms of work in every 10 ms, from `from` to `to`.
    fn work(passes: &mut LoadMeter, from: u64, to: u64, busy: u64) {
        for at in (from..to).step_by(10) {
            pass(passes, at, at + busy);
        }
    }

    /// Feeds the meter one pass, after a sleep of the intended length.
    fn pass(passes: &mut LoadMeter, from: u64, to: u64) {
        passes.begin(ms(from), Duration::ZERO);
        passes.end(ms(to));
    }

    #[test]
    fn a_shard_is_overloaded_above_half_of_its_time() {
        for (busy, overloaded) in [(0, false), (4, false), (5, false), (6, true), (10, true)] {
            let mut passes = armed();
            work(&mut passes, 7_000, 9_500, busy);
            let is = Work {
                busy_percent: busy as u32 * 10,
                overloaded,
                overloaded_seconds: u64::from(overloaded) * 2,
            };
            assert_eq!(passes.work(ms(9_500)), is);
        }
    }

    #[test]
    fn without_a_rule_no_accuracy_is_lost() {
        let mut passes = LoadMeter::default();
        work(&mut passes, 7_000, 9_500, 9);
        let busy = passes.work(ms(9_500));
        assert_eq!((busy.busy_percent, busy.overloaded), (90, false));
        assert_eq!(busy.overloaded_seconds, 0);
    }

    #[test]
    fn what_is_over_is_forgotten_but_counted() {
        let mut passes = armed();
        work(&mut passes, 1_000, 4_000, 10);
        let is = |busy_percent| Work {
            busy_percent,
            overloaded: busy_percent > 50,
            overloaded_seconds: 3,
        };
        assert_eq!(passes.work(ms(4_500)), is(66));
        assert_eq!(passes.work(ms(5_000)), is(0));
        assert_eq!(passes.work(ms(60_000)), is(0));
        work(&mut passes, 60_000, 61_000, 1);
        assert_eq!(passes.work(ms(61_000)), is(10));
    }

    #[test]
    fn a_pass_of_many_seconds_is_work_in_each() {
        let mut passes = armed();
        pass(&mut passes, 500, 3_250);
        let now = passes.work(ms(3_250));
        assert_eq!((now.busy_percent, now.overloaded_seconds), (100, 2));
        passes.begin(ms(4_000), Duration::ZERO);
        assert_eq!(passes.gaps().max(), Some(2_750_000_000));
    }

    #[test]
    fn a_gap_is_a_pass_and_what_the_sleep_after_it_took_too_long() {
        let mut passes = armed();
        passes.begin(ms(10), Duration::ZERO);
        passes.end(ms(12));
        passes.begin(ms(5_000), Duration::from_millis(4_900));
        assert_eq!(passes.gaps().max(), Some(4_902_000_000));
        passes.suspended(Duration::from_secs(60), ms(5_001));
        assert_eq!(passes.gaps().max(), Some(60_000_000_000));
        assert_eq!(passes.stops(ms(5_001)).all.count, 1);
    }

    #[test]
    fn a_stop_is_no_work() {
        let mut passes = armed();
        passes.begin(ms(13_000), Duration::from_secs(3));
        passes.stopped(ms(10_000), ms(13_000));
        passes.stopped(ms(13_100), ms(13_900));
        passes.end(ms(13_950));
        // The shard worked for 150 ms of the 200 ms that the host left it.
        let now = passes.work(ms(14_000));
        assert_eq!((now.busy_percent, now.overloaded_seconds), (75, 1));
        let stops = passes.stops(ms(14_000)).all;
        assert_eq!((stops.count, stops.longest), (2, Duration::from_secs(3)));
        assert_eq!(stops.total, Duration::from_millis(3_800));
    }

    #[test]
    fn overloaded_seconds_of_a_rule_count_from_its_arm() {
        let mut passes = armed();
        let overloaded = |passes: &LoadMeter, at| passes.work(ms(at)).overloaded_seconds;
        work(&mut passes, 1_000, 4_700, 10);
        passes.mark(ms(4_700));
        let old = overloaded(&passes, 4_700);
        assert_eq!(passes.work(ms(4_700)).busy_percent, 100);
        work(&mut passes, 4_700, 6_700, 10);
        passes.mark(ms(6_700));
        let new = overloaded(&passes, 6_700);
        work(&mut passes, 6_700, 7_700, 0);
        let now = overloaded(&passes, 7_700);
        assert_eq!((now - old, now - new), (2, 0));
    }

    proptest! {
        /// For any passes and rests, the meter's figures equal those of a naive count of busy milliseconds.
        #[test]
        fn the_share_is_that_of_a_naive_count(
            passes_and_rests in prop::collection::vec((1_u64..1_500, 0_u64..1_500), 1..40),
            later in 0_u64..3_000,
        ) {
            let (mut passes, mut busy, mut now) = (armed(), Vec::new(), 0);
            for (pass, rest) in passes_and_rests {
                self::pass(&mut passes, now, now + pass);
                busy.extend((0..pass + rest).map(|at| at < pass));
                now += pass + rest;
            }
            busy.resize(now as usize + later as usize, false);
            now += later;
            let whole = (now / 1_000 * 1_000) as usize;
            let last = &busy[whole.saturating_sub(1_000)..];
            let count = |of: &[bool]| of.iter().filter(|busy| **busy).count() as u64;
            let seconds = busy[..whole].chunks(1_000);
            let overloaded = seconds.filter(|second| count(second) * 100 / 1_000 > 50).count();
            let work = passes.work(ms(now));
            let passed = 1_000 + now % 1_000;
            prop_assert_eq!(u64::from(work.busy_percent), count(last) * 100 / passed);
            prop_assert_eq!(work.overloaded_seconds, overloaded as u64);
        }
    }
}
