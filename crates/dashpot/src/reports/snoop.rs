//! `snoop`: a line for each finished I/O, until the last I/O or Ctrl-C.

use dashpot_cli::reports::{IoArgs, OutputArgs, SnoopArgs};
use dashpot_engine::Duration;
use dashpot_observe::{Knows, Layer, Schedule, Wanted};
use dashpot_report::report::Report;
use dashpot_report::snoop::{Lines, SnoopReport};
use dashpot_rules::ParseError;
use dashpot_sources::Target;

use super::asked::{Over, ReportRequest};

impl ReportRequest for SnoopArgs {
    fn report(&self, over: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        if self.at.layer == Layer::Store {
            return Err(ParseError::new(
                "a store has no I/Os of its own: see STORE in '--layer disk'",
            ));
        }
        if self.of.period.last.is_some() && matches!(over, Over::Live(_)) {
            return Err(ParseError::new(
                "--last: a daemon remembers no single I/Os: name a recording, --in REC, or serve with --record",
            ));
        }
        if self.lasts.is_some() && self.of.period.recording.is_some() {
            return Err(ParseError::new(
                "--for is about live disks: for a part of a recording, use --from, --to or --last",
            ));
        }
        let schedule = Schedule::once(self.lasts.unwrap_or(Duration::MAX));
        let wanted = wanted(self);
        let lines = lines(over, self.at.layer);
        Ok(Box::new(SnoopReport::new(
            schedule, wanted, lines, self.wide,
        )))
    }

    fn of(&self) -> Option<&IoArgs> {
        Some(&self.of)
    }

    fn output(&self) -> &OutputArgs {
        &self.of.output
    }
}

/// The I/Os that the user wants.
fn wanted(args: &SnoopArgs) -> Wanted {
    Wanted {
        layer: args.at.layer,
        ops: args.op,
        min_ns: args.min.unwrap_or_default().as_nanos(),
        count: args.count,
    }
}

fn lines(over: Over<'_>, layer: Layer) -> Lines {
    match over {
        Over::Live(target) if layer == Layer::Fs => Lines::OfCalls(target.names(layer)),
        Over::Live(target @ Target::Kernel(..)) => Lines::OfKernel(target.names(layer)),
        Over::Live(target) => Lines::OfDisks(target.names(layer)),
        Over::Recorded(recorded) if layer == Layer::Fs => Lines::OfCalls(recorded.names().to_vec()),
        Over::Recorded(recorded) => match recorded.knows() {
            Knows::Kernel => Lines::OfKernel(recorded.names().to_vec()),
            Knows::Zios => Lines::OfDisks(recorded.names().to_vec()),
        },
        Over::Simulation => Lines::OfThePast,
    }
}
