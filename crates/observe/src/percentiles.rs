//! Percentiles, with the number of I/Os from which they are computed.

use dashpot_engine::histogram::Histogram;
use serde::Serialize;

/// Percentiles of a latency. JSON: `{"n": 250, "p50_ns": 10025000, "p90_ns": …, "p95_ns": …,
/// "p99_ns": …, "p99_9_ns": null, "max_ns": …}`.
///
/// A percentile is `null` unless at least one I/O is expected above it; for example, p99 needs 100 I/Os. A
/// percentile is at most 1.2 % off (the bucket's width). `n` is exact. So is the maximum, except that the
/// maximum of an interval can be rounded up to its bucket's edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// The number of I/Os.
    pub n: u64,
    /// The median; `None` if there are too few I/Os, as for the other percentiles.
    pub p50_ns: Option<u64>,
    /// The 90th percentile.
    pub p90_ns: Option<u64>,
    /// The 95th percentile.
    pub p95_ns: Option<u64>,
    /// The 99th percentile.
    pub p99_ns: Option<u64>,
    /// The 99.9th percentile.
    pub p99_9_ns: Option<u64>,
    /// The longest latency.
    pub max_ns: Option<u64>,
}

impl Percentiles {
    /// Computes the percentiles of a histogram.
    pub fn of(latencies: &Histogram) -> Self {
        Percentiles {
            n: latencies.count(),
            p50_ns: percentile(latencies, 500_000),
            p90_ns: percentile(latencies, 900_000),
            p95_ns: percentile(latencies, 950_000),
            p99_ns: percentile(latencies, 990_000),
            p99_9_ns: percentile(latencies, 999_000),
            max_ns: latencies.max(),
        }
    }

    /// The percentiles and the longest latency, in the order in which tables show them.
    pub fn figures(&self) -> [Option<u64>; 6] {
        [
            self.p50_ns,
            self.p90_ns,
            self.p95_ns,
            self.p99_ns,
            self.p99_9_ns,
            self.max_ns,
        ]
    }
}

/// The percentile at `ppm` millionths, in nanoseconds, if there are enough I/Os for it.
pub fn percentile(latencies: &Histogram, ppm: u32) -> Option<u64> {
    is_enough(latencies.count(), ppm).then(|| latencies.quantile(ppm))?
}

/// Whether `n` I/Os are enough for a percentile: at least one of them must be expected above it.
pub fn is_enough(n: u64, ppm: u32) -> bool {
    n >= 1_000_000 / u64::from(1_000_000 - ppm.min(999_999))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_a_zio_above_it() {
        let mut latencies = Histogram::of(5_000_000, 99);
        let few = Percentiles::of(&latencies);
        latencies.record(5_000_000);
        let enough = Percentiles::of(&latencies);
        assert_eq!((few.p90_ns, few.p99_ns), (Some(5_000_000), None));
        assert_eq!((enough.p99_ns, enough.p99_9_ns), (Some(5_000_000), None));
        assert_eq!(Percentiles::of(&Histogram::default()).p50_ns, None);
    }
}
