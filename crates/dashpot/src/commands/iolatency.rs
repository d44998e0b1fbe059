//! `iolatency`: latencies of disks as a histogram, once per interval.

use dashpot_engine::Duration;
use dashpot_engine::glob_matches;
use dashpot_engine::histogram::Histogram;

use super::output::{print, print_json_line};
use crate::cli::IolatencyArgs;
use crate::observe::{
    DeviceInterval, OpInterval, Question, Target, Watch, elapsed_of_all, in_flight_of_all,
};
use crate::report::iolatency::{Boundary, ENDING, Interval, opening};
use crate::spec::ApiAddress;

/// iolatency's own default.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn iolatency(api: Option<&ApiAddress>, args: &IolatencyArgs) -> anyhow::Result<()> {
    let interval = args.pace.interval.unwrap_or(INTERVAL);
    let target = Target::find(api, &args.device)?;
    let mut watch = Watch::new(&target, &question(args), interval, args.pace.count)?;
    if !args.json {
        let seconds = interval.as_nanos() as f64 / 1e9;
        print(&opening(seconds, args.pace.count.is_none()))?;
    }
    while let Some(intervals) = watch.next()? {
        let report = Interval {
            time: args.timestamp.then(time_of_day),
            mention: watch.mention(),
            ..report(&intervals, args)
        };
        if args.json {
            print_json_line(&report)?;
        } else {
            print(&report.to_string())?;
            if let Some(remark) = report.remark() {
                eprintln!("{remark}");
            }
        }
    }
    if args.json {
        return Ok(());
    }
    print(ENDING)
}

fn question(args: &IolatencyArgs) -> Question {
    Question {
        by: None,
        queued: args.queued,
    }
}

/// The report of an interval, without the time of day.
pub(super) fn report(intervals: &[DeviceInterval], args: &IolatencyArgs) -> Interval {
    let boundary = match args.compat {
        Some(_) => Boundary::AsOriginal,
        None => Boundary::AsLabelled,
    };
    let report = Interval::new(
        &latencies(intervals, args),
        boundary,
        elapsed_of_all(intervals),
    );
    Interval {
        in_flight: in_flight_of_all(intervals),
        ..report
    }
}

fn latencies(intervals: &[DeviceInterval], args: &IolatencyArgs) -> Histogram {
    let glob = args.iotype.as_deref().unwrap_or("*");
    let mut all = Histogram::default();
    let ops = intervals.iter().flat_map(|interval| &interval.ops);
    for op in ops.filter(|op| has_type(op, glob)) {
        all.merge(if args.queued { &op.total } else { &op.disk });
    }
    all
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

fn time_of_day() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S").to_string()
}
