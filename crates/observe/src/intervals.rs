//! The intervals of a report: when each one should end, and how an early or late end changes the ones after
//! it. Daemon, kernel, simulation and `top` all use this state machine.
//!
//! The state machine reads no clock. The caller passes in every time, always from the same clock: a daemon's
//! clock, this host's clock, or a virtual clock. Intervals are due at multiples of their length after the
//! beginning, so they do not drift. Each interval begins where the previous interval has ended. An interval
//! that ends late keeps its true length. Other intervals that were due to end by then are not made up for,
//! but are counted as missed.

use super::in_flight::Mention;
use super::length::Length;

/// The present interval, and the following intervals.
#[derive(Clone, Debug)]
pub struct Intervals {
    period_ns: u64,
    /// How many due times are left; `None` if intervals follow one another until the report is closed.
    left: Option<u64>,
    start_ns: u64,
    due_ns: u64,
}

/// An interval that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// When the interval began.
    pub start_ns: u64,
    /// When the interval ended.
    pub end_ns: u64,
    /// How long the interval should have been; `None` if the interval lasts until it is closed.
    pub asked_ns: Option<u64>,
    /// How many other intervals were due to end before this interval ended. The report lacks those intervals.
    pub missed: u64,
    /// Whether this is the last interval.
    pub is_last: bool,
}

impl Intervals {
    /// Intervals of one length, the first of which begins at `start_ns`. There are `count` intervals, or,
    /// without a count, intervals until [`Intervals::close`]. An interval with a length of [`u64::MAX`] is
    /// never due.
    pub fn new(start_ns: u64, period_ns: u64, count: Option<u64>) -> Intervals {
        let period_ns = period_ns.max(1);
        Intervals {
            period_ns,
            left: count,
            start_ns,
            due_ns: start_ns.saturating_add(period_ns),
        }
    }

    /// When the present interval is due to end; `None` if there is no interval.
    pub fn due_ns(&self) -> Option<u64> {
        (!self.is_over()).then_some(self.due_ns)
    }

    /// Whether there are no more intervals.
    pub fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// Whether the present interval is the last of the `count` intervals.
    pub fn is_last(&self) -> bool {
        self.left == Some(1)
    }

    /// Ends the present interval at `at_ns`; `None` if the interval is not yet due.
    pub fn end(&mut self, at_ns: u64) -> Option<Span> {
        let is_due = self.due_ns().is_some_and(|due_ns| at_ns >= due_ns);
        is_due.then(|| self.end_at(at_ns))
    }

    /// Ends the present interval at `at_ns`, due or not, as the last interval. `None` if there was no
    /// interval, or if no time has passed in it.
    pub fn close(&mut self, at_ns: u64) -> Option<Span> {
        let is_there = !self.is_over() && at_ns > self.start_ns;
        let span = is_there.then(|| self.end_at(at_ns));
        self.left = Some(0);
        span.map(|span| Span {
            is_last: true,
            ..span
        })
    }

    /// Ends the present interval at `at_ns` if the interval is due, or in any case if `is_last`. See
    /// [`Intervals::end`] and [`Intervals::close`].
    pub fn end_or_close(&mut self, at_ns: u64, is_last: bool) -> Option<Span> {
        if is_last {
            self.close(at_ns)
        } else {
            self.end(at_ns)
        }
    }

    /// Changes the length of the present interval and of the following intervals.
    pub fn every(&mut self, period_ns: u64) {
        self.period_ns = period_ns.max(1);
        self.due_ns = self.start_ns.saturating_add(self.period_ns);
    }

    fn end_at(&mut self, at_ns: u64) -> Span {
        // The number of due times up to `at_ns`. An interval that ends early uses up only its own due time.
        let come = match at_ns.checked_sub(self.due_ns) {
            Some(late_ns) => late_ns / self.period_ns + 1,
            None => 1,
        };
        let come = come.min(self.left.unwrap_or(u64::MAX));
        self.left = self.left.map(|left| left - come);
        let gone_ns = self.period_ns.saturating_mul(come);
        self.due_ns = self.due_ns.saturating_add(gone_ns);
        Span {
            start_ns: std::mem::replace(&mut self.start_ns, at_ns),
            end_ns: at_ns,
            asked_ns: (self.period_ns < u64::MAX).then_some(self.period_ns),
            missed: come - 1,
            is_last: self.is_over(),
        }
    }
}

impl Span {
    /// The length of the interval, in nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// The I/Os in flight that the interval's report mentions.
    pub fn mention(&self) -> Mention {
        if self.is_last {
            Mention::All
        } else {
            Mention::WholeInterval
        }
    }

