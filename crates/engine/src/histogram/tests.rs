//! Compares the histogram with plain lists of values.

use super::*;
use alloc::vec;
use proptest::collection::vec as list_of;
use proptest::prelude::*;

const UNITS: [Unit; 3] = [Unit::Nanos, Unit::Micros, Unit::Millis];

/// The lowest value in the last row of a view: all values from 2^42 ns on are in that row.
const VIEW_END_NS: u64 = 1 << 42;

/// Latencies of all sizes, and values at the edges of rows, where a view could be off by one.
fn latency() -> impl Strategy<Value = u64> {
    let any_size = (any::<u64>(), 22..=64u32).prop_map(|(ns, bits)| ns.unbounded_shr(bits));
    let edge = (0..42u32, 0..4usize, 0..3u64).prop_map(|(k, unit, beside)| {
        let unit = [1, 1_000, 1_000_000, 1_000_000_000u64][unit];
        ((unit << k) + beside)
            .saturating_sub(1)
            .min(VIEW_END_NS - 1)
    });
    prop_oneof![any_size, edge]
}

fn recorded(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    values.iter().for_each(|&ns| histogram.record(ns));
    histogram
}

/// Counts values by row, one at a time.
fn counted(values: &[u64], row_of: impl Fn(u64) -> usize) -> Vec<u64> {
    let mut rows = Vec::new();
    for &ns in values {
        let row = row_of(ns);
        rows.resize(rows.len().max(row + 1), 0);
        rows[row] += 1;
    }
    rows
}

/// How many successive powers of two, from 1 on, satisfy `within`, found by trying them in turn.
fn powers_while(within: impl Fn(u64) -> bool) -> usize {
    (0..63).take_while(|&k| within(1 << k)).count()
}

fn merged(a: &Histogram, b: &Histogram) -> Histogram {
    let mut sum = a.clone();
    sum.merge(b);
    sum
}

proptest! {
    #[test]
    fn log2_views_equal_counting_the_values(values in list_of(latency(), 0..200)) {
        let histogram = recorded(&values);
        for unit in UNITS {
            let row_of = |ns| powers_while(|power| {
                u128::from(power) * u128::from(unit.as_nanos()) <= u128::from(ns)
            });
            prop_assert_eq!(histogram.log2_rows(unit), counted(&values, row_of));
        }
    }

    #[test]
    fn the_iolatency_view_equals_counting_the_values(values in list_of(latency(), 0..200)) {
        let row_of = |ns| match ns {
            0..=1_000_000 => 0,
            _ => powers_while(|power| u128::from(power) * 1_000_000 < u128::from(ns)),
        };
        prop_assert_eq!(recorded(&values).iolatency_rows(), counted(&values, row_of));
    }

    #[test]
    fn rows_between_bounds_of_buckets_equal_counting_the_values(
        values in list_of(latency(), 0..200),
        mut buckets in list_of(0..BUCKETS - 1, 0..30),
    ) {
        buckets.sort_unstable();
        buckets.dedup();
        let bounds: Vec<u64> = buckets.into_iter().map(upper_bound).collect();
        let mut expected = counted(&values, |ns| bounds.iter().filter(|&&b| b < ns).count());
        expected.resize(bounds.len() + 1, 0);
        prop_assert_eq!(recorded(&values).rows_between(&bounds), Some(expected));
    }

    #[test]
    fn counts_extremes_and_moments_are_exact(values in list_of(latency(), 0..200)) {
        let histogram = recorded(&values);
        let n = values.len() as u128;
        prop_assert_eq!(u128::from(histogram.count()), n);
        prop_assert_eq!(histogram.min(), values.iter().copied().min());
        prop_assert_eq!(histogram.max(), values.iter().copied().max());
        prop_assert_eq!(histogram.sum(), values.iter().map(|&ns| u128::from(ns)).sum::<u128>());
        let squares = values.iter().map(|&ns| u128::from(ns).pow(2));
        prop_assert_eq!(histogram.sum_of_squares(), squares.sum::<u128>());

        let micros = values.iter().map(|&ns| u128::from(ns / 1_000));
        let mean = micros.clone().sum::<u128>().checked_div(n);
        let squares = micros.map(|us| us * us).sum::<u128>().checked_div(n);
        let stddev = squares.zip(mean).map(|(squares, mean)| (squares - mean * mean).isqrt());
        prop_assert_eq!(histogram.mean_micros().map(u128::from), mean);
        prop_assert_eq!(histogram.stddev_micros().map(u128::from), stddev);
    }

    #[test]
    fn merging_is_exact_in_any_order_and_grouping(
        parts in list_of(list_of(latency(), 0..40), 1..9),
        picks in list_of(any::<proptest::sample::Index>(), 16),
    ) {
        let together = recorded(&parts.concat());
        let mut left: Vec<Histogram> = parts.iter().map(|part| recorded(part)).collect();
        let mut picks = picks.iter().cycle();
        while left.len() > 1 {
            let mut pick = || {
                let index = picks.next().map_or(0, |pick| pick.index(left.len()));
                left.swap_remove(index)
            };
            let (one, other) = (pick(), pick());
            left.push(merged(&one, &other));
        }
        prop_assert_eq!(left.pop(), Some(together));
    }

    /// Takes snapshots of a growing histogram, as a report does. The intervals between them must add up to
    /// the whole.
    #[test]
    fn the_intervals_add_up_to_the_whole(parts in list_of(list_of(latency(), 0..40), 1..9)) {
        let mut now = Histogram::default();
        let mut sum = Histogram::default();
        for part in &parts {
            let earlier = now.clone();
            part.iter().for_each(|&ns| now.record(ns));
            sum.merge(&now.since(&earlier));
        }
        prop_assert!(sum.buckets().eq(now.buckets()));
        prop_assert_eq!((sum.count, sum.nanos, sum.micros), (now.count, now.nanos, now.micros));
    }

    #[test]
    fn the_interval_since_the_beginning_is_the_whole(values in list_of(latency(), 0..200)) {
        let whole = recorded(&values);
        prop_assert_eq!(whole.since(&Histogram::default()), whole);
    }

    #[test]
    fn an_interval_is_what_was_recorded_in_it(
        before in list_of(latency(), 0..50),
        after in list_of(latency(), 0..50),
    ) {
        let earlier = recorded(&before);
        let interval = recorded(&[before, after.clone()].concat()).since(&earlier);
        let alone = recorded(&after);
        prop_assert!(interval.buckets().eq(alone.buckets()));
        prop_assert_eq!(interval.count(), alone.count());
        prop_assert_eq!((interval.nanos, interval.micros), (alone.nanos, alone.micros));
        prop_assert!(interval.min() <= alone.min() && alone.max() <= interval.max());
        for (mine, exact) in [interval.min().zip(alone.min()), interval.max().zip(alone.max())]
            .into_iter()
            .flatten()
        {
            prop_assert_eq!(layout::bucket_of(mine), layout::bucket_of(exact));
        }
        if alone.max() > earlier.max() {
            prop_assert_eq!(interval.max(), alone.max());
        }
        if earlier.min().is_none_or(|earlier| alone.min() < Some(earlier)) {
            prop_assert_eq!(interval.min(), alone.min());
        }
    }

    #[test]
    fn a_quantile_is_within_its_promise(
        mut values in list_of(1_000..2_048_000_000_000u64, 1..300),
        ppm in 0..=1_000_000u32,
    ) {
        values.sort_unstable();
        let rank = (values.len() as u64 * u64::from(ppm)).div_ceil(1_000_000);
        let exact = values[rank.saturating_sub(1) as usize];
        let quantile = recorded(&values).quantile(ppm).unwrap();
        prop_assert!(quantile.abs_diff(exact) * 1_000 <= exact * 12, "{quantile} for {exact}");
    }

    #[test]
    fn sparse_form_returns_the_same_histogram(values in list_of(latency(), 0..200)) {
        let histogram = recorded(&values);
        prop_assert_eq!(Histogram::from_sparse(&histogram.to_sparse()), Ok(histogram));
    }
}

