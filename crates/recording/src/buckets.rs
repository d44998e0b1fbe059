//! The buckets of recorded seconds. Their boundaries are a subset of the frozen boundaries of dashpot's
//! histograms.

use dashpot_engine::histogram::{BUCKETS, bucket_of, upper_bound};

/// The buckets. A boundary of the frozen layout is kept if it is more than a twelfth above the last kept
/// boundary. From 1 µs on, this gives eight buckets per octave. The kept boundaries are frozen, too, because
/// recorded seconds depend on them.
pub(crate) struct Buckets {
    /// The highest value of each bucket.
    le_ns: Vec<u64>,
    /// For each bucket of the frozen layout, the index of the coarser bucket that contains it.
    of_fine: Vec<u16>,
}

impl Buckets {
    pub(crate) fn new() -> Buckets {
        let (mut le_ns, mut of_fine) = (Vec::new(), Vec::with_capacity(BUCKETS));
        let mut kept = 0_u64;
        for fine in 0..BUCKETS {
            of_fine.push(le_ns.len() as u16);
            let bound = upper_bound(fine);
            if bound - kept > kept / 12 || fine + 1 == BUCKETS {
                le_ns.push(bound);
                kept = bound;
            }
        }
        Buckets { le_ns, of_fine }
    }

    pub(crate) fn len(&self) -> usize {
        self.le_ns.len()
    }

    /// The bucket of a latency.
    pub(crate) fn of(&self, ns: u64) -> usize {
        self.of_fine[bucket_of(ns)].into()
    }

    /// The highest latency in a bucket.
    pub(crate) fn le_ns(&self, bucket: usize) -> u64 {
        self.le_ns[bucket]
    }
}

/// The bucket of a percentile: the first bucket at which the counts so far add up to at least this percentage
/// of all I/Os.
pub(crate) fn percentile(counts: &[u32], total: u64, percent: u64) -> usize {
    let rank = (total * percent).div_ceil(100);
    let mut seen = 0;
    let reached = counts.iter().position(|count| {
        seen += u64::from(*count);
        seen >= rank
    });
    reached.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_in_the_first_bucket_that_reaches_it_and_buckets_are_narrow() {
        let buckets = Buckets::new();
        let bounds: Vec<u64> = (0..buckets.len())
            .map(|bucket| buckets.le_ns(bucket))
            .collect();
        assert!(
            bounds.is_sorted() && buckets.len() < 340,
            "{}",
            buckets.len()
        );
        for ns in (0..64_u32).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, 3 << bit]) {
            let first = bounds.iter().position(|bound| *bound >= ns);
            assert_eq!(Some(buckets.of(ns)), first, "{ns}");
        }
        let wide = bounds
            .windows(2)
            .find(|pair| pair[0] > 1_000 && pair[1] < 1 << 41 && pair[1] - pair[0] > pair[0] / 9);
        assert_eq!(wide, None);
    }

    #[test]
    fn a_percentile_is_the_bucket_that_reaches_its_rank() {
        let counts = [0, 50, 49, 0, 1];
        let at = |percent| percentile(&counts, 100, percent);
        assert_eq!([1, 50, 51, 99, 100].map(at), [1, 1, 2, 2, 4]);
    }
}
