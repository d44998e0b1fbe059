//! Latency histograms of several series side by side, in characters: a row for each power of two of
//! a microsecond, with logarithmic bars.

use dashpot_engine::histogram::{Histogram, Unit};
use dashpot_rules::short_time;

/// The width of the text.
const COLUMNS: usize = 80;
const LABEL_WIDTH: usize = 8;
const COUNT_WIDTH: usize = 10;
const BAR_MIN: usize = 6;
const BAR_MAX: usize = 40;

/// The histograms as text: one row for each power of two from the shortest to the longest latency.
pub fn histogram_text(series: &[(String, &Histogram)]) -> String {
    let rows: Vec<Vec<u64>> = series
        .iter()
        .map(|(_, latencies)| latencies.log2_rows(Unit::Micros))
        .collect();
    let count = |column: &Vec<u64>, row: usize| column.get(row).copied().unwrap_or(0);
    let occupied = |column: &Vec<u64>| column.iter().position(|&count| count > 0);
    let Some(first) = rows.iter().filter_map(occupied).min() else {
        return String::new();
    };
    let last = rows.iter().map(Vec::len).max().unwrap_or(0);
    let most = rows.iter().flatten().copied().max().unwrap_or(0);
    let bar_width = bar_width(series.len());
    let mut text = head(series, bar_width);
    for row in first..last {
        let from = if row == 0 { 0 } else { 1_000 << (row - 1) };
        let mut line = format!("{:<LABEL_WIDTH$}", short_time(from));
        for column in &rows {
            let count = count(column, row);
            let bar = "#".repeat(bar_length(count, most, bar_width));
            line += &format!("{count:>COUNT_WIDTH$} {bar:<bar_width$}");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn head(series: &[(String, &Histogram)], bar_width: usize) -> String {
    let mut line = format!("{:<LABEL_WIDTH$}", "latency");
    let width = COUNT_WIDTH - 2 + bar_width;
    for (name, _) in series {
        let name: String = name.chars().take(width).collect();
        line += &format!("   {name:<width$}");
    }
    line.trim_end().to_owned() + "\n"
}

fn bar_width(series: usize) -> usize {
    let room = (COLUMNS - LABEL_WIDTH) / series.max(1);
    room.saturating_sub(COUNT_WIDTH + 1).clamp(BAR_MIN, BAR_MAX)
}

/// The length of a bar, on a logarithmic scale: one I/O gives one mark, and the fullest row has the full
/// width.
fn bar_length(count: u64, most: u64, width: usize) -> usize {
    if count == 0 || most < 2 {
        return (count as usize).min(width);
    }
    let part = libm::log(count as f64) / libm::log(most as f64);
    1 + libm::round(part * (width - 1) as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn latencies(values: &[(u64, u64)]) -> Histogram {
        values
            .iter()
            .map(|(us, count)| (us * 1_000, *count))
            .collect()
    }

    #[test]
    fn bars_are_logarithmic_and_one_io_is_seen() {
        let legacy = latencies(&[(780, 55_000), (10_000, 8_000), (17_000, 1)]);
        let openzfs = latencies(&[(9_000, 60_000)]);
        let series = [
            ("legacy".to_owned(), &legacy),
            ("openzfs".to_owned(), &openzfs),
        ];
        expect![[r#"
            latency    legacy                              openzfs
            512us        55000 #########################         0
            1.02ms           0                                   0
            2.05ms           0                                   0
            4.10ms           0                                   0
            8.19ms        8000 #####################         60000 #########################
            16.4ms           1 #                                 0
        "#]]
        .assert_eq(&histogram_text(&series));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let empty = Histogram::default();
        assert_eq!(histogram_text(&[("none".to_owned(), &empty)]), "");
        assert_eq!(histogram_text(&[]), "");
    }
}
