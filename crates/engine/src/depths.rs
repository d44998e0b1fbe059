//! The time that a device has spent with each number of zios in flight.
//!
//! The depth is the number of zios in flight. Many clients limit it without reporting the limit, and then
//! lanes and delays may have no effect. The mean depth hides such a limit, but the time spent at each depth
//! shows it. To look at an interval, take the difference between two readings.

use alloc::vec::Vec;

use crate::time::Duration;

/// The time spent with each number of zios in flight. [`DepthTimes::DEEPEST`] also stands for all larger
/// numbers.
///
/// The engine updates these times twice for each zio, so an update must be cheap: it is a single addition.
/// The engine computes how long the device was busy, and how many zios were in flight in that time, only when
/// a caller asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DepthTimes {
    /// The nanoseconds spent with each number of zios, from 0 to the greatest number so far. The list grows
    /// only when the greatest number does.
    times: Vec<u64>,
    /// The integral of the number of zios in excess of [`DepthTimes::DEEPEST`], in zio-nanoseconds.
    above: u128,
}

/// A summary of [`DepthTimes`], which shows whether the clients limit the depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepthSummary {
    /// The greatest number of zios that were in flight at once.
    pub most: u32,
    /// The depth at which the device has spent the most time.
    pub usual: u32,
    /// The time that the device has spent at the depth `usual`.
    pub usual_time: Duration,
    /// The time in which any zio was in flight.
    pub busy: Duration,
    /// The integral of the number of zios over the time `busy`, in zio-nanoseconds.
    pub depth_time: u128,
}

impl DepthTimes {
    /// The greatest depth whose time is counted separately.
    pub const DEEPEST: u32 = 512;

    #[inline]
    pub(crate) fn add(&mut self, depth: u32, span: Duration) {
        let at = depth.min(DepthTimes::DEEPEST) as usize;
        if self.times.len() <= at {
            self.grow(at);
        }
        self.times[at] += span.as_nanos();
        if depth > DepthTimes::DEEPEST {
            let above = depth - DepthTimes::DEEPEST;
            self.above += u128::from(above) * u128::from(span.as_nanos());
        }
    }

    #[cold]
    fn grow(&mut self, at: usize) {
        self.times.resize(at + 1, 0);
    }

    /// Each depth that occurred, with its time.
    pub fn times(&self) -> impl Iterator<Item = (u32, Duration)> {
        let times = (0..).zip(self.times.iter().copied()).skip(1);
        let spent = times.filter(|(_, time)| *time > 0);
        spent.map(|(depth, time)| (depth, Duration::from_nanos(time)))
    }

    /// The time spent since `earlier`, an older reading of these times.
    pub fn since(&self, earlier: &DepthTimes) -> DepthTimes {
        let before = earlier.times.iter().copied().chain(core::iter::repeat(0));
        let times = self.times.iter().zip(before);
        DepthTimes {
            times: times.map(|(now, then)| now.saturating_sub(then)).collect(),
            above: self.above.saturating_sub(earlier.above),
        }
    }

    /// Adds the times in `more`, depth by depth.
    pub fn merge(&mut self, more: &DepthTimes) {
        if self.times.len() < more.times.len() {
            self.times.resize(more.times.len(), 0);
        }
        let pairs = self.times.iter_mut().zip(&more.times);
        pairs.for_each(|(sum, time)| *sum += time);
        self.above += more.above;
    }

    /// The summary of these times.
    pub fn summary(&self) -> DepthSummary {
        let mut summary = DepthSummary {
            depth_time: self.above,
            ..DepthSummary::default()
        };
        for (depth, time) in self.times() {
            summary.most = depth;
            summary.busy += time;
            summary.depth_time += u128::from(depth) * u128::from(time.as_nanos());
            if time >= summary.usual_time {
                (summary.usual, summary.usual_time) = (depth, time);
            }
        }
        summary
    }
}

/// Rebuilds the times from [`DepthTimes::times`]. The integral counts every number beyond
/// [`DepthTimes::DEEPEST`] as `DEEPEST`, because the times do not distinguish larger numbers.
impl FromIterator<(u32, Duration)> for DepthTimes {
    fn from_iter<I: IntoIterator<Item = (u32, Duration)>>(times: I) -> DepthTimes {
        let mut sum = DepthTimes::default();
        for (depth, time) in times {
            sum.add(depth.min(DepthTimes::DEEPEST), time);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::{DepthSummary, DepthTimes, Duration};
    use alloc::vec::Vec;

    fn times(spent: &[(u32, u64)]) -> DepthTimes {
        let mut times = DepthTimes::default();
        for (depth, ns) in spent {
            times.add(*depth, Duration::from_nanos(*ns));
        }
        times
    }

    #[test]
    fn a_bound_shows_between_any_two_looks() {
        let before = times(&[(128, 5), (1, 10)]);
        let after = times(&[(128, 5), (1, 11), (16, 90), (15, 4)]);
        assert_eq!(
            after.since(&before).summary(),
            DepthSummary {
                most: 16,
                usual: 16,
                usual_time: Duration::from_nanos(90),
                busy: Duration::from_nanos(95),
                depth_time: 1 + 16 * 90 + 15 * 4,
            }
        );
        assert_eq!(after.since(&after).summary(), DepthSummary::default());
    }

    #[test]
    fn what_is_deeper_than_the_deepest_is_counted_there() {
        let deep = times(&[
            (DepthTimes::DEEPEST + 7, 3),
            (0, 9),
            (DepthTimes::DEEPEST, 1),
        ]);
        let told: Vec<_> = deep.times().collect();
        assert_eq!(told, [(DepthTimes::DEEPEST, Duration::from_nanos(4))]);
        let summary = deep.summary();
        let deepest = u128::from(DepthTimes::DEEPEST);
        assert_eq!(summary.depth_time, 3 * (deepest + 7) + deepest);
        assert_eq!(summary.busy, Duration::from_nanos(4));
        assert_eq!(deep.since(&deep).summary(), DepthSummary::default());
    }

    #[test]
    fn times_that_follow_each_other_are_one() {
        let mut sum = times(&[(2, 5), (1, 10)]);
        sum.merge(&times(&[(2, 1), (DepthTimes::DEEPEST + 7, 3)]));
        let whole = times(&[(2, 6), (1, 10), (DepthTimes::DEEPEST + 7, 3)]);
        assert_eq!(sum, whole);
        let told: DepthTimes = whole.times().collect();
        assert!(told.times().eq(whole.times()));
    }
}
