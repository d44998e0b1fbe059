//! `quantize`: latencies of disks in powers of two, over one interval.

use dashpot_cli::reports::{DeviceArgs, PeriodArgs, QuantizeArgs};
use dashpot_engine::{Duration, OpSet};
use dashpot_observe::{Predicates, Schedule};
use dashpot_report::quantize::QuantizeReport;
use dashpot_report::report::Report;
use dashpot_rules::ParseError;

use super::asked::{Asked, Format, Over};

impl Asked for QuantizeArgs {
    fn report(&self, over: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        Ok(Box::new(QuantizeReport {
            layers: self.at.layers(),
            schedule: Schedule::once(self.lasts.unwrap_or(Duration::MAX)),
            past: over.past(&self.period, false),
            ops: self.op.unwrap_or(OpSet::EVERY),
            by_disk: self.by.is_some(),
        }))
    }

    fn devices(&self) -> Result<DeviceArgs, ParseError> {
        Ok(self.device.clone())
    }

    fn predicates(&self) -> Predicates {
        self.filter.predicates()
    }

    fn period(&self) -> Option<&PeriodArgs> {
        Some(&self.period)
    }

    fn format(&self) -> Format {
        Format::document(self.json, self.csv)
    }
}