    /// The interval's length, as reports show it.
    pub fn length(&self) -> Length {
        Length {
            elapsed: std::time::Duration::from_nanos(self.elapsed_ns()),
            asked: self.asked_ns.map(std::time::Duration::from_nanos),
            missed: self.missed,
            ..Length::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Intervals, Span};
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// Tries to end intervals of 100 ms, the first of which begins at 0, at each of these moments. Returns
    /// `(start, end, missed)` of each interval that ended, in milliseconds.
    fn ends(intervals: &mut Intervals, moments_ms: &[u64]) -> Vec<(u64, u64, u64)> {
        let spans = moments_ms.iter().filter_map(|at| intervals.end(at * MS));
        spans
            .map(|span| (span.start_ns / MS, span.end_ns / MS, span.missed))
            .collect()
    }

    #[test]
    fn one_that_ends_late_takes_the_place_of_those_missed() {
        let mut intervals = Intervals::new(0, 100 * MS, None);
        let moments = [99, 100, 150, 203, 702, 799, 800];
        let expected = [(0, 100, 0), (100, 203, 0), (203, 702, 4), (702, 800, 0)];
        assert_eq!(ends(&mut intervals, &moments), expected);
    }

    #[test]
    fn those_missed_are_among_those_asked_for() {
        let mut intervals = Intervals::new(0, 100 * MS, Some(10));
        let expected = [(0, 100, 0), (100, 650, 4), (650, 700, 0)];
        assert_eq!(ends(&mut intervals, &[100, 650, 700]), expected);
        assert_eq!(intervals.due_ns(), Some(800 * MS));
        // This is the last of ten intervals, so no later interval can be missed.
        let last = intervals.end(9_000 * MS).unwrap();
        assert_eq!((last.elapsed_ns(), last.missed), (8_300 * MS, 2));
        assert!(last.is_last && intervals.is_over() && intervals.due_ns().is_none());
        assert_eq!(intervals.close(9_001 * MS), None);
    }

    #[test]
    fn a_signal_ends_the_present_one_early_and_none_follows() {
        let mut intervals = Intervals::new(7, 100 * MS, None);
        let last = intervals.close(30 * MS + 7).unwrap();
        let expected = Span {
            start_ns: 7,
            end_ns: 30 * MS + 7,
            asked_ns: Some(100 * MS),
            missed: 0,
            is_last: true,
        };
        assert_eq!(last, expected);
        assert_eq!(intervals.due_ns(), None);
    }

    #[test]
    fn one_without_an_end_is_never_due() {
        let mut intervals = Intervals::new(5, u64::MAX, Some(1));
        assert_eq!(intervals.end(u64::MAX - 1), None);
        let whole = intervals.close(1_005).unwrap();
        assert_eq!((whole.elapsed_ns(), whole.asked_ns), (1_000, None));
    }

    #[test]
    fn another_length_holds_for_the_present_one() {
        let mut intervals = Intervals::new(0, 100 * MS, None);
        intervals.end(100 * MS);
        intervals.every(1_000 * MS);
        assert_eq!(intervals.due_ns(), Some(1_100 * MS));
    }

    /// One step of a test: the operation, and the time since the step before.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        End(u64),
        Close(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            60 => (0..40_u64).prop_map(Step::End),
            3 => (0..400_u64).prop_map(Step::End),
            1 => (0..40_u64).prop_map(Step::Close),
        ];
        prop::collection::vec(step, 1..200)
    }

    /// The naive model: a list of all due times, which the model strikes out one by one.
    struct Model {
        due: std::collections::VecDeque<u64>,
        start: u64,
    }

    impl Model {
        fn new(start: u64, period: u64, count: Option<u64>) -> Model {
            let due = (1..=count.unwrap_or(100_000)).map(|number| start + number * period);
            Model {
                due: due.collect(),
                start,
            }
        }

        /// The start and the end of the interval, the number of missed intervals, and whether the interval
        /// is the last interval.
        fn end(&mut self, at: u64) -> Option<(u64, u64, u64, bool)> {
            self.due.front().filter(|due| **due <= at)?;
            let mut struck = 0;
            while self.due.front().is_some_and(|due| *due <= at) {
                self.due.pop_front();
                struck += 1;
            }
            let start = std::mem::replace(&mut self.start, at);
            Some((start, at, struck - 1, self.due.is_empty()))
        }

        fn close(&mut self, at: u64) -> Option<(u64, u64, u64, bool)> {
            let is_there = !self.due.is_empty() && at > self.start;
            let ended = self.end(at);
            let ended = ended.or(Some((self.start, at, 0, true)));
            self.due.clear();
            let (start, end, missed, _) = ended.filter(|_| is_there)?;
            Some((start, end, missed, true))
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn the_machine_does_what_the_naive_model_does(
            start in 0..1_000_u64,
            period in 1..50_u64,
            count in prop::option::of(0..60_u64),
            steps in steps(),
        ) {
            let mut machine = Intervals::new(start, period, count);
            let mut model = Model::new(start, period, count);
            let (mut now, mut covered, mut struck) = (start, start, 0);
            for step in steps {
                let (span, expected) = match step {
                    Step::End(later) => { now += later; (machine.end(now), model.end(now)) }
                    Step::Close(later) => { now += later; (machine.close(now), model.close(now)) }
                };
                let told = span.map(|span| (span.start_ns, span.end_ns, span.missed, span.is_last));
                prop_assert_eq!(told, expected);
                prop_assert_eq!(machine.due_ns(), model.due.front().copied());
                if let Some(span) = span {
                    // Intervals do not overlap and leave no gap.
                    prop_assert_eq!(span.start_ns, covered);
                    prop_assert!(span.end_ns > span.start_ns);
                    covered = span.end_ns;
                    // Each due time has an interval, or counts as missed.
                    struck += 1 + span.missed;
                    prop_assert!(count.is_none_or(|count| struck <= count));
                }
            }
        }
    }
}
