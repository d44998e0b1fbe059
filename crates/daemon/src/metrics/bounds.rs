//! The boundaries of the histograms that Prometheus sees: powers of two, in seconds, from 2^-20 (just below
//! 1 µs) to 2^5 (32 s). Each boundary belongs to the bucket below it.
//!
//! These boundaries are also boundaries of dashpot's own histograms, so the counts are exact. Prometheus'
//! native histograms of schema 0 have the same boundaries. Every program prints these boundaries with the
//! same digits, because they are binary fractions.

use std::iter::once;

use dashpot_engine::histogram::Histogram;

const FIRST: i32 = -20;
const LAST: i32 = 5;

/// The boundaries in seconds.
fn seconds() -> impl Iterator<Item = f64> {
    (FIRST..=LAST).map(|power| 2f64.powi(power))
}

/// The boundaries in whole nanoseconds. No latency lies between a boundary in nanoseconds and the
/// same boundary in seconds.
fn nanos() -> Vec<u64> {
    seconds().map(|bound| (bound * 1e9) as u64).collect()
}

/// Each boundary, with the count of values between it and the boundary before it. The last boundary
/// is infinite.
pub(super) fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    let bounds = seconds().chain(once(f64::INFINITY));
    let counts = histogram.rows_between(&nanos()).unwrap_or_default();
    bounds.zip(counts).collect()
}

#[cfg(test)]
mod tests {
    use super::{buckets, nanos, seconds};
    use dashpot_engine::histogram::Histogram;

    #[test]
    fn boundaries_are_inclusive_and_those_of_the_layout() {
        for (at, (ns, bound)) in nanos().into_iter().zip(seconds()).enumerate() {
            let mut histogram = Histogram::default();
            histogram.record(ns);
            histogram.record(ns + 1);
            let counted = buckets(&histogram);
            assert_eq!((counted[at], counted[at + 1].1), ((bound, 1), 1), "{bound}");
        }
    }

    #[test]
    fn everything_is_in_a_bucket() {
        let mut histogram = Histogram::default();
        assert_eq!(buckets(&histogram).len(), 27);
        for ns in [0, 953, 954, 1_000_000_000, u64::MAX] {
            histogram.record(ns);
        }
        let counts: Vec<u64> = buckets(&histogram).iter().map(|bucket| bucket.1).collect();
        assert_eq!((counts[0], counts[1], counts[20], counts[26]), (2, 1, 1, 1));
    }
}
