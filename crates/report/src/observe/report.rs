//! `observe` as a [`Report`].

use dashpot_observe::{Layer, Question, Schedule, Seen};
use dashpot_text::surface::Surface;

use super::{Line, Observation};
use crate::report::{Pages, Report, Tells};

/// The report: rates and percentiles, in a table for each interval.
#[derive(Clone, Copy, Debug)]
pub struct ObserveReport {
    /// The layer of the disks.
    pub layer: Layer,
    /// The intervals of the report.
    pub schedule: Schedule,
    /// Whether even a narrow terminal gets all columns.
    pub wide: bool,
}

impl Report for ObserveReport {
    fn question(&self) -> Question {
        Question::latencies(&[self.layer])
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn tells(&self) -> Tells {
        Tells::ALL
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        vec![Box::new(Observation {
            at_ns: seen.at_ns,
            length: seen.length(),
            devices: seen.at(self.layer).iter().map(Line::of).collect(),
            lost: seen.lost,
            unmatched: seen.unmatched,
            wide: self.wide,
            room: surface.room(self.wide),
        })]
    }
}
