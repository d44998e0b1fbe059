//! The reports of the command line: this turns the user's options into a report, and shows it over a
//! daemon, the kernel's disks or a simulation.

mod amplification;
mod asked;
mod beside;
mod heatmap;
mod iolatency;
mod iostat;
mod observe;
mod out;
mod quantize;
mod showing;
mod snoop;
mod stat;
mod txgs;
mod zpool_iostat;

use dashpot_rules::ApiAddress;

use std::path::Path;

use self::asked::refuse;
use self::out::Stdout;
use crate::cli::reports::{PeriodArgs, ReportKind};
use crate::sources::{Recorded, watch_recorded};

pub(super) use asked::{Asked, Format, Over};
pub(super) use out::Kept;
pub(super) use showing::Showing;

/// The report that the user's options describe.
pub(super) fn asked(kind: &ReportKind) -> &dyn Asked {
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

/// Shows a report over live disks.
pub(super) fn show(api: Option<&ApiAddress>, kind: &ReportKind) -> anyhow::Result<()> {
    let asked = asked(kind);
    // The parser refuses mistakes in the options before it asks a daemon.
    refuse(asked.report(Over::Simulation));
    if let Some(period) = asked.period()
        && let Some(recording) = &period.recording
    {
        return show_recorded(asked, period, recording);
    }
    let target = asked.target(api)?;
    let report = refuse(asked.filtered(Over::Live(&target)));
    let svg = asked.svg()?;
    refuse(target.check(&report.question()));
    let mut source = asked.watch(&target, &*report)?;
    Showing::new(report, Stdout::new(asked.format()), svg).run(&mut *source)
}

/// Shows a report over a recording.
fn show_recorded(asked: &dyn Asked, period: &PeriodArgs, recording: &Path) -> anyhow::Result<()> {
    let names = refuse(asked.devices()).devices;
    let recorded = Recorded::open(recording, &names)?.part(period)?;
    let report = refuse(asked.filtered(Over::Recorded(&recorded)));
    let svg = asked.svg()?;
    refuse(recorded.check(&report.question()));
    let mut source = watch_recorded(&recorded, &report.question(), &report.schedule())?;
    Showing::new(report, Stdout::new(asked.format()), svg).run(&mut *source)
}
