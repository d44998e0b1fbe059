//! The latencies beside the rows of a heat map: round ones, as fine as there are rows.

/// The lower ends of a heat map's rows in nanoseconds, the lowest first; each row ends where the next
/// begins, the last one never.
pub(super) fn rows(lowest_ns: u64, highest_ns: u64, room: usize) -> Vec<u64> {
    let fits = STEPS
        .iter()
        .map(|steps| between(steps, lowest_ns, highest_ns));
    let mut rows = fits
        .min_by_key(|rows| (rows.len() > room, room.abs_diff(rows.len())))
        .unwrap_or_default();
    // Nothing is finer than a decade: what is below the lowest row is counted in it.
    let surplus = rows.len().saturating_sub(room);
    rows.drain(..surplus);
    rows
}

/// The row of a latency: the last that does not begin above it.
pub(super) fn row_of(rows: &[u64], ns: u64) -> usize {
    rows.partition_point(|start| *start <= ns).saturating_sub(1)
}

/// The steps of all decades from the one that holds the lowest to the one that holds the highest.
fn between(steps: &[u64], lowest_ns: u64, highest_ns: u64) -> Vec<u64> {
    let decades = (0..DECADES).map(|decade| 10_u64.pow(decade));
    let all: Vec<u64> = decades
        .flat_map(|decade| steps.iter().map(move |step| decade / 100 * step))
        .collect();
    let first = row_of(&all, lowest_ns);
    let last = row_of(&all, highest_ns);
    all.get(first..=last)
        .map(<[u64]>::to_vec)
        .unwrap_or_default()
}

/// In hundredths of a decade's beginning.
const STEPS: [&[u64]; 5] = [
    &[100],
    &[100, 300],
    &[100, 200, 500],
    &[100, 150, 200, 300, 500, 700],
    &[100, 120, 150, 180, 220, 270, 330, 390, 470, 560, 680, 820],
];

/// To 100,000 s.
const DECADES: u32 = 15;

#[cfg(test)]
mod tests {
    use super::{row_of, rows};
    use crate::report::nice::short_time;
    use expect_test::expect;

    fn labels(lowest_ns: u64, highest_ns: u64, room: usize) -> String {
        let rows = rows(lowest_ns, highest_ns, room);
        assert!(rows.len() <= room, "{rows:?}");
        rows.into_iter()
            .map(short_time)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn labels_are_round_and_as_many_as_fit() {
        let (us, ms) = (1_000, 1_000_000);
        expect!["10.0ms"].assert_eq(&labels(10 * ms, 10 * ms, 6));
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
}
