//! A report as the user asks for it on the command line.

use dashpot_cli::reports::{DeviceArgs, IoArgs, OutputArgs, Pace, PeriodArgs};
use dashpot_engine::Duration;
use dashpot_observe::{Layer, Past, Predicates, Schedule, Subject};
use dashpot_output::{Draft, usage};
use dashpot_report::filtered::Filtered;
use dashpot_report::report::Report;
use dashpot_rules::{ApiAddress, ParseError};
use dashpot_sources::{Recorded, Source, Target};

/// A report, and the user's choices about it.
pub(crate) trait ReportRequest {
    /// The report over these devices.
    fn report(&self, over: Over<'_>) -> Result<Box<dyn Report>, ParseError>;

    /// The I/Os that a report on I/Os is about.
    fn of(&self) -> Option<&IoArgs> {
        None
    }

    /// The devices or pools that the report is about.
    fn devices(&self) -> Result<DeviceArgs, ParseError> {
        Ok(self
            .of()
            .map_or_else(DeviceArgs::default, |of| of.device.clone()))
    }

    /// The conditions on the report's I/Os. Without conditions, the report covers all I/Os.
    fn predicates(&self) -> Predicates {
        self.of()
            .map_or_else(Predicates::default, |of| of.filter.predicates())
    }

    /// The period in the past that the report is about; `None` for a report on the present.
    fn period(&self) -> Option<&PeriodArgs> {
        self.of().map(|of| &of.period)
    }

    /// The layers that a report on a recording is about. `live` has the layers for live disks.
    fn layers(&self, live: &[Layer], _recorded: &Recorded) -> Vec<Layer> {
        live.to_vec()
    }

    /// The report over the I/Os of these devices that match the conditions.
    fn filtered(&self, over: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        Ok(Filtered::of(self.report(over)?, &self.predicates()))
    }

    /// The formats that the user asks for.
    fn output(&self) -> &OutputArgs;

    /// Whether the report has one interval.
    fn is_one_document(&self) -> bool {
        false
    }

    /// The format of the report's output.
    fn format(&self) -> Format {
        let output = self.output();
        match (output.json, output.csv) {
            (true, _) if self.is_one_document() => Format::Json,
            (true, _) => Format::JsonLines,
            (false, true) => Format::Csv,
            (false, false) => Format::Text,
        }
    }

    /// The file for the report's picture, if the user wants one.
    fn svg(&self) -> anyhow::Result<Option<Draft>> {
        Ok(None)
    }

    /// The live devices or pools that the report is about.
    fn target(&self, api: Option<&ApiAddress>) -> anyhow::Result<Target> {
        let devices = refuse(self.devices());
        let question = refuse(self.report(Over::Simulation)).question();
        match question.subject {
            Subject::Pools => Target::of_pools(api, &devices.devices),
            _ => Target::find(api, &devices),
        }
    }

    /// Begins to watch the live devices or pools.
    fn watch<'a>(
        &self,
        target: &'a Target,
        report: &dyn Report,
    ) -> anyhow::Result<Box<dyn Source + 'a>> {
        target.watch(&report.question(), &report.schedule())
    }
}

/// The devices that a report covers.
#[derive(Clone, Copy)]
pub(crate) enum Over<'a> {
    /// Live disks.
    Live(&'a Target),
    Recorded(&'a Recorded),
    Simulation,
}

impl Over<'_> {
    /// The intervals that the user asks for. If the user asks for none, a recording's period is one
    /// interval.
    pub(super) fn schedule(self, pace: &Pace, default: Duration) -> Schedule {
        let default = match self {
            Over::Recorded(_) => Duration::MAX,
            Over::Live(_) | Over::Simulation => default,
        };
        Schedule::every(pace.interval.unwrap_or(default), pace.count)
    }

    /// The past that a report is about, from a recording or from a daemon's memory.
    pub(super) fn past(self, period: &PeriodArgs, each_second: bool) -> Option<Past> {
        let last = match self {
            Over::Recorded(_) => Some(Duration::MAX),
            Over::Live(_) | Over::Simulation => period.last,
        };
        last.map(|last| Past { last, each_second })
    }
}

/// Refuses options for a past that only a recording can show.
pub(super) fn needs_recording(over: Over<'_>, period: &PeriodArgs) -> Result<(), ParseError> {
    match (over, period.last) {
        (Over::Live(_), Some(_)) => Err(ParseError::new(
            "--last: nothing records these disks, and a daemon's memory has only latencies: name a recording with \
             --in REC, or begin one with 'serve --record REC' or 'observe --record REC'",
        )),
        _ => Ok(()),
    }
}

/// Refuses options that the memory of a daemon cannot answer: intervals, and latencies from arrival (`-Q`).
pub(super) fn check_memory(
    over: Over<'_>,
    period: &PeriodArgs,
    pace: &Pace,
    queued: bool,
) -> Result<(), ParseError> {
    let with = match (over, period.last, pace.interval) {
        (Over::Live(_), Some(_), Some(_)) => "an interval: a daemon tells its past as a whole",
        (Over::Live(_), Some(_), None) if queued => {
            "-Q: a daemon remembers latencies at the disk only"
        }
        _ => return Ok(()),
    };
    Err(ParseError::new(format!(
        "--last cannot be used with {with}; with a recording (--in REC) it can"
    )))
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    /// A line of JSON for each page.
    JsonLines,
    /// Comma-separated values: one line of column names, and then a line for each row of each page.
    Csv,
    /// Indented JSON, for a report of one interval.
    Json,
}

/// Returns the parsed value, or ends the program with the parser's error.
pub(super) fn refuse<T>(parsed: Result<T, ParseError>) -> T {
    parsed.unwrap_or_else(|error| usage(&error))
}
