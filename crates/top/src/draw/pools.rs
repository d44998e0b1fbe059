//! Pools, and how close their throttles are to holding writes back.

use dashpot_rules::nice_number;
use ratatui::style::Style;

use super::Theme;
use super::columns::{Cell, Column};
use super::figures::{count, known, time, whole};
use crate::frame::PoolFrame;

pub(super) const COLUMNS: [Column; 10] = [
    Column::text("pool", 5, 0).growing(),
    Column::text("throttle", 8, 0),
    Column::figure("dirty", 5, 0),
    Column::text("filled", BAR + 2, 0),
    Column::figure("stop at", 7, 1),
    Column::figure("delay at", 8, 2),
    Column::figure("delay", 6, 0),
    Column::figure("wait", 4, 0),
    Column::figure("w/s", 5, 3),
    Column::figure("kB/s", 7, 4),
];

pub(super) fn row(pool: &PoolFrame, theme: Theme) -> Vec<Cell> {
    let plain = |text: String| (text, Style::new());
    let level = &pool.level;
    let delays = level
        .delays_above
        .map_or_else(|| "-".to_owned(), nice_number);
    let kilobytes = pool.written.map(|(_, bytes)| whole(bytes / 1_024.0));
    let style = style(pool, theme);
    vec![
        plain(pool.name.clone()),
        plain(pool.throttle.to_owned()),
        plain(nice_number(pool.dirty)),
        (bar(pool), style),
        plain(nice_number(level.stops_at)),
        plain(delays),
        (delay(pool), style),
        plain(count(f64::from(pool.throttled))),
        plain(known(pool.written.map(|(writes, _)| writes))),
        plain(kilobytes.unwrap_or_else(|| "-".to_owned())),
    ]
}

fn style(pool: &PoolFrame, theme: Theme) -> Style {
    match (is_stopped(pool), pool.level.delay.as_nanos()) {
        (true, _) => theme.bad(),
        (false, 0) => theme.good(),
        (false, _) => theme.warning(),
    }
}

fn is_stopped(pool: &PoolFrame) -> bool {
    pool.level.filled >= pool.level.stops_at
}

/// The delay that a write would get now.
fn delay(pool: &PoolFrame) -> String {
    match (is_stopped(pool), pool.level.delay.as_nanos()) {
        (true, _) => "stop".to_owned(),
        (false, 0) => "none".to_owned(),
        (false, delay) => time(Some(delay)),
    }
}

/// The fill level, in brackets. The mark shows the level from which the pool delays writes.
fn bar(pool: &PoolFrame) -> String {
    let level = &pool.level;
    let most = level.stops_at.max(1);
    let eighths =
        |bytes: u64| (u128::from(bytes.min(most)) * EIGHTHS_MAX / u128::from(most)) as usize;
    let filled = match eighths(level.filled) {
        // Every value above zero is visible.
        0 if level.filled > 0 => 1,
        filled => filled,
    };
    let mark = level.delays_above.map(|above| eighths(above) / 8);
    let cell = |at: usize| match filled.saturating_sub(at * 8).min(8) {
        0 if mark == Some(at) => '|',
        filled => EIGHTHS[filled],
    };
    let cells: String = (0..BAR).map(cell).collect();
    format!("[{cells}]")
}

/// The number of characters between the brackets.
const BAR: usize = 14;
const EIGHTHS_MAX: u128 = 8 * BAR as u128;
const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

#[cfg(test)]
mod tests {
    use super::{bar, delay};
    use crate::fixture;

    #[test]
    fn a_bar_is_full_where_writes_stop() {
        let mut pool = fixture::pool();
        let mut drawn = |filled: u64, above: Option<u64>| {
            (pool.level.filled, pool.level.stops_at) = (filled, 1_400);
            pool.level.delays_above = above;
            bar(&pool)
        };
        assert_eq!(drawn(0, Some(840)), "[        |     ]");
        assert_eq!(drawn(1, None), "[▏             ]");
        assert_eq!(drawn(750, Some(840)), "[███████▌|     ]");
        assert_eq!(drawn(1_399, Some(840)), "[█████████████▉]");
        assert_eq!(drawn(9_999, Some(840)), "[██████████████]");
        pool.level.stops_at = 0;
        assert_eq!(bar(&pool), "[██████████████]");
    }

    #[test]
    fn the_delay_is_that_of_a_write_that_comes_now() {
        let mut pool = fixture::pool();
        assert_eq!(delay(&pool), "1.25ms");
        pool.level.delay = dashpot_engine::Duration::ZERO;
        assert_eq!(delay(&pool), "none");
        pool.level.filled = pool.level.stops_at;
        assert_eq!(delay(&pool), "stop");
    }
}
