//! `quantize`: latencies of disks in powers of two, over one interval.

use dashpot_cli::reports::{IoArgs, OutputArgs, QuantizeArgs};
use dashpot_engine::{Duration, OpSet};
use dashpot_observe::Schedule;
use dashpot_report::quantize::QuantizeReport;
use dashpot_report::report::Report;
use dashpot_rules::ParseError;

use super::asked::{Over, ReportRequest};

impl ReportRequest for QuantizeArgs {
    fn report(&self, over: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        Ok(Box::new(QuantizeReport {
            layers: self.at.layers(),
            schedule: Schedule::once(self.lasts.unwrap_or(Duration::MAX)),
            past: over.past(&self.of.period, false),
            ops: self.op.unwrap_or(OpSet::EVERY),
            by_disk: self.by.is_some(),
        }))
    }

    fn of(&self) -> Option<&IoArgs> {
        Some(&self.of)
    }

    fn output(&self) -> &OutputArgs {
        &self.of.output
    }

    fn is_one_document(&self) -> bool {
        true
    }
}
