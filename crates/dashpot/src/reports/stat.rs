//! `stat`: shows any statistic, once per interval.

use dashpot_cli::reports::{IoArgs, OutputArgs, StatArgs};
use dashpot_engine::Duration;
use dashpot_observe::{Predicates, Statistic};
use dashpot_report::report::Report;
use dashpot_report::stat::StatReport;
use dashpot_rules::ParseError;

use super::asked::{Over, ReportRequest, check_memory};

impl ReportRequest for StatArgs {
    fn report(&self, over: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        check_memory(over, &self.of.period, &self.pace, false)?;
        let statistic = Statistic {
            predicates: self
                .statistic
                .predicates
                .clone()
                .and(self.of.filter.predicates()),
            ..self.statistic.clone()
        };
        Ok(Box::new(StatReport {
            statistic: statistic.check()?,
            schedule: over.schedule(&self.pace, INTERVAL),
            past: over.past(&self.of.period, false),
            wide: self.wide,
        }))
    }

    fn of(&self) -> Option<&IoArgs> {
        Some(&self.of)
    }

    /// The statistic has the conditions.
    fn predicates(&self) -> Predicates {
        Predicates::default()
    }

    fn output(&self) -> &OutputArgs {
        &self.of.output
    }
}

/// The default interval, as in most other reports.
const INTERVAL: Duration = Duration::from_secs(1);
