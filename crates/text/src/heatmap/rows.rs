//! The rows of latency maps: ten for each factor of ten, named by the preferred numbers R10 (1, 1.25,
//! 1.6, 2, …).
//!
//! A row named 10 ms begins with the bucket that contains 10 ms. The edges of rows are therefore edges of
//! buckets, so the counts are exact, and an I/O that a rule delays by 10 ms is in the row named 10 ms. From
//! 1 µs to 2,000 s, a row begins at most 2.4 % below the number in its name.

use std::sync::LazyLock;

use dashpot_engine::histogram::{BUCKETS, lower_bound, upper_bound};

/// The number of rows for each factor of ten.
pub(super) const PER_DECADE: usize = NUMBERS.len();
/// The number of rows. The last row, named 4,000 s, begins with the last bucket, at 2,199 s, and contains all
/// longer latencies. The two rows before it begin there, too, so they are empty.
pub(super) const ROWS: usize = 127;

const NUMBERS: [u64; 10] = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];

/// The row of a latency.
pub(super) fn row_at(ns: u64) -> usize {
    let after = STARTS.partition_point(|start| *start <= ns);
    after.saturating_sub(1)
}

/// The lowest latency of a row, in nanoseconds. For a row number beyond the last row, this is [`u64::MAX`].
pub(super) fn start_of(row: usize) -> u64 {
    STARTS.get(row).copied().unwrap_or(u64::MAX)
}

/// The highest latency of a row.
pub(super) fn end_of(row: usize) -> u64 {
    match start_of(row + 1) {
        u64::MAX => u64::MAX,
        next => next - 1,
    }
}

/// The number that names a row, in nanoseconds, if its first digit is 1, 2 or 5.
pub(super) fn round_of(row: usize) -> Option<u64> {
    let is_round = matches!(row % PER_DECADE, 0 | 3 | 7);
    (is_round && row < ROWS).then(|| number_of(row))
}

fn number_of(row: usize) -> u64 {
    let hundredths = NUMBERS[row % PER_DECADE] * 10_u64.pow((row / PER_DECADE) as u32);
    hundredths / 100
}

/// The lowest latency of each row. Some rows for the first few nanoseconds are empty, and so are the two rows
/// before the last. An empty row begins where the next row begins.
static STARTS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let buckets: Vec<u64> = (0..BUCKETS).map(upper_bound).collect();
    let start = |row| match row {
        0 => 0,
        row => lower_bound(buckets.partition_point(|upper| *upper < number_of(row))),
    };
    (0..ROWS).map(start).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_latencies_begin_their_rows() {
        // Some rows below row 20 are empty, so the test begins at row 20.
        for (row, ns) in (20..ROWS).filter_map(|row| Some((row, round_of(row)?))) {
            assert_eq!(row_at(ns), row, "{ns} ns");
            let below = ns - start_of(row);
            assert!(ns < 1_000 || below * 1_000 <= ns * 24, "{ns} ns");
        }
        for ns in [1_000, 1_000_000, 1_000_000_000] {
            assert_eq!(start_of(row_at(ns)), ns);
        }
    }

    #[test]
    fn a_row_is_of_whole_buckets() {
        for bucket in 0..BUCKETS {
            let row = row_at(lower_bound(bucket));
            assert_eq!(row_at(upper_bound(bucket)), row, "bucket {bucket}");
            assert!((start_of(row)..=end_of(row)).contains(&lower_bound(bucket)));
        }
        assert_eq!((row_at(0), start_of(0)), (0, 0));
    }
}
