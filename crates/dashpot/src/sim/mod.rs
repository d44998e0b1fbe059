//! `sim`: simulates labs under the virtual clock, one after another.

mod args;
mod charts;
mod events;
mod outcome;
mod pieces;
mod progress;
mod reports;
mod run;
mod series;
mod source;
mod stage;
mod summary;
mod swarm;
mod tap;
mod tunables;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use dashpot_cli::Speed;
use dashpot_commands::page::play;
use dashpot_commands::{INTERRUPTED, read_scenario, stop_on_signals};
use dashpot_export::complain;
use dashpot_lab::{SimLab, Staged, check_samples, load_sim_lab, load_sim_lab_with};
use dashpot_output::{print_drawn, print_json, usage};
use dashpot_rules::ParseError;
use dashpot_sim::Simulation;
use dashpot_sim::scenario::Scenario;

use self::args::ScenarioWords;
pub(crate) use self::args::{ReportWords, SimArgs};
use self::events::EventsFile;
use self::outcome::Outcome;
use self::run::run;

/// Simulates labs until their end. After Ctrl-C, shows the results so far.
pub(super) fn sim(args: &SimArgs) -> anyhow::Result<ExitCode> {
    if args.tunables {
        tunables::list(args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(seeds) = args.swarm {
        return swarm::swarm(args.seed.unwrap_or(1), seeds);
    }
    check(args).unwrap_or_else(|why| usage(&why));
    // Read all labs before the first simulation, which may take long.
    let staged = staged(args)?;
    let simulated = args.labs.iter();
    let simulated = simulated.map(|lab| load(lab, staged.as_ref(), args));
    let simulated = simulated.collect::<Result<Vec<_>, ParseError>>()?;
    for warning in simulated.iter().flat_map(SimLab::warnings) {
        complain(format_args!("dashpot: {warning}"));
    }
    args.chart.as_deref().map_or(Ok(()), charts::check)?;
    let interrupted = stop_on_signals()?;
    if args.page {
        return page(args, simulated, &interrupted);
    }
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
    if interrupted.load(Ordering::Relaxed) {
        Ok(ExitCode::from(INTERRUPTED))
    } else {
        Ok(ExitCode::SUCCESS)
    }
}

/// Refuses options that make no sense together.
fn check(args: &SimArgs) -> Result<(), ParseError> {
    args.page_at.check(args.page, false)?;
    let has_file = |report: &ReportWords| {
        let asked = report.kind.asked();
        asked.svg().is_some() || asked.shared().output.file.html.is_some()
    };
    let is_alone = args.labs.len() <= 1;
    if args.events.is_some() && !is_alone {
        return Err(ParseError::new("--events takes one lab: name only one"));
    }
    args.reports.iter().try_for_each(reports::check)?;
    if !is_alone && args.reports.iter().any(has_file) {
        return Err(ParseError::new(
            "--svg and --html take one lab: name only one",
        ));
    }
    Ok(())
}

/// Shows one lab on the page while it is simulated.
fn page(
    args: &SimArgs,
    simulated: Vec<SimLab>,
    interrupted: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    let ([lab], Some(simulated)) = (&args.labs[..], simulated.into_iter().next()) else {
        usage(&ParseError::new("--page takes one lab: name only one"));
    };
    let speed = args.speed.unwrap_or(Speed::Times(1));
    play(lab, simulated.begin()?, &args.page_at, speed, interrupted)?;
    Ok(ExitCode::SUCCESS)
}

/// The scenario of the command line.
fn staged(args: &SimArgs) -> anyhow::Result<Option<Staged>> {
    let Some(ScenarioWords { name, disks }) = &args.scenario else {
        return Ok(None);
    };
    Ok(Some(Staged {
        name: name.clone(),
        scenario: read_scenario(name)?,
        disks: disks.clone(),
        lasts: args.lasts,
    }))
}

/// Reads a lab. Options of the command line override the lab's settings.
fn load(lab: &Path, staged: Option<&Staged>, args: &SimArgs) -> Result<SimLab, ParseError> {
    let mut simulated = match staged {
        Some(staged) => load_sim_lab_with(lab, staged)?,
        None => load_sim_lab(lab)?,
    };
    let scenario = &simulated.scenario;
    let lasts = args.lasts.unwrap_or(scenario.lasts);
    let warmup = args.warmup.unwrap_or(scenario.warmup);
    if warmup >= lasts {
        return Err(ParseError::new(format!(
            "{}: a warm-up of {warmup} leaves nothing of {lasts}: make --for longer, or --warmup shorter",
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
