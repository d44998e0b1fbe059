//! Latency histograms that share one bucket layout, and give exact counts in the views of common latency
//! tools.
//!
//! A histogram counts integer nanoseconds in the buckets of [`layout`]. The edges of all views are
//! edges of buckets, so a view is a sum of whole buckets and loses nothing to rounding. In addition
//! to the buckets, a histogram keeps the count, the smallest and largest value, and exact statistical
//! moments, so that averages do not depend on the buckets.
//!
//! Histograms merge by addition, in any order. The difference of two cumulative histograms is the
//! histogram of the time between them.

mod layout;
mod moments;
mod sparse;
mod travel;

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

pub use layout::{BUCKETS, LAYOUT, bucket_of, lower_bound, upper_bound};
pub use moments::Moments;
pub use sparse::{BadBucket, Sparse};

/// A distribution of latencies. A histogram takes 10 KiB, however many values are recorded.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    count: u64,
    /// The smallest value; `u64::MAX` until a value is recorded.
    min: u64,
    max: u64,
    nanos: Moments,
    /// Moments of the values in microseconds. Each value is truncated before it is added, as in DTrace
    /// scripts. Sums of nanoseconds cannot give these moments, because the truncated parts add up and would
    /// change the last digit of the average.
    micros: Moments,
}

/// The unit of a power-of-two view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 1 ns, as in `zpool iostat -w`.
    Nanos,
    /// 1 µs, as in DTrace scripts and biolatency.
    Micros,
    /// 1 ms, as in iolatency.
    Millis,
}

impl Unit {
    /// The unit in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        match self {
            Unit::Nanos => 1,
            Unit::Micros => 1_000,
            Unit::Millis => 1_000_000,
        }
    }
}

/// Makes a histogram from pairs of a value and the number of times that it was recorded.
impl FromIterator<(u64, u64)> for Histogram {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(values: I) -> Histogram {
        let mut all = Histogram::default();
        for (ns, count) in values {
            all.merge(&Histogram::of(ns, count));
        }
        all
    }
}

