//! Scenarios: a task makes the steps one after another, and at the end undoes what they did, however it ends.

mod check;
mod made;

use std::fmt::Display;
use std::sync::Arc;

use dashpot_rules::Speed;
use dashpot_rules::scenario::{Scenario, parse_scenario};
use tokio::time::sleep;

use self::check::{check, check_pools, disks_of};
use self::made::Made;
use crate::daemon::Daemon;
use crate::refusal::{Refusal, RefusalKind};
use crate::runs::{Run, State};

/// Begins a scenario on the disks with these names, and makes the steps that come at its beginning. `name` is for
/// lists and errors.
pub(crate) async fn begin(
    daemon: &Arc<Daemon>,
    name: &str,
    text: &str,
    disks: &[String],
    speed: Speed,
) -> Result<Arc<Run>, Refusal> {
    if name.len() > NAME_MAX {
        let error = format!("the name of a scenario has at most {NAME_MAX} bytes");
        return Err(Refusal::new(RefusalKind::Unprocessable, error));
    }
    let scenario = parse_scenario(text).map_err(|error| named(name, &error))?;
    let disks = disks_of(daemon, disks)?;
    check(daemon, &scenario, &disks).map_err(|error| named(name, &error))?;
    check_pools(daemon, &scenario, &disks)?;
    let run = register(daemon, name, scenario, disks, speed)?;
    tokio::spawn(make(Arc::clone(daemon), Arc::clone(&run)));
    run.begun().await;
    match run.state() {
        State::Failed(error) => Err(Refusal::conflict(error)),
        _ => Ok(run),
    }
}

/// The most bytes that the name of a run has, which may be the path of a file.
const NAME_MAX: usize = 4_096;

fn register(
    daemon: &Daemon,
    name: &str,
    scenario: Scenario,
    disks: Vec<usize>,
    speed: Speed,
) -> Result<Arc<Run>, Refusal> {
    let now = daemon.now();
    let begun = daemon
        .runs()
        .begin(|id| Run::new(id, name, scenario, disks, speed, now));
    begun.map_err(|(disk, other)| {
        let disk = &daemon.info(disk).name;
        Refusal::conflict(format!(
            "the scenario '{}' runs on disk '{disk}', and a disk has one at a time",
            other.name
        ))
        .remedy(format!("'dashpot scenario stop {disk}' ends it"))
    })
}

/// Stops the scenario of a disk, and waits until it is undone. With an `id`, stops only the run with this id.
pub(crate) async fn stop(
    daemon: &Daemon,
    disk: &str,
    id: Option<u64>,
) -> Result<Arc<Run>, Refusal> {
    let run = daemon.runs().of_disk(daemon.disk(disk)?);
    let Some(run) = run.filter(|run| id.is_none_or(|id| run.id == id)) else {
        let error = format!("no scenario runs on disk '{disk}'");
        return Err(Refusal::new(RefusalKind::NotFound, error));
    };
    run.stop();
    run.ended().await;
    Ok(run)
}

/// Stops all scenarios, and waits until they are undone.
pub(crate) async fn stop_all(daemon: &Daemon) {
    let running = daemon.runs().running();
    running.iter().for_each(|run| run.stop());
    for run in running {
        run.ended().await;
    }
}

/// Makes a scenario, and undoes it.
async fn make(daemon: Arc<Daemon>, run: Arc<Run>) {
    let mut made = Made::default();
    let mut state = make_steps(&daemon, &run, &mut made).await;
    let failed = made.undo(&daemon).await;
    if !failed.is_empty() {
        let before = match &state {
            State::Failed(error) => format!("{error}; "),
            _ => String::new(),
        };
        state = State::Failed(format!("{before}not undone: {}", failed.join("; ")));
    }
    daemon.runs().end(&run);
    run.end(state, daemon.now());
}

/// Makes the steps of a scenario, until one fails or the scenario is stopped.
async fn make_steps(daemon: &Daemon, run: &Run, made: &mut Made) -> State {
    for (at, step) in run.scenario.schedule() {
        let due = run.due(at);
        if due > run.began {
            run.note_begun(due);
            let left = std::time::Duration::from_nanos(due.since(daemon.now()).as_nanos());
            tokio::select! {
                biased;
                () = run.stopped() => return State::Stopped,
                () = sleep(left) => {}
            }
        }
        if let Err(refusal) = made.make(daemon, &run.disks, step).await {
            let error = named(&run.name, &step.error(&refusal));
            return State::Failed(error.to_string());
        }
        run.note(step, daemon.now());
    }
    State::Done
}

/// An error in a scenario, with its name before the line.
fn named(name: &str, error: &impl Display) -> Refusal {
    Refusal::new(RefusalKind::Unprocessable, format!("{name}:{error}"))
}
