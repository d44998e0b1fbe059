//! The table of disks.

use dashpot_rules::short_time;
use ratatui::style::Style;

use super::Theme;
use super::columns::{Cell, Column};
use super::figures::{count, known, time, whole};
use crate::frame::{Condition, DiskFrame, Done};

pub(super) const COLUMNS: [Column; 14] = [
    Column::text("disk", 10, 0).growing(),
    Column::text("store", 6, 6).growing(),
    Column::figure("r/s", 6, 0),
    Column::figure("w/s", 6, 0),
    Column::figure("f/s", 4, 4),
    Column::figure("kB/s", 7, 2),
    Column::figure("p50", 6, 3),
    Column::figure("p99", 6, 0),
    Column::figure("max", 6, 3),
    Column::figure("fly", 4, 1),
    Column::figure("most", 4, 5),
    Column::figure("oldest", 6, 1),
    Column::text("state", 9, 0).growing(),
    Column::text("oldest waits", 12, 7).growing(),
];

pub(super) fn row(disk: &DiskFrame, theme: Theme) -> Vec<Cell> {
    let plain = |text: String| (text, Style::new());
    let done = disk.done.as_ref();
    let rate = |of: fn(&Done) -> f64| plain(known(done.map(of)));
    let latency = |of: fn(&Done) -> Option<u64>| plain(time(done.and_then(of)));
    vec![
        plain(disk.name.clone()),
        (disk.store.clone(), theme.faint()),
        rate(|done| done.reads),
        rate(|done| done.writes),
        rate(|done| done.flushes),
        plain(done.map_or_else(|| "-".to_owned(), |done| whole(done.kilobytes))),
        latency(|done| done.p50_ns),
        latency(|done| done.p99_ns),
        latency(|done| done.max_ns),
        plain(count(disk.in_flight as f64)),
        plain(known(done.and_then(|done| done.deepest).map(f64::from))),
        plain(time(disk.oldest_ns)),
        state(disk, theme),
        plain(disk.wait.clone().unwrap_or_default()),
    ]
}

/// The state of a disk: `ok`, or its problems.
fn state(disk: &DiskFrame, theme: Theme) -> Cell {
    let worst = disk.conditions.iter().min();
    let style = match worst {
        Some(Condition::Vanished | Condition::Failed(_) | Condition::Faulted(_)) => theme.bad(),
        Some(Condition::Suspended { .. } | Condition::Stalled(_)) => theme.warning(),
        Some(Condition::ReadOnly) => Style::new(),
        None => theme.good(),
    };
    let words: Vec<&str> = disk.conditions.iter().map(Condition::word).collect();
    if words.is_empty() {
        ("ok".to_owned(), style)
    } else {
        (words.join(", "), style)
    }
}

/// A longer text about the problems of a disk, if it has any.
pub(super) fn note(disk: &DiskFrame) -> Option<String> {
    let all: Vec<String> = disk.conditions.iter().filter_map(explained).collect();
    (!all.is_empty()).then(|| format!("{}: {}", disk.name, all.join(", ")))
}

fn explained(condition: &Condition) -> Option<String> {
    Some(match condition {
        Condition::Failed(why) => format!("failed ({why})"),
        Condition::Faulted(why) => format!("faulted ({why})"),
        Condition::Suspended { age_ns, left_ns } => {
            let left = left_ns.map(|left| format!(", {} left", short_time(left)));
            format!(
                "suspended for {}{}",
                short_time(*age_ns),
                left.unwrap_or_default()
            )
        }
        Condition::Stalled(connections) => {
            format!("stalled ({connections} connections are not read: depth is bounded)")
        }
        Condition::Vanished | Condition::ReadOnly => return None,
    })
}
