//! `iolatency`: latencies of disks as a histogram, once per interval.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Duration, glob_matches};
use dashpot_export::complain;
use dashpot_observe::{
    By, DeviceInterval, Groups, Layer, Length, Mention, OpInterval, Order, Question,
    elapsed_of_all, in_flight_of_all,
};
use dashpot_rules::{ApiAddress, ParseError};

use super::lengths::Lengths;
use super::lost::Lost;
use super::output::{print, print_json_line, usage};
use super::past::recall_all;
use super::screen::room;
use super::vanished::warn_of_vanished;
use super::wall::{unix_ns, unix_ns_before};
use crate::cli::{IolatencyArgs, ReportBy};
use crate::sources::{Target, Watch};
use dashpot_report::iolatency::{
    Boundary, Distribution, ENDING, Interval, Scope, Style, Value, opening,
};

/// iolatency's own default.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn iolatency(api: Option<&ApiAddress>, args: &IolatencyArgs) -> anyhow::Result<()> {
    let interval = args.pace.interval.unwrap_or(INTERVAL);
    let target = Target::find(api, &args.device)?;
    let question = question(args);
    target
        .check(&question)
        .unwrap_or_else(|error| usage(&error));
    if let Some(last) = args.last {
        return show_past(&target, args, last);
    }
    let mut watch = Watch::new(&target, &question, interval, args.pace.count)?;
    if !args.json {
        let seconds = interval.as_nanos() as f64 / 1e9;
        print(&opening(seconds, args.pace.count.is_none()))?;
    }
    let (mut lost, mut lengths) = (Lost::default(), Lengths::default());
    while let Some(intervals) = watch.next()? {
        let report = Interval {
            at_ns: unix_ns_before(watch.age()),
            time: args.timestamp.then(|| time_of_day(watch.age())),
            lost: watch.lost(),
            unmatched: watch.unmatched(),
            mention: watch.mention(),
            length: watch.length(&intervals),
            ..report(&intervals, args, Layer::Disk)
        };
        show(&report, args)?;
        lengths.warn(&report.length);
        lost.warn(report.lost);
        warn_of_vanished(watch.vanished());
    }
    lengths.sum_up();
    lost.sum_up();
    if args.json {
        return Ok(());
    }
    print(ENDING)
}

/// One report of what the daemon remembers.
fn show_past(target: &Target, args: &IolatencyArgs, last: Duration) -> anyhow::Result<()> {
    if args.by == Some(ReportBy::Size) {
        usage(&ParseError::new(
            "--by size: a daemon remembers its seconds by client, device and type: take one of these",
        ));
    }
    let (intervals, length, lost) = recall_all(target, last)?;
    let past = Interval {
        at_ns: unix_ns(),
        time: args
            .timestamp
            .then(|| time_of_day(std::time::Duration::ZERO)),
        length,
        lost,
        ..report(&intervals, args, Layer::Disk)
    };
    show(&past, args)?;
    Lengths::default().warn(&length);
    Lost::default().warn(lost);
    Ok(())
}

fn show(report: &Interval, args: &IolatencyArgs) -> anyhow::Result<()> {
    if args.json {
        return print_json_line(report);
    }
    print(&report.to_string())?;
    if let Some(remark) = report.remark() {
        complain(format_args!("{remark}"));
    }
    Ok(())
}

/// What those who watch are asked. Devices and types they always tell apart.
pub(super) fn question(args: &IolatencyArgs) -> Question {
    Question {
        by: match args.by {
            None | Some(ReportBy::Device | ReportBy::Type) => None,
            Some(ReportBy::Client) => Some(By::Client),
            Some(ReportBy::Process) => Some(By::Process),
            Some(ReportBy::Cgroup) => Some(By::Cgroup),
            Some(ReportBy::Size) => Some(By::Size),
        },
        queued: args.queued,
        store: false,
    }
}

