//! `sim`: labs under the virtual clock, one after another.

mod charts;
mod events;
pub(super) mod look;
mod progress;
mod reports;
mod run;
mod source;
mod summary;
mod swarm;
pub(super) mod tally;
mod tunables;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use dashpot_export::complain;
use dashpot_rules::ParseError;
use dashpot_sim::Simulation;
use dashpot_sim::scenario::Scenario;
use serde::Serialize;
use serde_json::Value;

use self::events::EventsFile;
use self::run::{Run, run};
use self::summary::Summary;
use super::load::stop_on_signals;
use super::output::{print_drawn, print_json, usage};
use super::screen::room;
use crate::cli::{ReportKind, ReportWords, SimArgs};
use crate::lab::{SimLab, check_samples, load_sim_lab};

/// Simulates labs until their end. Ctrl-C shows the results so far.
pub(super) fn sim(args: &SimArgs) -> anyhow::Result<ExitCode> {
    if args.tunables {
        tunables::list(args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(seeds) = args.swarm {
        return swarm::swarm(args.seed.unwrap_or(1), seeds);
    }
    if args.events.is_some() && args.labs.len() > 1 {
        usage(&ParseError::new("--events is of one lab: name one"));
    }
    let has_svg = |report: &ReportWords| match &report.kind {
        ReportKind::Heatmap { args, .. } => args.svg.is_some(),
        _ => false,
    };
    if args.labs.len() > 1 && args.reports.iter().any(has_svg) {
        usage(&ParseError::new("heatmap --svg is of one lab: name one"));
    }
    // Read all labs before the first simulation, which may take long.
    let simulated = args.labs.iter().map(|lab| load(lab, args));
    let simulated = simulated.collect::<Result<Vec<_>, ParseError>>()?;
    for warning in simulated.iter().flat_map(SimLab::warnings) {
        complain(format_args!("dashpot: {warning}"));
    }
    args.chart.as_deref().map_or(Ok(()), charts::check)?;
    let interrupted = stop_on_signals()?;
    let mut results = Vec::new();
    for (lab, simulated) in args.labs.iter().zip(simulated) {
        let result = simulate(lab, simulated.begin()?, args, &interrupted);
        let result = result.with_context(|| lab.display().to_string())?;
        if !args.json {
            print_drawn(&result.text(args, results.is_empty()))?;
        }
        results.push(result);
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    if args.json {
        print_json(&results)?;
    } else if args.reports.is_empty() {
        print_drawn(&charts::terminal(&results))?;
    }
    if let Some(directory) = &args.chart {
        charts::write(directory, &results)?;
    }
    match interrupted.load(Ordering::Relaxed) {
        true => Ok(ExitCode::from(INTERRUPTED)),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// The result of a lab. JSON: the summary's, and `"reports": [{"report": "txgs", "output": […]}]`.
#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(flatten)]
    summary: Summary,
    reports: Vec<Output<'a>>,
    #[serde(skip)]
    series: charts::Series,
}

#[derive(Serialize)]
struct Output<'a> {
    report: &'a str,
    output: Vec<Value>,
    #[serde(skip)]
    text: String,
}

/// Reads a lab. Options of the command line override its settings.
fn load(lab: &Path, args: &SimArgs) -> Result<SimLab, ParseError> {
    let mut simulated = load_sim_lab(lab)?;
    let scenario = &simulated.scenario;
    let lasts = args.lasts.unwrap_or(scenario.lasts);
    let warmup = args.warmup.unwrap_or(scenario.warmup);
    if warmup >= lasts {
        return Err(ParseError::new(format!(
            "{}: a warm-up of {warmup} leaves nothing of {lasts}: make --for longer, or the warm-up \
             shorter, --warmup 0s",
            lab.display(),
        )));
    }
    // Samples are only needed for pictures.
    let sample = || {
        scenario
            .sample_every
            .unwrap_or(charts::sample_interval(lasts))
    };
    simulated.scenario = Scenario {
        seed: args.seed.unwrap_or(scenario.seed),
        check: args.check,
        sample_every: args.chart.is_some().then(sample),
        lasts,
        warmup,
        ..simulated.scenario
    };
    let refused = |why| ParseError::new(format!("{}: [sim] sample: {why}", lab.display()));
    check_samples(&simulated.scenario).map_err(refused)?;
    Ok(simulated)
}

fn simulate<'a>(
    lab: &Path,
    simulation: Simulation,
    args: &'a SimArgs,
    interrupted: &Arc<AtomicBool>,
) -> anyhow::Result<Outcome<'a>> {
    let mut events = args.events.as_deref().map(EventsFile::create).transpose()?;
    let run = run(simulation, &args.reports, events.as_mut(), interrupted)?;
    if let Some(events) = events {
        events.publish()?;
    }
    let refused = run
        .simulation
        .answers()
        .iter()
        .find(|answer| answer.1.is_err());
    if let Some((_, Err(error))) = refused {
        bail!("a command was refused: {error}");
    }
    Ok(Outcome::of(lab, run))
}

impl<'a> Outcome<'a> {
    fn of(lab: &Path, run: Run<'a>) -> Outcome<'a> {
        let name = lab.file_stem().unwrap_or(lab.as_os_str());
        Outcome {
            summary: Summary::of(&name.to_string_lossy(), &run),
            series: charts::Series::of(&run.simulation),
            reports: run
                .reports
                .into_iter()
                .map(|report| Output {
                    report: report.words(),
                    text: report.text,
                    output: report.json,
                })
                .collect(),
        }
    }

    /// The summary, or the reports of `--report`, with headings if there are several.
    fn text(&self, args: &SimArgs, first: bool) -> String {
        let gap = if first { "" } else { "\n" };
        if self.reports.is_empty() {
            return format!("{gap}{}", self.summary.text(room(false)));
        }
        let several = args.labs.len() * self.reports.len() > 1;
        let mut text = gap.to_owned();
        for Output {
            report, text: own, ..
        } in &self.reports
        {
            if several {
                text += &format!("--- {}: {report}\n", self.summary.lab);
            }
            text += own;
        }
        text
    }
}

/// The exit status that a shell gives to a program that SIGINT has ended.
const INTERRUPTED: u8 = 130;
