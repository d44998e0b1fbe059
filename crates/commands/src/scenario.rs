//! `scenario`: runs scenarios in a daemon, and lists and shows them.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, bail};
use dashpot_api::{Client, ClientError, Lease, RunScenario, ScenarioRun, ScenarioState};
use dashpot_cli::{
    ScenarioCommand, ScenarioListArgs, ScenarioRunArgs, ScenarioShowArgs, ScenarioStopArgs,
};
use dashpot_export::complain;
use dashpot_output::screen::room;
use dashpot_output::{print, print_json};
use dashpot_rules::scenario::{BUILT_IN, BuiltIn, Scenario, parse_scenario};
use dashpot_rules::{ParseError, nearest, short_time};
use dashpot_text::table::{Column, Field, table_of};
use serde::Serialize;

use crate::child::{passed_on, run_child};

/// The scenarios that there are.
#[derive(Serialize)]
struct Listed {
    built_in: Vec<Known>,
    /// Those that run, and those that ended last; none if no daemon answers.
    runs: Vec<ScenarioRun>,
}

/// A scenario that dashpot comes with.
#[derive(Serialize)]
struct Known {
    name: &'static str,
    about: String,
}

/// Does the command's work. `client` finds the daemon.
pub fn scenario(
    client: impl FnOnce() -> anyhow::Result<Client>,
    command: &ScenarioCommand,
) -> anyhow::Result<ExitCode> {
    match command {
        ScenarioCommand::Run(args) => return run(&client()?, args),
        ScenarioCommand::List(args) => list(client().ok().as_ref(), args)?,
        ScenarioCommand::Show(args) => show(args)?,
        ScenarioCommand::Stop(args) => stop(&client()?, args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run(client: &Client, args: &ScenarioRunArgs) -> anyhow::Result<ExitCode> {
    let text = read(&args.scenario)?;
    let request = RunScenario {
        name: args.scenario.clone(),
        scenario: Some(text),
        disks: args.disks.clone(),
        speed: args.speed.clone(),
    };
    // If this process is killed, the connection of the lease ends, and so does the scenario.
    let (begun, mut lease) = client.run_scenario(&request)?;
    if args.command.is_empty() {
        if !args.json {
            let disks = begun.disks.join(", ");
            print(&format!("{} on {disks}: {}\n", begun.name, begun.about))?;
        }
        let ended = match client.block_on(until_the_end(&mut lease))? {
            Some(ended) => ended,
            None => stop_held(client, &begun, &mut lease)?,
        };
        tell(&ended, args.json)?;
        return match ended.state {
            ScenarioState::Done => Ok(ExitCode::SUCCESS),
            _ => Ok(ExitCode::FAILURE),
        };
    }
    let status = client.block_on(run_child(&args.command))?;
    let ended = stop_held(client, &begun, &mut lease)?;
    if args.json {
        print_json(&ended)?;
    }
    if let Some(error) = &ended.error {
        complain(format_args!("dashpot: the scenario failed: {error}"));
        return Ok(ExitCode::from(status.max(1)));
    }
    Ok(status.into())
}

/// Stops the scenario that a lease holds, and waits until it is undone.
fn stop_held(
    client: &Client,
    begun: &ScenarioRun,
    lease: &mut Lease,
) -> Result<ScenarioRun, ClientError> {
    // This fails if the scenario has ended by itself.
    let _ = client.stop_scenario(&begun.disks[0], Some(begun.id));
    client.block_on(lease.last())
}

/// Waits until the scenario has ended. `None` if a signal comes first.
async fn until_the_end(lease: &mut Lease) -> anyhow::Result<Option<ScenarioRun>> {
    let mut signals = passed_on()?;
    tokio::select! {
        ended = lease.last() => Ok(Some(ended?)),
        () = signals.end() => Ok(None),
    }
}

fn tell(ended: &ScenarioRun, json: bool) -> anyhow::Result<()> {
    if json {
        print_json(ended)?;
    } else {
        print(&format!("{}\n", state(ended)))?;
    }
    if let Some(error) = &ended.error {
        bail!("the scenario failed, and is undone: {error}");
    }
    Ok(())
}

/// The state of a run in a sentence.
fn state(run: &ScenarioRun) -> String {
    let (name, age) = (&run.name, short_time(run.age_ns));
    let steps = match run.made {
        1 => "1 step".to_owned(),
        made => format!("{made} steps"),
    };
    let state = match run.state {
        ScenarioState::Running => format!("runs since {age} ago"),
        ScenarioState::Done => format!("is done after {age}"),
        ScenarioState::Stopped => format!("was stopped after {age}, and is undone"),
        ScenarioState::Failed => format!("failed after {age}, and is undone"),
    };
    format!("{name} {state}, with {steps} made")
}

fn list(client: Option<&Client>, args: &ScenarioListArgs) -> anyhow::Result<()> {
    let known = BUILT_IN.iter().map(|known| {
        let about = parse_scenario(known.text)?.about;
        Ok(Known {
            name: known.name,
            about,
        })
    });
    let listed = Listed {
        built_in: known.collect::<Result<_, ParseError>>()?,
        runs: match client.map(Client::scenarios) {
            None | Some(Err(ClientError::NoDaemon { .. })) => Vec::new(),
            Some(runs) => runs?,
        },
    };
    if args.json {
        return print_json(&listed);
    }
    let known = table_of(room(false), false, &KNOWN, &listed.built_in);
    if listed.runs.is_empty() {
        return print(&known);
    }
    let runs = table_of(room(false), false, &RUNS, &listed.runs);
    print(&format!("{runs}\n{known}"))
}

/// The columns of a scenario that dashpot comes with.
const KNOWN: [Field<Known>; 2] = [
    Field::new(Column::Text("built in"), |known| known.name.to_owned()),
    Field::new(Column::Text("about"), |known| known.about.clone()),
];

/// The columns of a run.
const RUNS: [Field<ScenarioRun>; 6] = [
    Field::new(Column::Figure("run"), |run| run.id.to_string()),
    Field::new(Column::Text("scenario"), |run| run.name.clone()),
    Field::new(Column::Text("disks"), |run| run.disks.join(", ")),
    Field::new(Column::Text("state"), |run| {
        let state = match run.state {
            ScenarioState::Running => "running",
            ScenarioState::Done => "done",
            ScenarioState::Stopped => "stopped",
            ScenarioState::Failed => "failed",
        };
        state.to_owned()
    }),
    Field::new(Column::Figure("next in"), |run| {
        run.next_in_ns.map_or_else(|| "-".to_owned(), short_time)
    }),
    Field::new(Column::Text("last step"), |run| {
        let last = run.steps.last();
        last.map_or_else(
            || "-".to_owned(),
            |last| format!("{}: {}", last.number, last.step),
        )
    }),
];

fn show(args: &ScenarioShowArgs) -> anyhow::Result<()> {
    print(&read(&args.name)?)
}

fn stop(client: &Client, args: &ScenarioStopArgs) -> anyhow::Result<()> {
    let ended = client.stop_scenario(&args.disk, None)?;
    if args.json {
        return print_json(&ended);
    }
    print(&format!("{}\n", state(&ended)))
}

/// A scenario that dashpot comes with, or that of a file.
pub fn read_scenario(word: &str) -> anyhow::Result<Scenario> {
    let named = |error| ParseError::new(format!("{word}:{error}"));
    Ok(parse_scenario(&read(word)?).map_err(named)?)
}

/// The text of a scenario: of one that dashpot comes with, or of a file.
fn read(word: &str) -> anyhow::Result<String> {
    if let Some(known) = BuiltIn::find(word) {
        return Ok(known.text.to_owned());
    }
    fs::read_to_string(word).with_context(|| {
        let names = BUILT_IN.iter().map(|known| known.name);
        let remedy = match nearest(word, names) {
            Some(near) => format!("did you mean '{near}'?"),
            None => "'dashpot scenario list' shows the scenarios".to_owned(),
        };
        format!("'{word}' is no file that can be read, and no scenario that dashpot comes with: {remedy}")
    })
}
