//! `iolatency`: latencies of disks as a histogram, once per interval.

use dashpot_cli::reports::{IoArgs, IolatencyArgs, OutputArgs};
use dashpot_engine::Duration;
use dashpot_report::iolatency::{Boundary, IolatencyReport, Style};
use dashpot_report::report::Report;
use dashpot_rules::ParseError;

use super::asked::{Over, ReportRequest, check_memory};

impl ReportRequest for IolatencyArgs {
    fn report(&self, over: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        check_memory(over, &self.of.period, &self.pace, self.queued)?;
        Ok(Box::new(IolatencyReport {
            layers: self.at.layers(),
            schedule: over.schedule(&self.pace, INTERVAL),
            // Only a report over live disks can go on for ever: a simulation and a recording end by
            // themselves.
            endless: matches!(over, Over::Live(_)) && self.pace.count.is_none(),
            past: over.past(&self.of.period, false),
            queued: self.queued,
            types: self.iotype.clone(),
            by: self.by,
            boundary: match self.compat {
                Some(_) => Boundary::AsOriginal,
                None => Boundary::AsLabelled,
            },
            style: if self.percentiles {
                Style::Percentiles
            } else {
                Style::Histograms
            },
            timestamp: self.timestamp,
            wide: self.wide,
        }))
    }

    fn of(&self) -> Option<&IoArgs> {
        Some(&self.of)
    }

    fn output(&self) -> &OutputArgs {
        &self.of.output
    }
}

/// The default interval of the original tool.
const INTERVAL: Duration = Duration::from_secs(1);
