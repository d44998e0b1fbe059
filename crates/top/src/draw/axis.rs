//! The time axis under the charts, which shows the age of the columns.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Theme;

/// Writes the axis into the first row of `area`, under columns that end at the right edge. `elapsed` has the
/// time that each column covers, the oldest column first.
pub(super) fn draw(elapsed: &[Duration], area: Rect, buffer: &mut Buffer, theme: Theme) {
    let start = usize::from(area.right()).saturating_sub(elapsed.len());
    for (column, name) in names(elapsed) {
        let x = (start + column) as u16;
        buffer.set_string(x, area.y, name, theme.faint());
    }
}

/// The labels and their columns, the newest first. The newest column is named `now`. Another column gets a
/// label if a round age falls into it and the label has room.
fn names(elapsed: &[Duration]) -> Vec<(usize, String)> {
    let Some(newest) = elapsed.len().checked_sub(NOW.len()) else {
        return Vec::new();
    };
    let mut names = vec![(newest, NOW.to_owned())];
    let Some(step) = step(elapsed) else {
        return names;
    };
    let (mut ago, mut at) = (Duration::ZERO, step);
    for (column, took) in elapsed.iter().enumerate().rev() {
        ago += *took;
        if ago < at {
            continue;
        }
        let name = format!(
            "-{}",
            dashpot_engine::Duration::from_nanos(at.as_nanos() as u64)
        );
        let last = names.last().map_or(elapsed.len(), |(last, _)| *last);
        if column + name.len() < last {
            names.push((column, name));
        }
        while at <= ago {
            at += step;
        }
    }
    names
}

/// The smallest round time between two labels that leaves enough columns for each label.
fn step(elapsed: &[Duration]) -> Option<Duration> {
    let all: Duration = elapsed.iter().sum();
    let least = all * APART / u32::try_from(elapsed.len()).ok()?;
    let steps = STEPS_MS.into_iter().map(Duration::from_millis);
    steps
        .into_iter()
        .find(|step| *step >= least && !step.is_zero())
}

const NOW: &str = "now";
/// The smallest number of columns from one label to the next.
const APART: u32 = 10;
const STEPS_MS: [u64; 19] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000,
    600_000, 1_800_000, 3_600_000,
];

#[cfg(test)]
mod tests {
    use super::names;
    use std::time::Duration;

    fn named(elapsed: &[u64]) -> Vec<(usize, String)> {
        let elapsed = elapsed.iter().copied().map(Duration::from_millis);
        names(&elapsed.collect::<Vec<_>>())
    }

    fn text(names: &[(usize, &str)]) -> Vec<(usize, String)> {
        let own = |(at, name): &(usize, &str)| (*at, (*name).to_owned());
        names.iter().map(own).collect()
    }

    #[test]
    fn round_times_ago_are_named() {
        let expected = [(32, "now"), (25, "-10s"), (15, "-20s"), (5, "-30s")];
        assert_eq!(named(&[1_000; 35]), text(&expected));
        assert_eq!(named(&[250; 21]), text(&[(18, "now"), (1, "-5s")]));
    }

    #[test]
    fn an_interval_that_was_longer_takes_its_time() {
        let mut elapsed = [1_000; 30];
        elapsed[20] = 60_000;
        // One of the intervals took a minute.
        assert_eq!(named(&elapsed), text(&[(27, "now"), (20, "-30s")]));
    }

    #[test]
    fn names_do_not_touch_and_nothing_has_none() {
        for columns in 0..200 {
            let named = named(&vec![333; columns]);
            for pair in named.windows(2) {
                assert!(pair[1].0 + pair[1].1.len() < pair[0].0, "{named:?}");
            }
        }
        assert_eq!(named(&[]), []);
        assert_eq!(named(&[0; 20]), text(&[(17, "now")]));
    }
}