impl Histogram {
    /// Records one value.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[layout::bucket_of(ns)] += 1;
        self.count += 1;
        if ns < self.min {
            self.min = ns;
        }
        if ns > self.max {
            self.max = ns;
        }
        self.nanos.add(ns);
        self.micros.add(ns / 1_000);
    }

    /// The histogram of one value, recorded `count` times.
    pub fn of(ns: u64, count: u64) -> Histogram {
        let mut histogram = Histogram::default();
        if count > 0 {
            histogram.counts[layout::bucket_of(ns)] = count;
            histogram.count = count;
            (histogram.min, histogram.max) = (ns, ns);
            histogram.nanos = Moments::default().shifted(ns, count);
            histogram.micros = Moments::default().shifted(ns / 1_000, count);
        }
        histogram
    }

    /// The histogram of the same values, each `by` nanoseconds larger.
    ///
    /// The extremes and the moments in nanoseconds are exact. The moments in microseconds are exact only if
    /// `by` is a whole number of microseconds. Each value counts as the middle of its bucket, so a value near
    /// an edge may be counted in the neighbouring bucket.
    pub(crate) fn shifted(&self, by: u64) -> Histogram {
        let mut shifted = Histogram {
            count: self.count,
            nanos: self.nanos.shifted(by, self.count),
            micros: self.micros.shifted(by / 1_000, self.count),
            ..Histogram::default()
        };
        if self.count > 0 {
            shifted.min = self.min.saturating_add(by);
            shifted.max = self.max.saturating_add(by);
        }
        for (bucket, count) in self.buckets() {
            let middle = self.middle(bucket).saturating_add(by);
            shifted.counts[layout::bucket_of(middle)] += count;
        }
        shifted
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        let occupied = other.occupied();
        let theirs = &other.counts[occupied.clone()];
        for (mine, theirs) in self.counts[occupied].iter_mut().zip(theirs) {
            *mine += theirs;
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.nanos.merge(&other.nanos);
        self.micros.merge(&other.micros);
    }

    /// The values recorded after `earlier`, an older state of this histogram.
    ///
    /// Counts and moments are exact. The interval's own extremes are not known: `min` and `max` are the outer
    /// edges of its occupied buckets, limited to the extremes of all values so far. So if the interval
    /// contains the smallest or largest of all values, that extreme is exact; otherwise, it is at most a
    /// bucket's width off.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut interval = self.clone();
        for (mine, theirs) in interval.counts.iter_mut().zip(&earlier.counts) {
            *mine = mine.saturating_sub(*theirs);
        }
        interval.count = self.count.saturating_sub(earlier.count);
        interval.nanos = self.nanos.since(&earlier.nanos);
        interval.micros = self.micros.since(&earlier.micros);
        (interval.min, interval.max) = interval.occupied_range();
        interval
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value in nanoseconds, or `None` if there is none.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value in nanoseconds, or `None` if there is none.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The sum of the values in nanoseconds.
    pub fn sum(&self) -> u128 {
        self.nanos.sum
    }

    /// The sum of the squares of the values in nanoseconds.
    pub fn sum_of_squares(&self) -> u128 {
        self.nanos.sum_of_squares
    }

    /// The average in nanoseconds, truncated.
    pub fn mean(&self) -> Option<u64> {
        self.nanos.mean(self.count)
    }

    /// The average in microseconds of values truncated to microseconds, as DTrace's `avg()` computes it.
    pub fn mean_micros(&self) -> Option<u64> {
        self.micros.mean(self.count)
    }

    /// The standard deviation in microseconds of values truncated to microseconds, as DTrace's `stddev()`
    /// computes it.
    pub fn stddev_micros(&self) -> Option<u64> {
        self.micros.stddev(self.count)
    }

    /// The value in nanoseconds that `ppm` millionths of the values do not exceed (nearest rank),
    /// or `None` if there are no values. 500,000 gives the median.
    ///
    /// The answer is the middle of the bucket of this value, limited to the range from `min` to `max`.
    /// Between 1 µs and 2^11 s the answer is at most 1.2 % off.
    pub fn quantile(&self, ppm: u32) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(ppm)).div_ceil(1_000_000);
        let mut seen = 0;
        let (bucket, _) = self.buckets().find(|&(_, count)| {
            seen += u128::from(count);
            seen >= rank
        })?;
        Some(self.middle(bucket))
    }

    /// The occupied buckets with their counts, lowest first.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> {
        let occupied = self.occupied();
        let counts = self.counts[occupied.clone()].iter().copied();
        occupied.zip(counts).filter(|&(_, count)| count > 0)
    }

    /// The buckets from that of the smallest value to that of the largest. If there are few values, they are
    /// in a few of the 1,306 buckets, and looking at all buckets would take longer than everything else.
    fn occupied(&self) -> Range<usize> {
        let end = match self.count {
            0 => 0,
            _ => layout::bucket_of(self.max) + 1,
        };
        layout::bucket_of(self.min).min(end)..end
    }

    /// The view by powers of two. Row 0 counts the values below one unit, and row `i` counts the values in
    /// `[2^(i−1), 2^i)` units. The last row returned is the last one that is not empty. All values of at
    /// least 2^42 ns (73 minutes) are in one row.
    pub fn log2_rows(&self, unit: Unit) -> Vec<u64> {
        self.rows(|ns| bit_length(ns / unit.as_nanos()))
    }

    /// The rows of perf-tools' iolatency, with the bounds of its code, which differ from its labels. Row 0
    /// counts the values up to and including 1 ms, and row `i` counts the values in `(2^(i−1), 2^i]` ms.
    pub fn iolatency_rows(&self) -> Vec<u64> {
        self.rows(|ns| bit_length(ns.saturating_sub(1) / Unit::Millis.as_nanos()))
    }

    /// Counts between sorted, upper-inclusive bounds in nanoseconds, as in Prometheus: one row for
    /// each bound, and one row for the values above the last bound. `None` if a bound is not the upper bound
    /// of a bucket.
    pub fn rows_between(&self, bounds: &[u64]) -> Option<Vec<u64>> {
        bounds
            .iter()
            .try_for_each(|&bound| layout::bucket_ending_at(bound).map(drop))?;
        let mut rows = self.rows(|ns| bounds.partition_point(|&bound| bound < ns));
        rows.resize(bounds.len() + 1, 0);
        Some(rows)
    }

    /// Sums the buckets by row. `row_of` returns the row of a value, here the lowest value of a bucket. The
    /// sums are exact if no row begins inside a bucket.
    fn rows(&self, row_of: impl Fn(u64) -> usize) -> Vec<u64> {
        let mut rows = Vec::new();
        for (bucket, count) in self.buckets() {
            let row = row_of(lower_bound(bucket));
            if rows.len() <= row {
                rows.resize(row + 1, 0);
            }
            rows[row] += count;
        }
        rows
    }

    /// The middle of a bucket, limited to the range from the smallest to the largest value.
    fn middle(&self, bucket: usize) -> u64 {
        let middle = lower_bound(bucket).midpoint(upper_bound(bucket));
        middle.max(self.min).min(self.max)
    }

    /// The outer edges of the occupied buckets, limited to the range from the smallest to the largest value.
    fn occupied_range(&self) -> (u64, u64) {
        let first = self.buckets().next();
        let last = self.buckets().next_back();
        match (first, last) {
            (Some((first, _)), Some((last, _))) => (
                lower_bound(first).max(self.min),
                upper_bound(last).min(self.max),
            ),
            _ => (u64::MAX, 0),
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            counts: [0; BUCKETS],
            count: 0,
            min: u64::MAX,
            max: 0,
            nanos: Moments::default(),
            micros: Moments::default(),
        }
    }
}

impl fmt::Debug for Histogram {
    /// Lists the occupied buckets only: `{10239999..=10240000 ns: 3}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.buckets().map(|(bucket, count)| {
            let range = lower_bound(bucket)..=upper_bound(bucket);
            (range, count)
        });
        f.debug_map().entries(ranges).finish()
    }
}

/// Number of bits that a value needs: 0 for the value 0.
fn bit_length(value: u64) -> usize {
    (u64::BITS - value.leading_zeros()) as usize
}

#[cfg(test)]
mod tests;
