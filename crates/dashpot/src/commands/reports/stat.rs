//! `stat`: any statistic, once per interval.

use dashpot_engine::Duration;
use dashpot_observe::{Schedule, Statistic};
use dashpot_report::report::Report;
use dashpot_report::stat::StatReport;
use dashpot_rules::ParseError;

use super::asked::{Asked, Format, Over};
use crate::cli::reports::{DeviceArgs, StatArgs};

impl Asked for StatArgs {
    fn report(&self, _: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        let interval = self.pace.interval.unwrap_or(INTERVAL);
        Ok(Box::new(StatReport {
            statistic: Statistic {
                predicates: self
                    .statistic
                    .predicates
                    .clone()
                    .and(self.filter.predicates()),
                ..self.statistic.clone()
            },
            schedule: Schedule::every(interval, self.pace.count),
            wide: self.wide,
        }))
    }

    fn devices(&self) -> Result<DeviceArgs, ParseError> {
        Ok(self.device.clone())
    }

    fn format(&self) -> Format {
        match self.csv {
            true => Format::Csv,
            false => Format::lines(self.json),
        }
    }
}

/// The default of the other reports.
const INTERVAL: Duration = Duration::from_secs(1);
