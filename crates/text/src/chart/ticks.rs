//! Chooses the times that label an axis of time.

use crate::clock::{time_of_day, time_of_day_ms};

/// The columns that get a label, and their labels. A column is labelled if it is the first to begin at or
/// after a round time, so that the labels move with the columns. The first column is labelled if there is
/// room. `starts` has the time of day, in nanoseconds, at which each column begins. There is room for a label
/// every `apart` columns.
pub(super) fn ticks(starts: &[u64], apart: usize) -> Vec<(usize, String)> {
    let (Some(first), Some(last)) = (starts.first(), starts.last()) else {
        return Vec::new();
    };
    let column_ns = (last - first).checked_div(starts.len() as u64 - 1);
    let column_ns = column_ns.unwrap_or(SECOND);
    let least = column_ns.saturating_mul(apart as u64);
    let step = STEPS.into_iter().find(|step| *step >= least);
    let step = step.unwrap_or(least.max(1));
    let name = if step < SECOND {
        time_of_day_ms
    } else {
        time_of_day
    };
    let mut named: Vec<(usize, String)> = Vec::new();
    for (at, pair) in (1..).zip(starts.windows(2)) {
        let is_free = named.last().is_none_or(|(last, _)| at - last >= apart);
        if is_free && pair[0] / step < pair[1] / step {
            let round = pair[1] / step * step;
            // If the column before this one was longer than usual, the round time may be long before this
            // column. Then the label is the time at which the column begins.
            let is_near = pair[1] - round < column_ns.max(1);
            named.push((at, name(if is_near { round } else { pair[1] })));
        }
    }
    if first.is_multiple_of(step) || named.first().is_none_or(|(next, _)| *next >= apart) {
        named.retain(|(at, _)| *at >= apart);
        named.insert(0, (0, name(*first)));
    }
    named
}

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const STEPS: [u64; 20] = [
    SECOND / 1_000,
    SECOND / 100,
    SECOND / 10,
    SECOND / 4,
    SECOND / 2,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    60 * MINUTE,
    360 * MINUTE,
    1_440 * MINUTE,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn named(first: u64, column_ns: u64, apart: usize) -> Vec<(usize, String)> {
        let starts: Vec<u64> = (0..30).map(|at| first + at * column_ns).collect();
        ticks(&starts, apart)
    }

    fn places(named: &[(usize, String)]) -> Vec<usize> {
        named.iter().map(|(at, _)| *at).collect()
    }

    #[test]
    fn a_column_after_a_long_one_is_named_by_its_own_beginning() {
        let before = (0..20).map(|at| at * SECOND);
        let after = (36..50).map(|at| at * SECOND);
        let starts: Vec<u64> = before.chain(after).collect();
        let named = ticks(&starts, 5);
        assert_eq!(named[1], (10, "00:00:10".to_owned()));
        assert_eq!(named[2], (20, "00:00:36".to_owned()));
    }

    #[test]
    fn round_times_are_named() {
        let from_zero = named(0, SECOND, 10);
        assert_eq!(places(&from_zero), [0, 10, 20]);
        assert_eq!(from_zero[1].1, "00:00:10");
        // The first column has no label, because it is too close to the next column that has one.
        assert_eq!(places(&named(57 * SECOND, SECOND, 10)), [3, 13, 23]);
        assert_eq!(
            places(&named(59 * SECOND / 2, 20 * SECOND, 11)),
            [0, 14, 29]
        );
        assert_eq!(named(0, SECOND / 100, 10)[1].1, "00:00:00.100");
    }

    #[test]
    fn names_have_room_and_no_columns_no_names() {
        for apart in 1..12 {
            for named in places(&named(7, 777_777_777, apart)).windows(2) {
                assert!(named[1] - named[0] >= apart);
            }
        }
        assert_eq!(ticks(&[], 10), []);
        assert_eq!(ticks(&[5 * SECOND], 10), [(0, "00:00:05".to_owned())]);
    }
}
