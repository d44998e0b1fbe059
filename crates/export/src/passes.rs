//! What a shard's passes say of it: for how long it did not look at its sockets, and for how much
//! of the time it had work to do.
//!
//! A shard that works for half of the time is asked for about half of what it can do: what waits
//! while it works is late, and more so the less it rests. So accuracy is promised up to there, and
//! beyond it the shard is overloaded, if it has a rule to be accurate about. Waiting for a deadline
//! is no work, by spinning or asleep; being kept from running in the middle of a pass is, because
//! it takes from what the shard can do here. It is a careful measure: a busier shard takes more
//! requests in a pass, each for less, so that at half of its most I/Os per second it works for more
//! than half of the time.
//!
//! Nothing here has a timer. Passes add up what they took, and who asks does the division.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Duration, Instant};

/// How much of its time a shard works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The share of the last second or two, in percent.
    pub busy_percent: u32,
    /// Whether it is asked for more than accuracy is promised for.
    pub overloaded: bool,
    /// Seconds since the start in which it was.
    pub overloaded_seconds: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Passes {
    /// How long they took. Lateness cannot show it, because a request that is not read yet has no
    /// target.
    gaps: Box<Histogram>,
    work: Seconds,
}

impl Passes {
    /// Whether there are rules, and so an accuracy that can be lost.
    pub(crate) fn set_armed(&mut self, armed: bool) {
        self.work.armed = armed;
    }

    /// Takes account of a pass.
    pub(crate) fn record(&mut self, begun: Instant, ended: Instant) {
        self.gaps.record(ended.since(begun).as_nanos());
        self.work.add(begun, ended);
    }

    pub(crate) fn gaps(&self) -> Box<Histogram> {
        self.gaps.clone()
    }

    pub(crate) fn work(&self, now: Instant) -> Work {
        self.work.at(now)
    }
}

/// Work, added up by the second.
#[derive(Clone, Copy, Debug, Default)]
struct Seconds {
    /// When the current one began.
    start: Instant,
    /// The work in it so far, and that of the one before.
    this: Duration,
    last: Duration,
    armed: bool,
    /// How many were overloaded.
    overloaded: u64,
}

impl Seconds {
    fn add(&mut self, begun: Instant, ended: Instant) {
        let mut from = begun;
        loop {
            self.advance(from);
            let until = ended.min(self.start + SECOND);
            self.this += until.since(from);
            if until == ended {
                return;
            }
            from = until;
        }
    }

    /// Goes on to the second of `now`.
    fn advance(&mut self, now: Instant) {
        let passed = now.since(self.start);
        if passed < SECOND {
            return;
        }
        let seconds = passed.as_nanos() / SECOND.as_nanos();
        self.overloaded += u64::from(self.is_too_much(percent(self.this, SECOND)));
        self.last = match seconds {
            1 => self.this,
            _ => Duration::ZERO,
        };
        self.this = Duration::ZERO;
        self.start = self.start + Duration::from_nanos(seconds * SECOND.as_nanos());
    }

    fn is_too_much(&self, busy_percent: u32) -> bool {
        self.armed && busy_percent > OVERLOADED_PERCENT
    }

    fn at(mut self, now: Instant) -> Work {
        self.advance(now);
        let passed = SECOND + now.since(self.start);
        let busy_percent = percent(self.last + self.this, passed);
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
/// The share of its time up to which a shard may work without being overloaded.
const OVERLOADED_PERCENT: u32 = 50;

#[cfg(test)]
mod tests {
    use super::{Passes, Work};
    use dashpot_engine::Instant;
    use proptest::prelude::*;

    fn ms(at: u64) -> Instant {
        Instant::from_nanos(at * 1_000_000)
    }

    fn armed() -> Passes {
        let mut passes = Passes::default();
        passes.set_armed(true);
        passes
    }

    /// Passes of `busy` ms in every 10 ms, from `from` to `to`.
    fn work(passes: &mut Passes, from: u64, to: u64, busy: u64) {
        for at in (from..to).step_by(10) {
            passes.record(ms(at), ms(at + busy));
        }
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
        let mut passes = Passes::default();
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
        passes.record(ms(500), ms(3_250));
        let now = passes.work(ms(3_250));
        assert_eq!((now.busy_percent, now.overloaded_seconds), (100, 2));
        assert_eq!(passes.gaps().max(), Some(2_750_000_000));
    }

    proptest! {
        /// However passes fall, the share is that of a count of busy milliseconds.
        #[test]
        fn the_share_is_that_of_a_naive_count(
            passes_and_rests in prop::collection::vec((1_u64..1_500, 0_u64..1_500), 1..40),
            later in 0_u64..3_000,
        ) {
            let (mut passes, mut busy, mut now) = (armed(), Vec::new(), 0);
            for (pass, rest) in passes_and_rests {
                passes.record(ms(now), ms(now + pass));
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
