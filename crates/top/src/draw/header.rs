//! The lines above the tables: the source of the disks, and whether the figures can be trusted.

use std::time::Duration;

use dashpot_api::{CanHold, Promise, Shard};
use dashpot_observe::Layer;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Theme;
use super::figures::time;
use crate::board::Contact;
use crate::frame::{DiskFrame, Moment};
use crate::state::{Origin, State};

/// The first line, and below it the problems with the connection, the host, and the observation.
pub(super) fn lines(state: &State, theme: Theme, wide: bool) -> Vec<Line<'static>> {
    let frame = &state.board().frame;
    let mut lines = vec![first(state, theme)];
    lines.extend(contact(state.contact(), theme));
    lines.extend(frame.shards.iter().map(|shard| self::shard(shard, theme)));
    let notes = frame.notes.iter().map(|note| warning(note.clone(), theme));
    lines.extend(notes);
    if wide {
        lines.extend(by_reason(&frame.promises, theme));
    } else {
        lines.extend(promises(&frame.promises, theme));
    }
    lines
}

fn first(state: &State, theme: Theme) -> Line<'static> {
    let whose = match &state.source {
        Origin::Daemon(address) => address.clone(),
        Origin::Kernel => "of the kernel; only dashpot's own disks have rules".to_owned(),
        Origin::Simulation(lab) => lab.clone(),
    };
    let mut spans = vec![
        Span::styled("dashpot top", theme.focused()),
        Span::raw(format!(
            "  {}, every {}  ",
            counted(&state.board().frame.disks),
            length(state.interval)
        )),
    ];
    if state.is_paused() {
        spans.push(Span::styled("PAUSED (space goes on)", theme.selected()));
        spans.push(Span::raw("  "));
    }
    if let Some(moment) = &state.board().frame.moment {
        spans.push(self::moment(moment, theme));
        spans.push(Span::raw("  "));
    }
    spans.push(Span::styled(whose, theme.faint()));
    Line::from(spans)
}

/// The numbers of volumes and disks: `2 volumes, 1 disk`.
fn counted(disks: &[DiskFrame]) -> String {
    let count = |layer, noun| {
        let count = disks.iter().filter(|disk| disk.layer == layer).count();
        let plural = if count == 1 { "" } else { "s" };
        (count, format!("{count} {noun}{plural}"))
    };
    match (count(Layer::Volume, "volume"), count(Layer::Disk, "disk")) {
        ((0, _), (_, disks)) => disks,
        ((_, volumes), (_, disks)) => format!("{volumes}, {disks}"),
    }
}

/// The progress of a simulation.
fn moment(moment: &Moment, theme: Theme) -> Span<'static> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let at = seconds(moment.at.as_nanos());
    if moment.is_over() {
        Span::styled(format!("ENDED at {at:.1} s"), theme.warning())
    } else {
        let lasts = seconds(moment.lasts.as_nanos());
        Span::styled(format!("{at:.1} s of {lasts:.1} s"), theme.good())
    }
}

fn length(interval: Duration) -> String {
    match interval.subsec_nanos() {
        0 => format!("{} s", interval.as_secs()),
        _ => format!("{} ms", interval.as_millis()),
    }
}

fn contact(contact: &Contact, theme: Theme) -> Option<Line<'static>> {
    let text = match contact {
        Contact::Up => return None,
        Contact::Waiting => "nothing has been seen yet".to_owned(),
        Contact::Down(why) => format!("NO FIGURES, trying again: {why}"),
        Contact::Silent(silence) => {
            format!("NO ANSWER for {} s, still waiting", silence.as_secs())
        }
    };
    Some(Line::styled(text, theme.bad()))
}

/// A line about a shard: whether it keeps up, and what its probe has measured.
fn shard(shard: &Shard, theme: Theme) -> Line<'static> {
    let (state, style) = match (shard.load.overloaded, shard.spins) {
        (true, _) => ("OVERLOADED", theme.bad()),
        (false, true) => ("spins", theme.good()),
        (false, false) => ("sleeps", theme.good()),
    };
    let (gap, probe) = (&shard.loop_gap, &shard.probe);
    Line::from(vec![
        Span::raw(format!("shard {} ", shard.shard)),
        Span::styled(state, style),
        Span::raw(format!(
            " {} % busy  gap p99 {} max {}  probe p50 {} max {}",
            shard.load.busy_percent,
            time(gap.p99_ns),
            time(gap.max_ns),
            time(probe.p50_ns),
            time(probe.max_ns),
        )),
    ])
}

fn can_hold(promise: &Promise, theme: Theme) -> (&'static str, Style) {
    match promise.can_hold {
        CanHold::No => ("cannot hold", theme.bad()),
        CanHold::Doubtful => ("doubtful", theme.warning()),
        CanHold::Yes => ("holds", theme.good()),
    }
}

fn promise(promise: &Promise, theme: Theme) -> Line<'static> {
    let (word, style) = can_hold(promise, theme);
    Line::styled(
        format!("{word}: {}: {}", promise.promise, promise.why),
        style,
    )
}

/// A line for each reason why the daemon cannot keep a promise, or perhaps cannot keep it.
fn by_reason(promises: &[Promise], theme: Theme) -> Vec<Line<'static>> {
    let is_like = |a: &Promise, b: &Promise| a.can_hold == b.can_hold && a.why == b.why;
    let line = |(at, one): (usize, &Promise)| {
        let alike = || promises.iter().filter(|other| is_like(one, other));
        let is_first = !promises[..at].iter().any(|other| is_like(one, other));
        let line = match alike().count() {
            1 => promise(one, theme),
            several => {
                let (word, style) = can_hold(one, theme);
                Line::styled(format!("{word}: {several} promises: {}", one.why), style)
            }
        };
        is_first.then_some(line)
    };
    promises.iter().enumerate().filter_map(line).collect()
}

/// The worst promise, and how many promises are broken or doubtful in all.
fn promises(promises: &[Promise], theme: Theme) -> Option<Line<'static>> {
    let broken = promises.iter().find(|one| one.can_hold == CanHold::No);
    let worst = broken.or_else(|| promises.first())?;
    let mut line = promise(worst, theme);
    if promises.len() > 1 {
        let more = format!("({} in all) ", promises.len());
        line.spans.insert(0, Span::raw(more));
    }
    Some(line)
}

fn warning(text: String, theme: Theme) -> Line<'static> {
    Line::styled(text, theme.warning())
}
