//! `stat`: shows any statistic, once per interval.

use dashpot_cli::reports::{DeviceArgs, PeriodArgs, StatArgs};
use dashpot_engine::Duration;
use dashpot_observe::Statistic;
use dashpot_report::report::Report;
use dashpot_report::stat::StatReport;
use dashpot_rules::ParseError;

use super::asked::{Asked, Format, Over, check_memory};

impl Asked for StatArgs {
    fn report(&self, over: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        check_memory(over, &self.period, &self.pace, false)?;
        let statistic = Statistic {
            predicates: self
                .statistic
                .predicates
                .clone()
                .and(self.filter.predicates()),
            ..self.statistic.clone()
        };
        Ok(Box::new(StatReport {
            statistic: statistic.check()?,
            schedule: over.schedule(&self.pace, INTERVAL),
            past: over.past(&self.period, false),
            wide: self.wide,
        }))
    }

    fn devices(&self) -> Result<DeviceArgs, ParseError> {
        Ok(self.device.clone())
    }

    fn period(&self) -> Option<&PeriodArgs> {
        Some(&self.period)
    }

    fn format(&self) -> Format {
        Format::lines(self.json, self.csv)
    }
}

/// The default interval, as in most other reports.
const INTERVAL: Duration = Duration::from_secs(1);
