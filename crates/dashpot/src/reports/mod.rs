//! The reports of the command line. This module turns the user's options into a report, and shows it
//! over a daemon, the kernel's disks or a simulation.

mod amplification;
mod asked;
mod diff;
mod flat;
mod heatmap;
mod iolatency;
mod iostat;
mod notes;
mod observe;
mod out;
mod quantize;
mod showing;
mod snoop;
mod stat;
mod stats;
mod txgs;
mod zpool_iostat;

use std::path::{Path, PathBuf};

use anyhow::bail;
use dashpot_cli::reports::{DeviceArgs, PeriodArgs, ReportKind};
use dashpot_commands::record::found;
use dashpot_export::complain;
use dashpot_output::{HtmlFile, usage};
use dashpot_rules::{ApiAddress, ParseError};
use dashpot_sources::{Recorded, Target, watch_recorded};

use self::asked::refuse;

pub(super) use asked::{Format, Over, ReportRequest};
pub(super) use diff::diff;
pub(super) use out::{Kept, Stdout};
pub(super) use showing::{Files, Showing};
pub(super) use stats::stats;

/// The report that the user's options describe.
pub(super) fn asked(kind: &ReportKind) -> &dyn ReportRequest {
    match kind {
        ReportKind::Iolatency(args) => args,
        ReportKind::Iostat(args) => args,
        ReportKind::Quantize(args) => args,
        ReportKind::Heatmap(args) => args,
        ReportKind::Snoop(args) => args,
        ReportKind::Stat(args) => args,
        ReportKind::Observe(args) => args,
        ReportKind::Amplification(args) => args,
        ReportKind::ZpoolIostat(args) => args,
        ReportKind::Txgs(args) => args,
    }
}

/// The files into which dashpot also writes a report over this source.
pub(super) fn files(kind: &ReportKind, source: &'static str) -> anyhow::Result<Files> {
    let asked = asked(kind);
    Ok(Files {
        svg: asked.svg()?,
        html: HtmlFile::begin(asked.output().file.html.as_deref(), source)?,
    })
}

/// Whether a report is about a recording that the user has named.
pub(super) fn is_recorded(kind: &ReportKind) -> bool {
    let period = asked(kind).period();
    period.is_some_and(|period| period.recording.is_some())
}

/// Shows a report over live disks.
pub(super) fn show(api: Option<&ApiAddress>, kind: &ReportKind) -> anyhow::Result<()> {
    let asked = asked(kind);
    // Refuse mistakes in the options before asking a daemon.
    refuse(asked.report(Over::Simulation));
    if let Some(period) = asked.period()
        && let Some(recording) = &period.recording
    {
        let DeviceArgs {
            devices: names,
            kernel,
        } = refuse(asked.devices());
        if kernel {
            usage(&ParseError::new(
                "--kernel cannot be used with --in: the recording says whose disks it has",
            ));
        }
        return show_recorded(kind, period, recording, &names);
    }
    let target = asked.target(api)?;
    if let Some(period) = asked.period().filter(|period| period.is_past())
        && let Some(recording) = recording_of(&target, period)?
    {
        let question = refuse(asked.report(Over::Simulation)).question();
        let layer = question.layers().first().copied();
        let names = target.named(layer.unwrap_or_default());
        return show_recorded(kind, period, &recording, &names);
    }
    let report = refuse(asked.filtered(Over::Live(&target)));
    let files = files(kind, "live disks")?;
    refuse(target.check(&report.question()));
    let mut source = asked.watch(&target, &*report)?;
    Showing::new(report, Stdout::new(asked.format()), files).run(&mut *source)
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
    kind: &ReportKind,
    period: &PeriodArgs,
    recording: &Path,
    names: &[String],
) -> anyhow::Result<()> {
    let asked = asked(kind);
    let question = refuse(asked.report(Over::Simulation)).question();
    let recorded = Recorded::open(recording, names)?.part(period)?;
    let layers = asked.layers(question.layers(), &recorded);
    let parts = refuse(recorded.on_each(&layers));
    let first = parts.first().unwrap_or(&recorded);
    let report = refuse(asked.filtered(Over::Recorded(first)));
    let files = files(kind, "a recording")?;
    let question = report.question();
    parts.iter().for_each(|part| refuse(part.check(&question)));
    recorded.tell_kernels(&layers);
    let mut source = watch_recorded(&parts, &question, &report.schedule())?;
    Showing::new(report, Stdout::new(asked.format()), files).run(&mut *source)
}
