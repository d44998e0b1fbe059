//! What the selected disk did over time, one column for each interval, the newest on the right: IOPS,
//! p99, and where its latencies were.

use dashpot_engine::histogram::{lower_bound, upper_bound};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Theme;
use super::figures::count;
use super::scale::{round_time, round_up, row_of, rows};
use crate::commands::top::history::{Column, History};

/// Draws the charts below each other, so that a moment is at one place in all of them.
pub(super) fn draw(history: &History, area: Rect, buffer: &mut Buffer, theme: Theme) {
    let room = usize::from(area.width.saturating_sub(GUTTER));
    let columns: Vec<&Column> = history.last(room).collect();
    let each = (area.height / 6).clamp(1, BARS_MAX);
    let [iops, p99, heat] = split(area, each);
    let rates = columns.iter().map(|column| Some(column.per_second));
    let chart = Bars {
        name: "IOPS",
        values: rates.collect(),
        label: |most| count(most as f64),
        style: theme.iops(),
    };
    chart.draw(iops, buffer, theme);
    let latencies = columns.iter().map(|column| column.p99_ns);
    let chart = Bars {
        name: "p99",
        values: latencies.collect(),
        label: round_time,
        style: theme.latency(),
    };
    chart.draw(p99, buffer, theme);
    draw_heat(&columns, heat, buffer, theme);
}

/// Two charts of bars, and the rest.
fn split(area: Rect, each: u16) -> [Rect; 3] {
    let part = |from: u16, height: u16| Rect {
        y: area.y + from.min(area.height),
        height: height.min(area.height.saturating_sub(from)),
        ..area
    };
    [part(0, each), part(each, each), part(2 * each, area.height)]
}

/// Bars that begin at zero and end at the right.
struct Bars {
    name: &'static str,
    values: Vec<Option<u64>>,
    label: fn(u64) -> String,
    style: Style,
}

impl Bars {
    fn draw(&self, area: Rect, buffer: &mut Buffer, theme: Theme) {
        let most = self.values.iter().flatten().copied().max().map(round_up);
        let top = most.map_or_else(|| "-".to_owned(), self.label);
        gutter(
            area,
            0,
            &format!("{} {top}", self.name),
            buffer,
            theme.faint(),
        );
        let start = area.right().saturating_sub(self.values.len() as u16);
        for (x, value) in (start..area.right()).zip(&self.values) {
            let eighths = eighths(*value, most.unwrap_or_default(), area.height);
            for up in 0..area.height {
                let filled = eighths.saturating_sub(usize::from(up) * 8).min(8);
                let at = (x, area.bottom() - 1 - up);
                buffer[at].set_char(EIGHTHS[filled]).set_style(self.style);
            }
        }
    }
}

/// How many eighths of a character a bar is high. What is not nothing is seen.
fn eighths(value: Option<u64>, most: u64, height: u16) -> usize {
    let Some(value) = value.filter(|value| *value > 0) else {
        return 0;
    };
    let full = f64::from(height) * 8.0;
    let part = value as f64 / most.max(1) as f64;
    ((part * full).round() as usize).max(1)
}

fn draw_heat(columns: &[&Column], area: Rect, buffer: &mut Buffer, theme: Theme) {
    let buckets = columns.iter().flat_map(|column| &column.buckets);
    let lowest = buckets
        .clone()
        .map(|(bucket, _)| lower_bound(*bucket))
        .min();
    let highest = buckets.map(|(bucket, _)| upper_bound(*bucket) - 1).max();
    let Some((lowest, highest)) = lowest.zip(highest) else {
        gutter(area, 0, "no I/O yet", buffer, theme.faint());
        return;
    };
    let rows = rows(lowest, highest, usize::from(area.height));
    // Rows are counted from below.
    let y_of = |row: usize| area.bottom() - 1 - row as u16;
    for (row, start) in rows.iter().enumerate() {
        gutter(
            area,
            y_of(row) - area.y,
            &round_time(*start),
            buffer,
            theme.faint(),
        );
    }
    let cells: Vec<Vec<u64>> = columns
        .iter()
        .map(|column| counted(column, &rows))
        .collect();
    let most = cells.iter().flatten().copied().max().unwrap_or_default();
    let start = area.right().saturating_sub(cells.len() as u16);
    for (x, column) in (start..area.right()).zip(&cells) {
        for (row, zios) in column.iter().enumerate() {
            if let Some(shade) = shade(*zios, most) {
                let cell = &mut buffer[(x, y_of(row))];
                cell.set_char(SHADES[shade]).set_style(theme.heat(shade));
            }
        }
    }
}

/// The I/Os of an interval in each row. A bucket is at most 1.2 % wide, and counted where it begins.
fn counted(column: &Column, rows: &[u64]) -> Vec<u64> {
    let mut counts = vec![0; rows.len()];
    for (bucket, zios) in &column.buckets {
        if let Some(count) = counts.get_mut(row_of(rows, lower_bound(*bucket))) {
            *count += zios;
        }
    }
    counts
}

/// How dark a cell is: logarithmic, so that one I/O beside thousands is seen.
fn shade(zios: u64, most: u64) -> Option<usize> {
    if zios == 0 {
        return None;
    }
    let part = libm::log(zios as f64) / libm::log((most as f64).max(2.0));
    let darkest = SHADES.len() - 1;
    Some(((part * SHADES.len() as f64) as usize).min(darkest))
}

/// A label beside a row, flush right.
fn gutter(area: Rect, row: u16, label: &str, buffer: &mut Buffer, style: Style) {
    if row < area.height {
        let width = usize::from(GUTTER) - 1;
        let text = format!("{label:>width$}");
        buffer.set_stringn(area.x, area.y + row, text, usize::from(area.width), style);
    }
}

/// The highest chart of bars.
const BARS_MAX: u16 = 4;
/// Room for `IOPS 12345` and a space.
const GUTTER: u16 = 12;

const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];
