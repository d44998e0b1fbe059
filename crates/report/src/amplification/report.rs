//! `amplification` as a [`Report`].

use dashpot_observe::{Question, Schedule, Seen, Subject};
use dashpot_text::surface::Surface;

use super::{Amplification, PoolLevels};
use crate::report::{Pages, Report};

/// The report: how many operations and bytes pools had at each level, once per interval.
#[derive(Clone, Copy, Debug)]
pub struct AmplificationReport {
    /// The intervals of the report.
    pub schedule: Schedule,
}

impl Report for AmplificationReport {
    fn question(&self) -> Question {
        Question::of(Subject::Pools)
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        vec![Box::new(Amplification {
            pools: seen.pools.iter().map(PoolLevels::of).collect(),
            room: surface.room(false),
        })]
    }
}
