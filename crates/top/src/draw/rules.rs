//! The rules of the selected disk.

use dashpot_api::Rule;
use dashpot_text::rule::note;
use ratatui::style::Style;

use super::Theme;
use super::columns::{Cell, Column};
use super::figures::{count, time};

pub(super) const COLUMNS: [Column; 11] = [
    Column::figure("id", 3, 0),
    Column::text("name", 4, 3).growing(),
    Column::text("rule", 25, 0).growing(),
    Column::figure("matched", 7, 0),
    Column::figure("held", 5, 0),
    Column::figure("overrun", 7, 2),
    Column::figure("late", 5, 1),
    Column::figure("achieved", 8, 0),
    Column::figure("late p50", 8, 5),
    Column::figure("backlog", 7, 1),
    Column::figure("now", 5, 4),
];

pub(super) fn row(rule: &Rule, theme: Theme) -> Vec<Cell> {
    let counters = &rule.counters;
    let plain = |text: String| (text, Style::new());
    let figure = |value: u64| plain(count(value as f64));
    let id = match note(rule) {
        Some(_) => (format!("!{}", rule.id), theme.warning()),
        None => plain(rule.id.to_string()),
    };
    let alarming = |value: u64| match value {
        0 => figure(0),
        _ => (count(value as f64), theme.warning()),
    };
    vec![
        id,
        plain(rule.name.clone().unwrap_or_default()),
        plain(rule.rule.clone()),
        figure(counters.matched),
        figure(counters.held),
        alarming(counters.overrun),
        alarming(counters.late),
        plain(time(rule.present().achieved.p50_ns)),
        plain(time(rule.present().lateness.p50_ns)),
        plain(time(Some(counters.backlog_ns))),
        figure(counters.now),
    ]
}
