//! `iostat`: averages of disks, first since they are served, then per interval.

use dashpot_engine::Duration;

use super::output::{print, print_json_line};
use crate::cli::IostatArgs;
use crate::observe::{DeviceInterval, Question, Target, Watch};
use crate::report::in_flight::Mention;
use crate::report::iostat::{Columns, Completed, Interval, Iostat};
use crate::spec::ApiAddress;

pub(crate) fn iostat(api: Option<&ApiAddress>, args: &IostatArgs) -> anyhow::Result<()> {
    // As with sysstat, the report since the start is one of those that are counted, and without
    // an interval it is the only one.
    let more = match (args.pace.interval, args.pace.count) {
        (None, _) => Some(0),
        (Some(_), count) => count.map(|count| count.saturating_sub(1)),
    };
    let interval = args.pace.interval.unwrap_or(Duration::MAX);
    let target = Target::find(api, &args.device)?;
    let mut watch = Watch::new(&target, &Question::default(), interval, more)?;
    // It is over so long a time that nothing in flight would be old enough.
    show(&watch.since_start()?, Mention::All, args)?;
    while let Some(intervals) = watch.next()? {
        show(&intervals, watch.mention(), args)?;
    }
    Ok(())
}

fn show(intervals: &[DeviceInterval], mention: Mention, args: &IostatArgs) -> anyhow::Result<()> {
    let report = report(intervals, mention, args);
    if args.json {
        return print_json_line(&report);
    }
    print(&report.to_string())
}

/// The report of an interval.
pub(super) fn report(intervals: &[DeviceInterval], mention: Mention, args: &IostatArgs) -> Iostat {
    Iostat {
        columns: if args.extended {
            Columns::Extended
        } else {
            Columns::Basic
        },
        disks: intervals.iter().map(disk).collect(),
        mention,
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
