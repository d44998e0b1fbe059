//! Reports of recordings.

use std::path::Path;

use dashpot_engine::Duration;
use dashpot_observe::{Layer, Schedule};
use dashpot_report::snoop::{Lines, SnoopReport};
use dashpot_rules::ParseError;

use super::asked::Format;
use super::out::Stdout;
use super::showing::Showing;
use super::snoop::wanted;
use crate::cli::reports::SnoopArgs;
use crate::commands::output::usage;
use crate::sources::{RecordedSource, Told};

/// Shows the I/Os of a recording.
pub(super) fn snoop(args: &SnoopArgs, recording: &Path) -> anyhow::Result<()> {
    if args.at.layer != Layer::Disk {
        usage(&ParseError::new(
            "--layer: a recording has one layer, that of its 'dashpot record': leave it out",
        ));
    }
    let mut source = RecordedSource::open(
        recording,
        wanted(args),
        &args.filter.predicates(),
        &args.device.devices,
    )?;
    let lines = match source.look_ahead()? {
        (Told::Kernel, names) => Lines::OfKernel(names),
        (Told::Zios, names) => Lines::OfDisks(names),
    };
    let schedule = Schedule::once(Duration::MAX);
    let report = SnoopReport::new(schedule, wanted(args), lines, args.wide);
    Showing::new(
        Box::new(report),
        Stdout::new(Format::lines(args.json)),
        None,
    )
    .run(&mut source)
}
