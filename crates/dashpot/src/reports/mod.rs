//! The reports of the command line. This module shows a report over a daemon, the kernel's disks or a recording.

mod diff;
mod flat;
mod notes;
mod observe;
mod out;
mod showing;
mod stats;

use std::path::{Path, PathBuf};

use anyhow::bail;
use dashpot_cli::reports::PeriodArgs;
use dashpot_commands::record::found;
use dashpot_export::complain;
use dashpot_observe::Subject;
use dashpot_output::{Draft, HtmlFile, usage};
use dashpot_report::ReportKind;
use dashpot_report::asked::{Devices, Over, ReportRequest};
use dashpot_rules::{ApiAddress, ParseError};
use dashpot_sources::{Recorded, Target, watch_recorded};

pub(super) use diff::diff;
pub(super) use out::{Format, Kept, Stdout};
pub(super) use showing::{Files, Showing};
pub(super) use stats::stats;

/// The files into which dashpot also writes a report over this source.
pub(super) fn files(asked: &dyn ReportRequest, source: &'static str) -> anyhow::Result<Files> {
    let draft = |place| Draft::create("--svg", place);
    Ok(Files {
        svg: asked.svg().map(draft).transpose()?,
        html: HtmlFile::begin(asked.shared().output.file.html.as_deref(), source)?,
    })
}

/// Whether a report is about a recording that the user has named.
pub(super) fn is_recorded(kind: &ReportKind) -> bool {
    let period = kind.asked().shared().period;
    period.is_some_and(|period| period.recording.is_some())
}

/// Shows a report over live disks.
pub(super) fn show(api: Option<&ApiAddress>, kind: &ReportKind) -> anyhow::Result<()> {
    let asked = kind.asked();
    // Refuse mistakes in the options before asking a daemon.
    let question = refuse(asked.report(&Over::Simulation)).question();
    let shared = asked.shared();
    let devices = refuse(shared.devices);
    if let Some(period) = shared.period
        && let Some(recording) = &period.recording
    {
        if devices.kernel {
            usage(&ParseError::new(
                "--kernel cannot be used with --in: the recording says whose disks it has",
            ));
        }
        return show_recorded(asked, period, recording, &devices.devices);
    }
    let target = match kind {
        ReportKind::Observe(_) => observe::target(devices)?,
        _ if question.subject == Subject::Pools => Target::of_pools(api, &devices.devices)?,
        _ => Target::find(api, &devices)?,
    };
    let layer = question.layers().first().copied().unwrap_or_default();
    if let Some(period) = shared.period.filter(|period| period.is_past())
        && let Some(recording) = recording_of(&target, period)?
    {
        return show_recorded(asked, period, &recording, &target.named(layer));
    }
    let over = Over::Live(Devices {
        knows: target.knows(),
        layer,
        names: target.names(layer),
    });
    let report = refuse(asked.filtered(&over));
    let files = files(asked, "live disks")?;
    let question = report.question();
    refuse(target.check(&question));
    let mut source = match kind {
        ReportKind::Observe(args) => observe::watch(args, &target, &*report)?,
        _ => target.watch(&question, &report.schedule())?,
    };
    Showing::new(report, Stdout::new(Format::of(asked)), files).run(&mut *source)
}

/// The recording that another process is making of live disks, if there is one. Without such a recording,
/// `--from` and `--to` fail, because a daemon's memory cannot answer them.
fn recording_of(target: &Target, period: &PeriodArgs) -> anyhow::Result<Option<PathBuf>> {
    let found = found(target);
    if let Some(recording) = &found {
        complain(format_args!("From {}.", recording.display()));
    } else if period.last.is_none() {
        bail!(
            "--from and --to: nothing records these disks: name a recording with --in REC, or begin one \
             with 'serve --record REC' or 'observe --record REC'"
        );
    }
    Ok(found)
}

/// Shows a report over a recording.
fn show_recorded(
    asked: &dyn ReportRequest,
    period: &PeriodArgs,
    recording: &Path,
    names: &[String],
) -> anyhow::Result<()> {
    let question = refuse(asked.report(&Over::Simulation)).question();
    let recorded = Recorded::open(recording, names)?.part(period)?;
    let layers = asked.layers(question.layers(), &recorded.layers());
    let parts = refuse(recorded.on_each(&layers));
    let first = parts.first().unwrap_or(&recorded);
    let over = Over::Recorded(Devices {
        knows: first.knows(),
        layer: first.layer(),
        names: first.names().to_vec(),
    });
    let report = refuse(asked.filtered(&over));
    let files = files(asked, "a recording")?;
    let question = report.question();
    parts.iter().for_each(|part| refuse(part.check(&question)));
    recorded.tell_kernels(&layers);
    let mut source = watch_recorded(&parts, &question, &report.schedule())?;
    Showing::new(report, Stdout::new(Format::of(asked)), files).run(&mut *source)
}

/// Returns the parsed value, or ends the program with the parser's error.
fn refuse<T>(parsed: Result<T, ParseError>) -> T {
    parsed.unwrap_or_else(|error| usage(&error))
}
