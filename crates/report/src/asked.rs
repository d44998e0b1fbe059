//! A report as the user asks for it: the options that all reports share, and the devices that a report is over.

use std::collections::BTreeSet;
use std::path::Path;

use dashpot_cli::reports::{DeviceArgs, IoArgs, OutputArgs, Pace, PeriodArgs, PoolArgs};
use dashpot_engine::Duration;
use dashpot_observe::{Knows, Layer, Past, Predicates, Schedule};
use dashpot_rules::ParseError;

use crate::filtered::Filtered;
use crate::report::Report;

/// A report, and the user's choices about it.
pub trait ReportRequest {
    /// The report over these devices.
    fn report(&self, over: &Over) -> Result<Box<dyn Report>, ParseError>;

    /// The choices that other reports have, too.
    fn shared(&self) -> Shared<'_>;

    /// Whether the report has one interval.
    fn is_one_document(&self) -> bool {
        false
    }

    /// The file for the report's picture, if the user wants one.
    fn svg(&self) -> Option<&Path> {
        None
    }

    /// The layers that a report on a recording is about. `live` has the layers for live disks, and `recorded`
    /// those of the recording.
    fn layers(&self, live: &[Layer], _recorded: &BTreeSet<Layer>) -> Vec<Layer> {
        live.to_vec()
    }

    /// The report over the I/Os of these devices that match the conditions.
    fn filtered(&self, over: &Over) -> Result<Box<dyn Report>, ParseError> {
        Ok(Filtered::of(self.report(over)?, &self.shared().predicates))
    }
}

/// The choices that several reports have.
pub struct Shared<'a> {
    /// The devices or pools that the report is about, or the mistake in their names.
    pub devices: Result<DeviceArgs, ParseError>,
    /// The conditions on the report's I/Os. Without conditions, the report covers all I/Os.
    pub predicates: Predicates,
    /// The period in the past that the report is about; `None` for a report on the present.
    pub period: Option<&'a PeriodArgs>,
    /// The formats that the user asks for.
    pub output: &'a OutputArgs,
}

impl<'a> Shared<'a> {
    /// The choices of a report on these devices or pools.
    pub fn of(devices: Result<DeviceArgs, ParseError>, output: &'a OutputArgs) -> Shared<'a> {
        Shared {
            devices,
            predicates: Predicates::default(),
            period: None,
            output,
        }
    }

    /// The choices of a report on I/Os.
    pub fn of_ios(of: &'a IoArgs) -> Shared<'a> {
        Shared {
            predicates: of.filter.predicates(),
            period: Some(&of.period),
            ..Shared::of(Ok(of.device.clone()), &of.output)
        }
    }

    /// The choices of a report on pools.
    pub fn of_pools(of: &'a PoolArgs) -> Shared<'a> {
        let names = of.and_pace().map(|(names, _)| DeviceArgs::named(names));
        Shared::of(names, &of.output)
    }
}

/// The devices that a report covers.
pub enum Over {
    /// Live disks.
    Live(Devices),
    Recorded(Devices),
    Simulation,
}

/// The devices of one layer that a source has.
pub struct Devices {
    /// The facts that the source knows of their I/Os.
    pub knows: Knows,
    pub layer: Layer,
    pub names: Vec<String>,
}

impl Over {
    /// The intervals that the user asks for. If the user asks for none, a recording's period is one
    /// interval.
    pub(crate) fn schedule(&self, pace: &Pace, default: Duration) -> Schedule {
        let default = match self {
            Over::Recorded(_) => Duration::MAX,
            Over::Live(_) | Over::Simulation => default,
        };
        Schedule::every(pace.interval.unwrap_or(default), pace.count)
    }

    /// The past that a report is about, from a recording or from a daemon's memory.
    pub(crate) fn past(&self, period: &PeriodArgs, each_second: bool) -> Option<Past> {
        let last = match self {
            Over::Recorded(_) => Some(Duration::MAX),
            Over::Live(_) | Over::Simulation => period.last,
        };
        last.map(|last| Past { last, each_second })
    }

    /// Whether the report ends only when the user ends it. A simulation and a recording end by themselves.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self, Over::Live(_))
    }

    /// Refuses options for a past that only a recording can show.
    pub(crate) fn check_recording(&self, period: &PeriodArgs) -> Result<(), ParseError> {
        match (self, period.last) {
            (Over::Live(_), Some(_)) => Err(ParseError::new(
                "--last: nothing records these disks, and a daemon's memory has only latencies: name a recording with \
                 --in REC, or begin one with 'serve --record REC' or 'observe --record REC'",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses options that the memory of a daemon cannot answer: intervals, and latencies from arrival (`-Q`).
    pub(crate) fn check_memory(
        &self,
        period: &PeriodArgs,
        pace: &Pace,
        queued: bool,
    ) -> Result<(), ParseError> {
        let with = match (self, period.last, pace.interval) {
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
}

/// The intervals of sysstat and of zpool iostat: the report since the start counts as one of the requested
/// reports. If the user gives no interval, that report is the only one.
pub(crate) fn since_start(pace: &Pace) -> Schedule {
    Schedule {
        interval: pace.interval.unwrap_or(Duration::MAX),
        count: match (pace.interval, pace.count) {
            (None, _) => Some(0),
            (Some(_), count) => count.map(|count| count.saturating_sub(1)),
        },
        since_start: true,
    }
}
