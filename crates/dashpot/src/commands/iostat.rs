//! `iostat`: averages of disks, first since they are served, then per interval.

use dashpot_engine::Duration;
use dashpot_observe::{DeviceInterval, InFlight, Length, Mention, Question, elapsed_of_all};
use dashpot_probe::Device;
use dashpot_rules::ApiAddress;

use super::lengths::Lengths;
use super::output::{print, print_json_line, usage};
use super::screen::room;
use super::vanished::warn_of_vanished;
use crate::cli::IostatArgs;
use crate::sources::{DiskstatsInterval, DiskstatsWatch, Target, Transfers, Watch};
use dashpot_report::iostat::{Columns, Completed, Interval, Iostat};

pub(crate) fn iostat(api: Option<&ApiAddress>, args: &IostatArgs) -> anyhow::Result<()> {
    // As with sysstat, the report since the start is one of those that are counted, and without
    // an interval it is the only one.
    let (device, pace) = args.split().unwrap_or_else(|error| usage(&error));
    let more = match (pace.interval, pace.count) {
        (None, _) => Some(0),
        (Some(_), count) => count.map(|count| count.saturating_sub(1)),
    };
    let interval = pace.interval.unwrap_or(Duration::MAX);
    match Target::find(api, &device)? {
        Target::Kernel(devices) => {
            let are_named = !device.devices.is_empty();
            of_kernel(&devices, are_named, interval, more, args)
        }
        target => of_daemon(&target, interval, more, args),
    }
}

fn of_daemon(
    target: &Target,
    interval: Duration,
    more: Option<u64>,
    args: &IostatArgs,
) -> anyhow::Result<()> {
    let mut watch = Watch::new(target, &Question::default(), interval, more)?;
    // It is over so long a time that nothing in flight would be old enough.
    let first = watch.since_start()?;
    let length = Length::of(elapsed_of_all(&first));
    let mut lengths = Lengths::default();
    show(
        &report(&first, length, Mention::All, args),
        &mut lengths,
        args,
    )?;
    while let Some(intervals) = watch.next()? {
        let length = watch.length(&intervals);
        let report = report(&intervals, length, watch.mention(), args);
        show(&report, &mut lengths, args)?;
    }
    lengths.sum_up();
    Ok(())
}

/// The kernel counts what is needed in any case: no event is traced, and no privilege taken.
fn of_kernel(
    devices: &[Device],
    are_named: bool,
    interval: Duration,
    more: Option<u64>,
    args: &IostatArgs,
) -> anyhow::Result<()> {
    let mut watch = DiskstatsWatch::new(devices, interval, more)?;
    let mut first = watch.since_start()?;
    if !are_named {
        // As with sysstat, what has never been used is not worth a line.
        first.retain(|interval| interval.counters.is_used());
        watch.keep(|name| first.iter().any(|interval| interval.device == name));
    }
    let mut lengths = Lengths::default();
    let since_start = kernel_report(&first, Length::default(), Mention::All, args);
    show(&since_start, &mut lengths, args)?;
    while let Some(intervals) = watch.next()? {
        let span = watch.span();
        let report = kernel_report(&intervals, span.length(), span.mention(), args);
        show(&report, &mut lengths, args)?;
        warn_of_vanished(watch.vanished());
    }
    lengths.sum_up();
    Ok(())
}

fn show(report: &Iostat, lengths: &mut Lengths, args: &IostatArgs) -> anyhow::Result<()> {
    if args.json {
        print_json_line(report)?;
        lengths.warn(&report.length);
        return Ok(());
    }
    lengths.count(&report.length);
    print(&report.to_string())
}

/// The report of an interval.
pub(super) fn report(
    intervals: &[DeviceInterval],
    length: Length,
    mention: Mention,
    args: &IostatArgs,
) -> Iostat {
    Iostat {
        columns: columns(args),
        disks: intervals.iter().map(disk).collect(),
        mention,
        length,
        room: room(args.wide),
    }
}

fn kernel_report(
    intervals: &[DiskstatsInterval],
    length: Length,
    mention: Mention,
    args: &IostatArgs,
) -> Iostat {
    Iostat {
        columns: columns(args),
        disks: intervals.iter().map(kernel_disk).collect(),
        mention,
        length,
        room: room(args.wide),
    }
}

fn columns(args: &IostatArgs) -> Columns {
    match (args.extended, args.short) {
        (false, false) => Columns::Basic,
        (true, false) => Columns::Extended,
        (false, true) => Columns::BasicShort,
        (true, true) => Columns::ExtendedShort,
    }
}

fn kernel_disk(interval: &DiskstatsInterval) -> Interval {
    let counters = &interval.counters;
    Interval {
        disk: interval.device.clone(),
        elapsed: interval.elapsed,
        reads: counters.reads.into(),
        writes: counters.writes.into(),
        discards: counters.discards.into(),
        flushes: counters.flushes.into(),
        depth_time: u128::from(counters.depth_time_ms) * 1_000_000,
        busy: std::time::Duration::from_millis(counters.busy_ms.into()),
        in_flight: InFlight {
            zios: counters.in_flight,
            ..InFlight::default()
        },
    }
}

impl From<Transfers> for Completed {
    fn from(transfers: Transfers) -> Completed {
        Completed {
            zios: transfers.completed,
            bytes: transfers.sectors * 512,
            time_ns: u128::from(transfers.time_ms) * 1_000_000,
            merged: transfers.merged,
        }
    }
}

/// As in the kernel's statistics, writing zeroes counts as writing, and a trim is a discard.
fn disk(interval: &DeviceInterval) -> Interval {
    Interval {
        disk: interval.device.clone(),
        elapsed: interval.elapsed,
        reads: completed(interval, &["read"]),
        writes: completed(interval, &["write", "zero"]),
        discards: completed(interval, &["trim"]),
        flushes: completed(interval, &["flush"]),
        depth_time: interval.depth_time_ns,
        busy: interval.busy,
        in_flight: interval.in_flight.clone(),
    }
}

fn completed(interval: &DeviceInterval, names: &[&str]) -> Completed {
    let mut all = Completed::default();
    for op in &interval.ops {
        if names.contains(&op.op.as_str()) {
            all.zios += op.completed;
            all.bytes += op.bytes;
            all.time_ns += op.disk.sum();
        }
    }
    all
}
