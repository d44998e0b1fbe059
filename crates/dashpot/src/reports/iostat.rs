//! `iostat`: averages of disks, first since their start, then over each interval.

use dashpot_cli::reports::{DeviceArgs, IostatArgs, OutputArgs, Pace, PeriodArgs};
use dashpot_engine::Duration;
use dashpot_observe::{Layer, Schedule};
use dashpot_report::iostat::{Columns, IostatReport};
use dashpot_report::report::Report;
use dashpot_rules::ParseError;

use super::asked::{Over, ReportRequest, needs_recording};

impl ReportRequest for IostatArgs {
    fn report(&self, over: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        if self.at.layer == Layer::Store {
            return Err(ParseError::new(
                "a store has no queue that iostat could show: take iolatency or quantize",
            ));
        }
        needs_recording(over, &self.period)?;
        let (_, pace) = self.split()?;
        Ok(Box::new(IostatReport {
            layer: self.at.layer,
            schedule: match over {
                // A recording has no figures for the time since the start of its devices.
                Over::Recorded(_) => over.schedule(&pace, Duration::MAX),
                Over::Live(_) | Over::Simulation if self.no_past => without_past(&pace)?,
                Over::Live(_) | Over::Simulation => schedule(&pace),
            },
            columns: match (self.extended, self.short) {
                (false, false) => Columns::Basic,
                (true, false) => Columns::Extended,
                (false, true) => Columns::BasicShort,
                (true, true) => Columns::ExtendedShort,
            },
            wide: self.wide,
        }))
    }

    fn devices(&self) -> Result<DeviceArgs, ParseError> {
        Ok(self.split()?.0)
    }

    fn period(&self) -> Option<&PeriodArgs> {
        Some(&self.period)
    }

    fn output(&self) -> &OutputArgs {
        &self.output
    }
}

fn without_past(pace: &Pace) -> Result<Schedule, ParseError> {
    let interval = pace.interval.ok_or_else(|| {
        ParseError::new("-y leaves no report without an interval: add one, such as 'iostat -y 1 1'")
    })?;
    Ok(Schedule::every(interval, pace.count))
}

/// The intervals. As with sysstat and zpool iostat, the report since the start counts as one of the requested
/// reports. If the user gives no interval, that report is the only one.
pub(super) fn schedule(pace: &Pace) -> Schedule {
    Schedule {
        interval: pace.interval.unwrap_or(Duration::MAX),
        count: match (pace.interval, pace.count) {
            (None, _) => Some(0),
            (Some(_), count) => count.map(|count| count.saturating_sub(1)),
        },
        since_start: true,
    }
}
