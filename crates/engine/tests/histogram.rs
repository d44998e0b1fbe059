//! Compares every view of the histogram with a view computed directly from the values: from four million
//! values of all sizes, and from all values at which a view could be off by one.
//!
//! The views are those of these tools: perf-tools' iolatency (its code, not its labels), DTrace's quantize,
//! bcc's biolatency, `zpool iostat -w`, and the exponential histograms of OpenTelemetry and Prometheus.

use dashpot_engine::Random;
use dashpot_engine::histogram::{BUCKETS, Histogram, Sparse, Unit, lower_bound, upper_bound};

const SAMPLES: usize = 4_000_000;
/// The lowest value in the last row of a view.
const END_NS: u64 = 1 << 42;
const SECOND_NS: u64 = 1_000_000_000;
/// The octaves, counted from one second, for which the layout has exponential boundaries.
const OCTAVES: std::ops::RangeInclusive<i32> = -30..=11;

#[test]
fn every_view_of_four_million_values_equals_counting_them() {
    let samples = samples();
    let mut whole = recorded(&samples);
    check_parts(&whole, &samples);
    let edges = edges();
    whole.merge(&recorded(&edges));
    check_views(&whole, &[samples, edges].concat());
}

/// Values of all sizes; every fourth value is at or next to the edge of a bucket.
fn samples() -> Vec<u64> {
    let mut random = Random::new(4);
    let mut sample = |n| match n % 4 {
        0 => {
            let edge = upper_bound(random.below(BUCKETS as u64 - 1) as usize);
            (edge + random.below(3)).saturating_sub(1)
        }
        _ => random.next_u64() >> (21 + random.below(43)),
    };
    (0..SAMPLES).map(&mut sample).collect()
}

/// Every bound and every power of two, with their neighbours, and all values below 200 us.
fn edges() -> Vec<u64> {
    let bounds = (0..BUCKETS).flat_map(|bucket| [lower_bound(bucket), upper_bound(bucket)]);
    let powers = (0..64).map(|k| 1 << k);
    let beside = |ns: u64| [ns.saturating_sub(1), ns, ns.saturating_add(1)];
    let beside = bounds.chain(powers).flat_map(beside);
    beside.chain(0..200_000).collect()
}

fn recorded(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    values.iter().for_each(|&ns| histogram.record(ns));
    histogram
}

/// Merges histograms, subtracts them, sends one and receives it. Each result must equal the histogram that is
/// made from the values themselves.
fn check_parts(whole: &Histogram, samples: &[u64]) {
    let parts: Vec<Histogram> = samples.chunks(SAMPLES / 7).map(recorded).collect();
    let mut merged = Histogram::default();
    parts.iter().rev().for_each(|part| merged.merge(part));
    assert_eq!(&merged, whole);
    for part in &parts {
        merged = merged.since(part);
    }
    assert_eq!(merged, Histogram::default());
    let sent: Sparse = whole.to_sparse();
    assert_eq!(Histogram::from_sparse(&sent).as_ref(), Ok(whole));
}

fn check_views(histogram: &Histogram, values: &[u64]) {
    for unit in [Unit::Nanos, Unit::Micros, Unit::Millis] {
        let rows = histogram.log2_rows(unit);
        let unit_ns = unit.as_nanos();
        assert_rows(&rows, values, &format!("{unit:?}"), |ns| {
            doublings(unit_ns, |edge| edge <= ns)
        });
        assert_rows(&joined(&rows), values, &format!("joined {unit:?}"), |ns| {
            doublings(unit_ns, |edge| edge <= ns).max(1) - 1
        });
    }
    let seconds: Vec<u64> = (0..=12).map(|k| (SECOND_NS << k) - 1).collect();
    let rows = histogram.rows_between(&seconds).expect("bounds of buckets");
    assert_rows(&rows, values, "seconds", |ns| {
        doublings(SECOND_NS, |edge| edge <= ns)
    });
    assert_rows(&histogram.iolatency_rows(), values, "iolatency", |ns| {
        doublings(1_000_000, |edge| edge < ns)
    });
    for scale in -2..=5 {
        check_exponential(histogram, values, scale);
    }
}

/// Rows as in biolatency and `zpool iostat -w`, which count values below one unit together with values below
/// two units.
fn joined(rows: &[u64]) -> Vec<u64> {
    let first = rows.iter().take(2).sum();
    std::iter::once(first)
        .chain(rows.iter().skip(2).copied())
        .collect()
}

/// How many times a unit can be doubled until it is no longer `within`.
fn doublings(unit_ns: u64, within: impl Fn(u64) -> bool) -> usize {
    let mut edge = unit_ns;
    let mut row = 0;
    while within(edge) {
        edge *= 2;
        row += 1;
    }
    row
}

/// Checks the exponential view, whose upper-inclusive bounds are whole powers of `2^(2^-scale)`, in seconds.
fn check_exponential(histogram: &Histogram, values: &[u64], scale: i32) {
    let per_octave = f64::from(scale).exp2();
    let index_of = |octave: i32| (f64::from(octave) * per_octave).ceil() as i32;
    let (first, last) = (index_of(*OCTAVES.start()), index_of(*OCTAVES.end()));
    let last = last.min((f64::from(*OCTAVES.end()) * per_octave).floor() as i32);
    let bound = |index| ((f64::from(index) / per_octave).exp2() * SECOND_NS as f64) as u64;
    let bounds: Vec<u64> = (first..=last).map(bound).collect();
    let rows = histogram.rows_between(&bounds).expect("bounds of buckets");
    let name = format!("scale {scale}");
    assert_rows(&rows, values, &name, |ns| {
        let index = ((ns as f64 / SECOND_NS as f64).log2() * per_octave).ceil();
        (index as i32).clamp(first, last + 1).abs_diff(first) as usize
    });
}

/// Checks that the rows equal those that result from counting the values one by one.
fn assert_rows(rows: &[u64], values: &[u64], view: &str, row_of: impl Fn(u64) -> usize) {
    let mut expected = vec![0; rows.len()];
    for &ns in values {
        let row = row_of(ns.min(END_NS));
        assert!(row < rows.len(), "{view}: no row {row} for {ns} ns");
        expected[row] += 1;
    }
    assert_eq!(rows, expected, "{view}");
}
