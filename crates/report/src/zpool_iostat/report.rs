//! `zpool-iostat` as a [`Report`].

use dashpot_observe::{Question, Schedule, Seen, Subject};
use dashpot_text::surface::Surface;

use super::{View, ZpoolIostat};
use crate::report::{Pages, Report};

/// The report: the I/O of pools, once per interval.
#[derive(Clone, Debug)]
pub struct ZpoolIostatReport {
    /// The intervals of the report.
    pub schedule: Schedule,
    /// The columns that the report shows.
    pub view: View,
    /// Whether even a narrow terminal gets all columns.
    pub wide: bool,
    /// Whether the titles have been printed.
    pub titled: bool,
}

impl Report for ZpoolIostatReport {
    fn question(&self) -> Question {
        Question::of(Subject::Pools)
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let titled = !std::mem::replace(&mut self.titled, true);
        vec![Box::new(ZpoolIostat {
            view: self.view,
            titled,
            room: surface.room(self.wide),
            pools: seen.pools.clone(),
        })]
    }
}
