//! `txgs` as a [`Report`].

use dashpot_engine::Duration;
use dashpot_observe::{Question, Schedule, Seen, Subject};
use dashpot_text::surface::Surface;

use super::Txgs;
use crate::report::{Page, Pages, Report, Tells};

/// The report: the transaction groups of pools as they are now, or at the end of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct TxgsReport {
    /// Whether even a narrow terminal gets all columns.
    pub wide: bool,
}

impl Report for TxgsReport {
    fn question(&self) -> Question {
        Question::of(Subject::Pools)
    }

    fn schedule(&self) -> Schedule {
        Schedule {
            interval: Duration::MAX,
            count: Some(0),
            since_start: true,
        }
    }

    fn tells(&self) -> Tells {
        Tells::LENGTH
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let titled = seen.pools.len() > 1;
        let pages = seen.pools.iter().map(|pool| Txgs {
            pool: titled.then(|| pool.name.clone()),
            txgs: pool.txgs.clone(),
            room: surface.room(self.wide),
        });
        pages.map(|page| Box::new(page) as Box<dyn Page>).collect()
    }
}