/// The report of an interval, without its moment and what was lost.
pub(super) fn report(intervals: &[DeviceInterval], args: &IolatencyArgs, layer: Layer) -> Interval {
    Interval {
        at_ns: 0,
        time: None,
        length: Length::of(elapsed_of_all(intervals)),
        scope: scope(intervals, args, layer),
        in_flight: in_flight_of_all(intervals),
        lost: 0,
        unmatched: None,
        style: match args.percentiles {
            true => Style::Percentiles,
            false => Style::Histograms,
        },
        mention: Mention::default(),
        room: room(args.wide),
    }
}

fn scope(intervals: &[DeviceInterval], args: &IolatencyArgs, layer: Layer) -> Scope {
    let boundary = match args.compat {
        Some(_) => Boundary::AsOriginal,
        None => Boundary::AsLabelled,
    };
    let measured = |op: &OpInterval| match (layer, args.queued) {
        (Layer::Store, _) | (_, false) => op.at(layer).cloned().unwrap_or_default(),
        (_, true) => op.total.clone(),
    };
    let chosen = ops(intervals, args);
    let Some(by) = args.by else {
        let mut all = Histogram::default();
        chosen.for_each(|(_, op)| all.merge(&measured(op)));
        return Scope::All(Distribution::new(&all, boundary));
    };
    let mut groups = Groups::default();
    chosen.for_each(|(device, op)| groups.add(value_of(by, device, op), &measured(op)));
    let (name, order) = named(by);
    let values = groups
        .shown(order)
        .into_iter()
        .map(|(value, latencies)| Value {
            value,
            distribution: Distribution::new(&latencies, boundary),
        });
    Scope::By {
        by: name,
        values: values.collect(),
    }
}

/// The operations that `-i` takes, with their devices.
fn ops<'a>(
    intervals: &'a [DeviceInterval],
    args: &'a IolatencyArgs,
) -> impl Iterator<Item = (&'a str, &'a OpInterval)> {
    let glob = args.iotype.as_deref().unwrap_or("*");
    let all = intervals.iter().flat_map(|interval| {
        let device = interval.device.as_str();
        interval.ops.iter().map(move |op| (device, op))
    });
    all.filter(move |(_, op)| has_type(op, glob))
}

fn value_of<'a>(by: ReportBy, device: &'a str, op: &'a OpInterval) -> &'a str {
    match by {
        ReportBy::Device => device,
        ReportBy::Type => op.rwbs.as_deref().unwrap_or(&op.op),
        _ => op.by.as_deref().unwrap_or("unknown"),
    }
}

fn named(by: ReportBy) -> (&'static str, Order) {
    match by {
        ReportBy::Device => ("device", Order::ByCount),
        ReportBy::Type => ("type", Order::ByCount),
        ReportBy::Client => (By::Client.word(), Order::ByCount),
        ReportBy::Process => (By::Process.word(), Order::ByCount),
        ReportBy::Cgroup => (By::Cgroup.word(), Order::ByCount),
        ReportBy::Size => (By::Size.word(), Order::BySize),
    }
}

/// Whether a glob over the kernel's letters takes an operation. Writes that ask for durability
/// are counted with the others, so that both `W` and `WF` take them.
fn has_type(op: &OpInterval, glob: &str) -> bool {
    if let Some(rwbs) = &op.rwbs {
        return glob_matches(glob.as_bytes(), rwbs.as_bytes());
    }
    let letters: &[&str] = match op.op.as_str() {
        "read" => &["R"],
        "write" => &["W", "WF"],
        "zero" => &["W"],
        "flush" => &["F"],
        "trim" => &["D"],
        _ => &["RA"],
    };
    let mut letters = letters.iter();
    letters.any(|letters| glob_matches(glob.as_bytes(), letters.as_bytes()))
}

fn time_of_day(age: std::time::Duration) -> String {
    (jiff::Zoned::now() - age).strftime("%H:%M:%S").to_string()
}
