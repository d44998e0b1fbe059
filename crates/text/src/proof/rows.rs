//! Rows that show the difference between two histograms of nearly equal latencies.

use dashpot_engine::histogram::{Histogram, Unit, lower_bound, upper_bound};
use serde::Serialize;

/// The approximate number of rows that show a distribution.
const ROWS: f64 = 12.0;

/// The zios with latencies from `from_ns` to `to_ns`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) requested: u64,
    pub(super) achieved: u64,
}

/// The rows from the first row with a count to the last row with a count.
pub(super) fn rows(requested: &Histogram, achieved: &Histogram, lateness: &Histogram) -> Vec<Row> {
    match constant(requested) {
        Some(service) => beside_a_constant(service, requested.count(), lateness),
        None => of_a_distribution(requested, achieved),
    }
}

/// The value of all entries of a histogram, if they are equal.
pub(super) fn constant(histogram: &Histogram) -> Option<u64> {
    histogram.min().filter(|min| histogram.max() == Some(*min))
}

/// A row for the constant itself, and then rows of lateness, which begin at powers of two of a microsecond.
/// If the rows divided the whole latency, nearly all zios would be in one row.
fn beside_a_constant(service: u64, n: u64, lateness: &Histogram) -> Vec<Row> {
    let counts = lateness.log2_rows(Unit::Micros);
    let occupied = counts.iter().position(|&count| count > 0);
    let first = occupied.unwrap_or_default().max(1);
    let edge = |row: usize| service + (Unit::Micros.as_nanos() << row >> 1);
    let at_the_constant = Row {
        from_ns: service,
        to_ns: edge(first) - 1,
        requested: n,
        achieved: counts.iter().take(first).sum(),
    };
    let after = counts.iter().enumerate().skip(first);
    let after = after.map(|(row, &achieved)| Row {
        from_ns: edge(row),
        to_ns: edge(row + 1) - 1,
        requested: 0,
        achieved,
    });
    std::iter::once(at_the_constant).chain(after).collect()
}

/// Rows whose ends are roughly the same multiple of their beginnings. These rows consist of whole buckets, so
/// their counts are exact.
fn of_a_distribution(requested: &Histogram, achieved: &Histogram) -> Vec<Row> {
    let occupied = || requested.buckets().chain(achieved.buckets());
    let first = occupied().map(|(bucket, _)| bucket).min();
    let last = occupied().map(|(bucket, _)| bucket).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Vec::new();
    };
    let range = upper_bound(last) as f64 / lower_bound(first).max(1) as f64;
    let growth = range.powf(1.0 / ROWS);
    let mut rows = Vec::new();
    let mut start = first;
    while start <= last {
        let limit = lower_bound(start).max(1) as f64 * growth;
        let fits = |bucket: &usize| upper_bound(*bucket) as f64 <= limit;
        let end = (start..=last).take_while(fits).last().unwrap_or(start);
        rows.push(Row {
            from_ns: lower_bound(start),
            to_ns: upper_bound(end),
            requested: counted(requested, start, end),
            achieved: counted(achieved, start, end),
        });
        start = end + 1;
    }
    rows
}

fn counted(histogram: &Histogram, first: usize, last: usize) -> u64 {
    let buckets = histogram.buckets();
    let within = buckets.filter(|(bucket, _)| (first..=last).contains(bucket));
    within.map(|(_, count)| count).sum()
}
