//! Scales: round figures, as fine as there are rows.

use crate::report::nice::short_time;

/// The lower ends of a heat map's rows in nanoseconds, the lowest first; each row ends where the next
/// begins, the last one never. There are as many as there is room for: what the latencies leave over is
/// shared by what is below and above them, so that the map seldom moves.
pub(super) fn rows(lowest_ns: u64, highest_ns: u64, room: usize) -> Vec<u64> {
    let fitting = |steps: &&[u64]| span(&starts(steps), lowest_ns, highest_ns).1 <= room;
    let finest = STEPS.iter().rev().copied().find(fitting);
    let starts = starts(finest.unwrap_or(STEPS[0]));
    let (first, count) = span(&starts, lowest_ns, highest_ns);
    // Nothing is coarser than a decade: what is below the lowest row is counted in it then.
    let first = match count > room {
        true => first + count - room,
        false => first.saturating_sub((room - count).div_ceil(2)),
    };
    starts.into_iter().skip(first).take(room).collect()
}

/// A time of few digits without the zeroes behind its point: `10ms`, `1.5s`.
pub(super) fn round_time(ns: u64) -> String {
    let text = short_time(ns);
    let unit = text.find(|letter: char| letter.is_ascii_alphabetic());
    let (digits, unit) = text.split_at(unit.unwrap_or(text.len()));
    match digits.contains('.') {
        true => {
            digits
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
                + unit
        }
        false => text,
    }
}

/// The next of 1, 2, 5, 10, 20, ... that is not less.
pub(super) fn round_up(value: u64) -> u64 {
    let unit = 10_u64.pow(value.max(1).ilog10());
    let steps = [1, 2, 5, 10]
        .into_iter()
        .map(|step| unit.saturating_mul(step));
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

/// The row of a latency: the last that does not begin above it.
pub(super) fn row_of(rows: &[u64], ns: u64) -> usize {
    rows.partition_point(|start| *start <= ns).saturating_sub(1)
}

/// The steps of all decades.
fn starts(steps: &[u64]) -> Vec<u64> {
    let decades = (2..DECADES).map(|decade| 10_u64.pow(decade - 2));
    decades
        .flat_map(|hundredth| steps.iter().map(move |step| hundredth * step))
        .collect()
}

/// The first row that is needed, and how many are.
fn span(starts: &[u64], lowest_ns: u64, highest_ns: u64) -> (usize, usize) {
    let first = row_of(starts, lowest_ns);
    (first, row_of(starts, highest_ns) + 1 - first)
}

/// In hundredths of a decade's beginning, the coarsest first.
const STEPS: [&[u64]; 5] = [
    &[100],
    &[100, 300],
    &[100, 200, 500],
    &[100, 150, 200, 300, 500, 700],
    &[100, 120, 150, 180, 220, 270, 330, 390, 470, 560, 680, 820],
];

/// From 1 ns to 100,000 s.
const DECADES: u32 = 17;

#[cfg(test)]
mod tests {
    use super::{round_time, round_up, row_of, rows};
    use expect_test::expect;

    fn labels(lowest_ns: u64, highest_ns: u64, room: usize) -> String {
        let rows = rows(lowest_ns, highest_ns, room);
        assert_eq!(rows.len(), room, "{rows:?}");
        let labels = rows.into_iter().map(round_time);
        labels.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn labels_are_round_and_as_many_as_fit() {
        let (us, ms) = (1_000, 1_000_000);
        expect![].assert_eq(&labels(10 * ms, 10 * ms, 6));
        expect![].assert_eq(&labels(80 * us, 25 * ms, 3));
        expect![].assert_eq(&labels(80 * us, 25 * ms, 6));
        expect![].assert_eq(&labels(80 * us, 25 * ms, 10));
        expect![].assert_eq(&labels(80 * us, 25 * ms, 30));
        expect![].assert_eq(&labels(7 * us, 4_000 * ms, 4));
        expect![].assert_eq(&labels(0, u64::MAX, 4));
    }

    #[test]
    fn every_latency_has_a_row() {
        let rows = [100, 200, 500];
        let places = [0, 99, 100, 199, 200, 500, u64::MAX].map(|ns| row_of(&rows, ns));
        assert_eq!(places, [0, 0, 0, 0, 1, 2, 2]);
        assert_eq!(row_of(&[], 7), 0);
    }

    #[test]
    fn the_top_of_a_scale_is_round() {
        let tops = [0, 1, 3, 10, 11, 401, 999, u64::MAX].map(round_up);
        assert_eq!(tops, [1, 1, 5, 10, 20, 500, 1_000, u64::MAX]);
    }

    #[test]
    fn round_times_have_no_zeroes_behind_the_point() {
        let times = [0, 7, 1_500, 10_000_000, 100_000_000, 2_000_000_000];
        let texts = times.map(round_time);
        assert_eq!(texts, ["0ns", "7ns", "1.5us", "10ms", "100ms", "2s"]);
    }
}
