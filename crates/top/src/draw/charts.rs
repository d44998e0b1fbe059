//! The history of the selected disk, with one column for each interval and the newest on the right:
//! IOPS, p99, and a map of its latencies.

use dashpot_engine::Duration;
use dashpot_text::heatmap::{HeatMap, Map, Size};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::figures::{count, round_up};
use super::gutter::{GUTTER, gutter};
use super::{Theme, axis, heat};
use crate::history::{History, IntervalFigures};

/// Draws the charts below one another, so that a moment has the same column in all charts.
pub(super) fn draw(history: &History, area: Rect, buffer: &mut Buffer, theme: Theme) {
    let room = usize::from(area.width.saturating_sub(GUTTER));
    let columns: Vec<&IntervalFigures> = history.last(room).collect();
    let bars = ((area.height + 1) / 5).clamp(1, BARS_MAX);
    let [iops, p99, below] = split(area, bars);
    let [below, times] = with_axis(below);
    let heat = HeatMap {
        columns: columns.iter().map(|column| column.heat.clone()).collect(),
        ..HeatMap::default()
    };
    let size = Size {
        columns: room,
        bands: usize::from(below.height),
    };
    let rates = columns.iter().map(|column| Some(column.per_second));
    let rates = Bars {
        name: "IOPS",
        values: rates.collect(),
        label: |most| count(most as f64),
        style: theme.iops(),
    };
    let latencies = columns.iter().map(|column| column.p99_ns);
    let latencies = Bars {
        name: "p99",
        values: latencies.collect(),
        label: |most| Duration::from_nanos(most).to_string(),
        style: theme.latency(),
    };
    rates.draw(iops, buffer, theme);
    latencies.draw(p99, buffer, theme);
    heat::draw(&Map::new(&heat, size), below, buffer, theme);
    let elapsed: Vec<_> = columns.iter().map(|column| column.heat.elapsed).collect();
    if !times.is_empty() {
        axis::draw(&elapsed, times, buffer, theme);
    }
}

/// The areas of two bar charts, and the remaining area.
fn split(area: Rect, each: u16) -> [Rect; 3] {
    let part = |from: u16, height: u16| Rect {
        y: area.y + from.min(area.height),
        height: height.min(area.height.saturating_sub(from)),
        ..area
    };
    [part(0, each), part(each, each), part(2 * each, area.height)]
}

/// The areas of the map and of the axis below it. If the map is too low, it has no axis.
fn with_axis(area: Rect) -> [Rect; 2] {
    let axis = u16::from(area.height >= AXIS_FROM);
    let map = Rect {
        height: area.height - axis,
        ..area
    };
    let axis = Rect {
        y: map.bottom(),
        height: axis,
        ..area
    };
    [map, axis]
}

/// Bars with a common scale from zero. The last bar is at the right.
struct Bars {
    name: &'static str,
    values: Vec<Option<u64>>,
    label: fn(u64) -> String,
    style: Style,
}

impl Bars {
    fn draw(&self, area: Rect, buffer: &mut Buffer, theme: Theme) {
        let most = self.values.iter().flatten().copied().max();
        let most = most.filter(|most| *most > 0).map(round_up);
        let top = most.map_or_else(|| "-".to_owned(), self.label);
        let label = format!("{} {top}", self.name);
        gutter(area, 0, &label, buffer, theme.faint());
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

/// The height of a bar in eighths of a character. Every value above zero is visible.
fn eighths(value: Option<u64>, most: u64, height: u16) -> usize {
    let Some(value) = value.filter(|value| *value > 0) else {
        return 0;
    };
    let full = f64::from(height) * 8.0;
    let part = value as f64 / most.max(1) as f64;
    ((part * full).round() as usize).max(1)
}

/// The smallest height at which a heat map has an axis.
const AXIS_FROM: u16 = 3;
/// The largest height of a bar chart.
const BARS_MAX: u16 = 6;

const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