proptest! {
    #[test]
    fn sparse_forms_add_up_as_histograms_do(
        one in list_of(latency(), 0..100),
        other in list_of(latency(), 0..100),
    ) {
        let mut sum = recorded(&one).to_sparse();
        sum.merge(&recorded(&other).to_sparse());
        prop_assert_eq!(sum.buckets.capacity(), sum.buckets.len());
        prop_assert_eq!(sum, recorded(&[one, other].concat()).to_sparse());
    }
}

#[test]
fn an_empty_histogram_has_no_extremes_averages_or_rows() {
    let empty = Histogram::default();
    assert_eq!((empty.min(), empty.max(), empty.mean()), (None, None, None));
    assert_eq!((empty.mean_micros(), empty.stddev_micros()), (None, None));
    assert_eq!(empty.quantile(500_000), None);
    assert_eq!(empty.log2_rows(Unit::Micros), vec![]);
    assert_eq!(empty.since(&empty), empty);
}

#[test]
fn powers_of_two_fall_on_the_side_that_each_view_demands() {
    let two_ms = recorded(&[2_000_000]);
    assert_eq!(two_ms.log2_rows(Unit::Millis), [0, 0, 1]);
    assert_eq!(two_ms.iolatency_rows(), [0, 1]);
}

#[test]
fn what_lasts_longer_than_the_layout_is_counted_in_its_last_row() {
    let histogram = recorded(&[1 << 42, 1 << 50, u64::MAX]);
    assert_eq!(histogram.log2_rows(Unit::Nanos).last(), Some(&3));
    assert_eq!(histogram.log2_rows(Unit::Millis).last(), Some(&3));
    assert_eq!(histogram.max(), Some(u64::MAX));
}

#[test]
fn truncating_each_value_to_microseconds_is_kept_apart_from_truncating_the_sum() {
    let histogram = recorded(&[1_900, 1_900]);
    assert_eq!(histogram.mean_micros(), Some(1));
    assert_eq!(histogram.mean(), Some(1_900));
}

#[test]
fn a_constant_is_its_own_quantile() {
    let histogram = recorded(&[10_000_000; 7]);
    assert_eq!(histogram.quantile(990_000), Some(10_000_000));
}

#[test]
fn bounds_that_no_bucket_has_are_refused() {
    assert_eq!(
        Histogram::default().rows_between(&[1_000_000, 1_234_567]),
        None
    );
}

#[test]
fn extremes_that_cannot_be_hide_no_bucket() {
    let sparse = Sparse {
        buckets: vec![(50, 1), (40, 2)],
        min: u64::MAX,
        ..Sparse::default()
    };
    let histogram = Histogram::from_sparse(&sparse).unwrap();
    assert!(histogram.buckets().eq([(40, 2), (50, 1)]));
    assert_eq!(merged(&Histogram::default(), &histogram), histogram);
}

#[test]
fn buckets_that_cannot_be_are_refused() {
    let sparse = |buckets| Sparse {
        buckets,
        ..Sparse::default()
    };
    let beyond = sparse(vec![(BUCKETS, 1)]);
    let overflow = sparse(vec![(5, u64::MAX), (6, 1)]);
    assert_eq!(Histogram::from_sparse(&beyond), Err(BadBucket(BUCKETS)));
    assert_eq!(Histogram::from_sparse(&overflow), Err(BadBucket(6)));
}
