//! A report over the I/Os that meet conditions.

use dashpot_observe::{Predicates, Question, Schedule, Seen};
use dashpot_text::surface::Surface;

use crate::report::{Pages, Report, Tells, Words};

/// A report on only those I/Os that meet conditions. It prints these conditions first.
pub(crate) struct Filtered {
    report: Box<dyn Report>,
    predicates: Predicates,
}

impl Filtered {
    /// Limits a report to I/Os that meet these conditions. If there are none, returns the report unchanged.
    pub(crate) fn of(report: Box<dyn Report>, predicates: &Predicates) -> Box<dyn Report> {
        if predicates.is_empty() {
            report
        } else {
            Box::new(Filtered {
                report,
                predicates: predicates.clone(),
            })
        }
    }
}

impl Report for Filtered {
    fn question(&self) -> Question {
        Question {
            predicates: self.predicates.clone(),
            ..self.report.question()
        }
    }

    fn schedule(&self) -> Schedule {
        self.report.schedule()
    }

    fn tells(&self) -> Tells {
        self.report.tells()
    }

    fn makes_sums(&self) -> bool {
        self.report.makes_sums()
    }

    fn open(&mut self, surface: &Surface) -> Pages {
        let words = format!("Only I/Os with {}.\n", self.predicates.phrase());
        let mut pages: Pages = vec![Box::new(Words(words))];
        pages.extend(self.report.open(surface));
        pages
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        self.report.take(seen, surface)
    }

    fn close(&mut self, is_whole: bool, surface: &Surface) -> Pages {
        self.report.close(is_whole, surface)
    }

    fn svg(&self) -> Option<String> {
        self.report.svg()
    }
}
