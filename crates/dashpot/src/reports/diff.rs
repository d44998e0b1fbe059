//! `diff`: the differences between two periods of recordings.

use std::path::Path;

use dashpot_cli::reports::PeriodArgs;
use dashpot_cli::{Between, DiffArgs};
use dashpot_engine::Duration;
use dashpot_observe::diff::{Comparison, Diff, Side, Slow, Usual};
use dashpot_observe::{Dimension, FinishedIo, Predicates};
use dashpot_output::screen::room;
use dashpot_output::{HtmlFile, print, print_json, save, usage};
use dashpot_report::diff::DiffReport;
use dashpot_rules::ParseError;
use dashpot_sources::{Recorded, check_dimensions};

use super::out::{Format, Out, Stdout};

pub(crate) fn diff(args: &DiffArgs) -> anyhow::Result<()> {
    check(args);
    let file = HtmlFile::begin(args.file.html.as_deref(), "a recording")?;
    let sides = Sides::open(args)?;
    let report = DiffReport {
        comparison: sides.compare(args.slow.as_ref())?,
        slow: args.slow.as_ref().map(Predicates::phrase),
        room: room(false),
    };
    match (args.json, args.csv) {
        (true, _) => print_json(&report.comparison)?,
        (false, true) => Stdout::new(Format::Csv).put(&vec![Box::new(report.clone())])?,
        (false, false) => print(&report.to_string())?,
    }
    save(file, &report.to_string(), &[report.comparison])
}

fn check(args: &DiffArgs) {
    let has_period = args.during.is_some() || args.against.is_some();
    if !has_period && args.baseline.is_none() && args.slow.is_none() {
        usage(&ParseError::new(
            "there is nothing to compare with: add --during FROM..TO, --baseline REC or --slow FACTS",
        ));
    }
}

/// The I/Os to compare.
struct Sides {
    here: Recorded,
    there: Vec<Recorded>,
    predicates: Predicates,
}

impl Sides {
    fn open(args: &DiffArgs) -> anyhow::Result<Sides> {
        let whole = open(&args.recording, args)?;
        let here = part(&whole, args.during)?;
        let there = match (&args.baseline, args.against, &args.slow) {
            (_, _, Some(_)) => Vec::new(),
            (Some(baseline), against, None) => {
                vec![part(&open(baseline, args)?, against)?]
            }
            (None, Some(against), None) => vec![part(&whole, Some(against))?],
            (None, None, None) => whole.without(&here),
        };
        let predicates = args.predicates.clone().unwrap_or_default();
        let slow = args.slow.iter().flat_map(Predicates::dimensions);
        let asked: Vec<Dimension> = predicates.dimensions().chain(slow).collect();
        if let Err(error) = check_dimensions(asked.into_iter(), here.knows()) {
            usage(&error);
        }
        std::iter::once(&here).chain(&there).for_each(|part| {
            part.tell_gaps(false);
            part.tell_stacked();
            part.tell_unplaced();
        });
        Ok(Sides {
            here,
            there,
            predicates,
        })
    }

    fn compare(&self, slow: Option<&Predicates>) -> anyhow::Result<Comparison> {
        let slow = match slow {
            Some(slow) => Slow::Where(slow.clone()),
            None => Slow::Beyond(self.usual()?),
        };
        let has_other = matches!(slow, Slow::Beyond(_));
        let mut diff = Diff::new(slow, self.here.knows());
        self.here.each_recorded(|one| {
            match self.takes(&self.here, &one.io) {
                true if one.is_in_flight => diff.add_in_flight(&one.io),
                true => diff.add(Side::Here, &one.io),
                false => {}
            }
            Ok(())
        })?;
        for part in &self.there {
            self.each(part, |io| diff.add(Side::There, io))?;
        }
        // The slow I/Os are known by now. A second pass finds the I/Os that were in flight when the slow I/Os
        // were issued.
        self.each(&self.here, |io| diff.look_beside(Side::Here, io))?;
        for part in &self.there {
            self.each(part, |io| diff.look_beside(Side::There, io))?;
        }
        let lasted = |parts: &[Recorded]| {
            parts
                .iter()
                .fold(Duration::ZERO, |sum, part| sum + part.lasted())
        };
        Ok(diff.compare(self.here.lasted(), has_other.then(|| lasted(&self.there))))
    }

    fn usual(&self) -> anyhow::Result<Usual> {
        let mut usual = Usual::default();
        for part in &self.there {
            self.each(part, |io| usual.add(io))?;
        }
        Ok(usual)
    }

    /// Whether an I/O is compared: it meets the conditions, and is not also an I/O of the disk beneath.
    fn takes(&self, part: &Recorded, io: &FinishedIo) -> bool {
        self.predicates.select(io) && (self.predicates.names_a_device() || part.sums(io))
    }

    fn each(&self, part: &Recorded, mut of: impl FnMut(&FinishedIo)) -> anyhow::Result<()> {
        part.each(|io| {
            if self.takes(part, io) {
                of(io);
            }
        })
    }
}

/// Opens a recording at the layer that the user asks for. By default, this is the layer of disks or, if the
/// recording has no disks, of volumes.
fn open(recording: &Path, args: &DiffArgs) -> anyhow::Result<Recorded> {
    let whole = Recorded::open(recording, &args.devices)?;
    let whole = match args.layer {
        Some(layer) => whole.on(layer),
        None => {
            whole.tell_kernels(&[]);
            whole.on_disks_or_volumes()
        }
    };
    Ok(whole.unwrap_or_else(|error| usage(&error)))
}

/// The part of a recording between two moments, or all of it.
fn part(whole: &Recorded, between: Option<Between>) -> anyhow::Result<Recorded> {
    whole.part(&PeriodArgs {
        from: between.map(|between| between.from),
        to: between.map(|between| between.to),
        ..PeriodArgs::default()
    })
}
