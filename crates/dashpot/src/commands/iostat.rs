//! `iostat`: averages of disks, first since the daemon serves them, then per interval.

use dashpot_engine::Duration;
use dashpot_observe::{Layer, Schedule};
use dashpot_report::iostat::{Columns, IostatReport};
use dashpot_rules::{ApiAddress, ParseError};

use super::output::usage;
use super::report::{Format, show};
use crate::cli::{IostatArgs, Pace};

pub(super) fn iostat(api: Option<&ApiAddress>, args: &IostatArgs) -> anyhow::Result<()> {
    let parsed = args
        .split()
        .and_then(|(device, _)| Ok((device, report(args, Layer::Disk)?)));
    let (device, report) = parsed.unwrap_or_else(|error| usage(&error));
    show(api, &device, report, Format::lines(args.json))
}

pub(super) fn report(args: &IostatArgs, layer: Layer) -> Result<IostatReport, ParseError> {
    if layer == Layer::Store {
        return Err(ParseError::new(
            "a store has no queue that iostat could show: take iolatency or quantize",
        ));
    }
    let (_, pace) = args.split()?;
    Ok(IostatReport {
        layer,
        schedule: schedule(&pace),
        columns: match (args.extended, args.short) {
            (false, false) => Columns::Basic,
            (true, false) => Columns::Extended,
            (false, true) => Columns::BasicShort,
            (true, true) => Columns::ExtendedShort,
        },
        wide: args.wide,
    })
}

/// The intervals. As with sysstat, the report since the start counts as one of the number, and
/// without an interval it is the only one.
fn schedule(pace: &Pace) -> Schedule {
    Schedule {
        interval: pace.interval.unwrap_or(Duration::MAX),
        count: match (pace.interval, pace.count) {
            (None, _) => Some(0),
            (Some(_), count) => count.map(|count| count.saturating_sub(1)),
        },
        since_start: true,
    }
}
