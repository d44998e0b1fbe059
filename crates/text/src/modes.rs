//! Finds latencies of two kinds, fast and slow, with few latencies in between. The mean of such latencies
//! tells little, because hardly any I/O took about as long as the mean.

use dashpot_engine::histogram::{Histogram, lower_bound, upper_bound};
use dashpot_rules::short_time;
use serde::Serialize;

/// The fast kind and the slow kind of latencies. JSON: `{"fast": 710, "fast_upto_ns": 999, "slow": 189,
/// "slow_from_ns": 200000000}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TwoModes {
    /// How many I/Os belong to the fast kind.
    pub fast: u64,
    /// The longest latency of the fast kind.
    pub fast_upto_ns: u64,
    /// How many I/Os belong to the slow kind.
    pub slow: u64,
    /// The shortest latency of the slow kind.
    pub slow_from_ns: u64,
}

/// There are two kinds only if each kind has at least a share of 1/`KIND` of the I/Os.
const KIND: u64 = 10;
/// There are two kinds only if at most a share of 1/`BETWEEN` of the I/Os have latencies between them.
const BETWEEN: u64 = 8;
/// There are two kinds only if the shortest slow latency is at least `APART` times the longest fast latency.
const APART: u64 = 50;
/// If the longest fast latency is shorter than this, it counts as this long, because in virtual time many
/// writes take no time.
const LEAST_NS: u64 = 1_000;

impl TwoModes {
    /// The fast kind and the slow kind, with the widest possible gap between them, if the latencies have two
    /// kinds.
    pub fn of(latencies: &Histogram) -> Option<TwoModes> {
        let n = latencies.count();
        let buckets: Vec<(usize, u64)> = latencies.buckets().collect();
        let mut fast = 0;
        let splits = buckets
            .iter()
            .enumerate()
            .filter_map(|(at, (bucket, count))| {
                fast += count;
                let (from, slow) = slow_kind(&buckets[at + 1..], n - fast, n / BETWEEN)?;
                Some(TwoModes {
                    fast,
                    fast_upto_ns: upper_bound(*bucket),
                    slow,
                    slow_from_ns: lower_bound(from),
                })
            });
        let enough = |split: &TwoModes| split.fast.min(split.slow) >= n.div_ceil(KIND);
        let widest = splits.filter(enough).max_by_key(TwoModes::times);
        widest.filter(|split| split.times() >= APART)
    }

    fn times(&self) -> u64 {
        self.slow_from_ns / self.fast_upto_ns.max(LEAST_NS)
    }

    /// A line that tells the reader that the latencies of `what` are of two kinds.
    pub fn line(&self, what: &str, latencies: &Histogram) -> String {
        let share = |count: u64| 100.0 * count as f64 / latencies.count().max(1) as f64;
        let fast = if self.fast_upto_ns < LEAST_NS {
            format!("less than {}", short_time(LEAST_NS))
        } else {
            format!("at most {}", short_time(self.fast_upto_ns))
        };
        format!(
            "{what} are of two kinds: {:.0} % take {fast},\n\
             {:.0} % at least {}. Their mean, {}, is of both together.\n",
            share(self.fast),
            share(self.slow),
            short_time(self.slow_from_ns),
            latencies.mean().map(short_time).unwrap_or_default(),
        )
    }
}

/// The lowest bucket of the slow kind, and how many I/Os the slow kind has. `above` has the buckets above the
/// fast kind, which contain `left` I/Os. At most `between` of these I/Os may lie between the two kinds. The
/// slow kind begins with the first bucket that cannot lie between the kinds without exceeding this number.
fn slow_kind(above: &[(usize, u64)], left: u64, between: u64) -> Option<(usize, u64)> {
    let mut slow = left;
    for (bucket, count) in above {
        if left - slow + count > between {
            return Some((*bucket, slow));
        }
        slow -= count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_kinds_are_told_with_their_shares() {
        let histogram = Histogram::from_iter([
            (0, 710),
            (50_000_000, 60),
            (150_000_000, 40),
            (400_000_000, 190),
        ]);
        let modes = TwoModes::of(&histogram).unwrap();
        assert_eq!((modes.fast, modes.slow), (710, 190));
        assert_eq!(modes.fast_upto_ns, 0);
        let line = modes.line("At the volume, writes", &histogram);
        let text =
            "At the volume, writes are of two kinds: 71 % take less than 1.00us,\n19 % at least 39";
        assert!(line.starts_with(text), "{line}");
        assert!(
            line.ends_with("Their mean, 85.0ms, is of both together.\n"),
            "{line}"
        );
    }

    #[test]
    fn one_kind_a_tail_and_a_wide_spread_are_not_two() {
        let one = [(117_000_000, 1_000)];
        let tail = [(0, 970), (1_000_000_000, 30)];
        let near = [(1_000_000, 500), (40_000_000, 500)];
        let few = [(0, 80), (310_000, 920)];
        // Each power of two has the same count.
        let spread: Vec<(u64, u64)> = (10..30).map(|power| (1 << power, 50)).collect();
        for values in [&one[..], &tail, &near, &few, &spread, &[]] {
            let latencies = values.iter().copied().collect();
            assert_eq!(TwoModes::of(&latencies), None, "{values:?}");
        }
    }

    #[test]
    fn what_is_below_a_microsecond_is_one_kind() {
        let both = [(1, 500), (900, 500)];
        assert_eq!(TwoModes::of(&Histogram::from_iter(both)), None);
    }
}
