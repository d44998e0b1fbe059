//! Reports over virtual time. Each shows the same as over a daemon, except the first report since
//! the start: there was no I/O before the start.

use anyhow::Context;
use dashpot_engine::{Duration, Event, Instant};
use dashpot_export::complain;
use dashpot_observe::Schedule;
use dashpot_report::report::{Pages, Report};
use dashpot_report::surface::Surface;
use dashpot_report::txgs::TxgsReport;
use dashpot_report::zpool_iostat::{View, ZpoolIostatReport};
use dashpot_rules::ParseError;
use dashpot_sim::Simulation;
use serde_json::Value;

use super::events::Names;
use super::source::{Chosen, SimSource};
use crate::cli::{DeviceArgs, ReportKind, ReportWords, ZpoolIostatArgs};
use crate::commands::draft::Draft;
use crate::commands::report::write_svg;
use crate::commands::screen::surface_of_simulation;
use crate::commands::{heatmap, iolatency, iostat, observe, quantize, snoop};

/// A running report, and its output so far.
pub(super) struct Running<'a> {
    words: &'a str,
    report: Box<dyn Report>,
    source: SimSource,
    svg: Option<Draft>,
    surface: Surface,
    pub(super) text: String,
    pub(super) json: Vec<Value>,
}

impl<'a> Running<'a> {
    /// Begins a report now.
    pub(super) fn begin(
        words: &'a ReportWords,
        simulation: &Simulation,
    ) -> anyhow::Result<Running<'a>> {
        let refused = || format!("--report '{}'", words.words);
        let (report, chosen) = parse(&words.kind).with_context(refused)?;
        let schedule = without_past(report.schedule());
        let source = SimSource::new(report.question(), &schedule, chosen, simulation);
        let mut running = Running {
            words: &words.words,
            source: source.with_context(refused)?,
            svg: match &words.kind {
                ReportKind::Heatmap { args, .. } => heatmap::svg_draft(args)?,
                _ => None,
            },
            report,
            surface: surface_of_simulation(),
            text: String::new(),
            json: Vec::new(),
        };
        let pages = running.report.open(&running.surface);
        running.keep(&pages)?;
        Ok(running)
    }

    pub(super) fn words(&self) -> &'a str {
        self.words
    }

    /// Whether it needs events.
    pub(super) fn wants_events(&self) -> bool {
        self.source.wants_events() || self.report.wanted().is_some()
    }

    /// Takes the event of a zio that has finished.
    pub(super) fn take(&mut self, event: &Event, names: &Names) {
        if let Some(wanted) = self.report.wanted()
            && let Some(zio) = self.source.finished(&wanted, event, names)
        {
            self.report.take_zio(zio);
        }
        self.source.take(event);
    }

    /// When it looks next.
    pub(super) fn next(&self) -> Instant {
        self.source.due()
    }

    /// Looks if an interval is due to end, or if this is the end.
    pub(super) fn go_on(&mut self, simulation: &Simulation, over: bool) -> anyhow::Result<()> {
        let Some(seen) = self.source.look(simulation, over)? else {
            return Ok(());
        };
        let pages = self.report.take(&seen, &self.surface);
        self.keep(&pages)?;
        if let Some(line) = seen.length().line().filter(|_| !self.report.tells().length) {
            complain(format_args!("{}: {line}", self.words));
        }
        Ok(())
    }

    /// Adds the output of the report's end.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        if let (Some(draft), Some(svg)) = (self.svg.take(), self.report.svg()) {
            write_svg(draft, &svg)?;
        }
        let pages = self.report.close(true, &self.surface);
        self.keep(&pages)
    }

    fn keep(&mut self, pages: &Pages) -> anyhow::Result<()> {
        for page in pages {
            self.text += &page.to_string();
            let value = page.json().map(serde_json::to_value).transpose()?;
            self.json.extend(value);
        }
        Ok(())
    }
}

/// The schedule without the interval since the start, which a simulation does not have.
fn without_past(schedule: Schedule) -> Schedule {
    match schedule.since_start {
        true => Schedule {
            count: schedule.count.map(|count| count + 1),
            since_start: false,
            ..schedule
        },
        false => schedule,
    }
}

/// The report for words of the command line, and the devices or pools that it is about.
fn parse(kind: &ReportKind) -> Result<(Box<dyn Report>, Chosen), ParseError> {
    Ok(match kind {
        ReportKind::Iolatency { args, layer } => (
            Box::new(iolatency::report(args, *layer)),
            devices(&args.device),
        ),
        ReportKind::Iostat { args, layer } => (
            Box::new(iostat::report(args, *layer)?),
            devices(&args.split()?.0),
        ),
        ReportKind::Quantize(args) => (Box::new(quantize::report(args)), devices(&args.device)),
        ReportKind::Heatmap { args, layer } => (
            Box::new(heatmap::report(args, *layer)?),
            devices(&args.device),
        ),
        ReportKind::Snoop { args, layer } => (
            Box::new(snoop::report(args, *layer)?),
            devices(&args.device),
        ),
        ReportKind::Observe(args) => (Box::new(observe::report(args)?), named(args.split()?.0)),
        ReportKind::ZpoolIostat(args) => (
            Box::new(zpool_iostat(args)?),
            named(args.pools_and_pace()?.0),
        ),
        ReportKind::Txgs(args) => {
            let report = TxgsReport { wide: args.wide };
            (Box::new(report), named(args.pool.as_slice()))
        }
    })
}

fn devices(args: &DeviceArgs) -> Chosen {
    Chosen {
        names: args.devices.clone(),
        kernel: args.kernel,
    }
}

fn named(names: &[String]) -> Chosen {
    Chosen {
        names: names.to_vec(),
        kernel: false,
    }
}

fn zpool_iostat(args: &ZpoolIostatArgs) -> Result<ZpoolIostatReport, ParseError> {
    let (_, pace) = args.pools_and_pace()?;
    Ok(ZpoolIostatReport {
        // Without an interval there is one report about everything.
        schedule: match pace.interval {
            Some(interval) => Schedule::every(interval, pace.count),
            None => Schedule::once(Duration::MAX),
        },
        view: match (args.waits, args.sizes) {
            (true, _) => View::Latencies,
            (_, true) => View::Sizes,
            _ => View::Lines {
                latency: args.latency,
                queues: args.queues,
            },
        },
        wide: args.wide,
        titled: false,
    })
}
