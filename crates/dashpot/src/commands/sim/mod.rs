//! `sim`: labs under the virtual clock, one after another.

mod charts;
mod events;
mod gathered;
pub(super) mod look;
mod progress;
mod reports;
mod run;
mod summary;
mod swarm;
pub(super) mod tally;
mod tunables;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use dashpot_sim::scenario::Scenario;
use serde::Serialize;
use serde_json::Value;

use self::events::EventsFile;
use self::run::{Run, run};
use self::summary::Summary;
use super::load::stop_on_signals;
use super::output::{print_drawn, print_json, usage};
use crate::cli::{ReportKind, ReportWords, SimArgs};
use crate::lab::{check_samples, load_sim_lab};
use crate::spec::ParseError;

/// Simulates labs until their end or Ctrl-C, which shows what there is so far.
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
    // All of them before the first, which may take long.
    let scenarios = args.labs.iter().map(|lab| scenario(lab, args));
    let scenarios = scenarios.collect::<Result<Vec<_>, ParseError>>()?;
    args.chart.as_deref().map_or(Ok(()), charts::check)?;
    let interrupted = stop_on_signals()?;
    let mut results = Vec::new();
    for (lab, scenario) in args.labs.iter().zip(scenarios) {
        let result = simulate(lab, scenario, args, &interrupted);
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

/// What came of a lab. JSON: the summary's, and `"reports": [{"report": "txgs", "output": […]}]`.
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

fn scenario(lab: &Path, args: &SimArgs) -> Result<Scenario, ParseError> {
    let scenario = load_sim_lab(lab)?.scenario;
    let lasts = args.lasts.unwrap_or(scenario.lasts);
    if scenario.warmup >= lasts {
        return Err(ParseError::new(format!(
            "{}: the warm-up of {} leaves nothing of {lasts}: make --for longer",
            lab.display(),
            scenario.warmup
        )));
    }
    // Only pictures show samples.
    let sample = || {
        scenario
            .sample_every
            .unwrap_or(charts::sample_interval(lasts))
    };
    let scenario = Scenario {
        seed: args.seed.unwrap_or(scenario.seed),
        check: args.check,
        sample_every: args.chart.is_some().then(sample),
        lasts,
        ..scenario
    };
    let refused = |why| ParseError::new(format!("{}: [sim] sample: {why}", lab.display()));
    check_samples(&scenario).map_err(refused)?;
    Ok(scenario)
}

fn simulate<'a>(
    lab: &Path,
    scenario: Scenario,
    args: &'a SimArgs,
    interrupted: &Arc<AtomicBool>,
) -> anyhow::Result<Outcome<'a>> {
    let mut events = args.events.as_deref().map(EventsFile::create).transpose()?;
    let run = run(scenario, &args.reports, events.as_mut(), interrupted)?;
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

    /// The summary, or the reports that were asked for; with headings where there are several.
    fn text(&self, args: &SimArgs, first: bool) -> String {
        let gap = if first { "" } else { "\n" };
        if self.reports.is_empty() {
            return format!("{gap}{}", self.summary.text());
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

/// What a shell says of a program that SIGINT has ended.
const INTERRUPTED: u8 = 130;
