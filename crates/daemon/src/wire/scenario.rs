//! Runs of scenarios, in the API's form.

use dashpot_api::{ScenarioRun, ScenarioState, ScenarioStep};
use dashpot_engine::Instant;

use crate::daemon::Daemon;
use crate::runs::{Run, State};

/// A run of a scenario, as it is now.
pub(crate) fn scenario(daemon: &Daemon, run: &Run) -> ScenarioRun {
    // The state comes first: a run that has ended makes no more steps.
    let (state, log, now) = (run.state(), run.log(), daemon.now());
    let step = |(number, line, at, step): (u64, usize, Instant, String)| ScenarioStep {
        number,
        line: line as u64,
        at_ns: at.since(run.began).as_nanos(),
        step,
    };
    let disks = run.disks.iter().map(|disk| daemon.info(*disk).name.clone());
    ScenarioRun {
        id: run.id,
        name: run.name.clone(),
        about: run.scenario.about.clone(),
        disks: disks.collect(),
        age_ns: log.ended.unwrap_or(now).since(run.began).as_nanos(),
        next_in_ns: log.next.map(|next| next.since(now).as_nanos()),
        made: log.made,
        steps: log.steps.into_iter().map(step).collect(),
        error: match &state {
            State::Failed(error) => Some(error.clone()),
            _ => None,
        },
        state: match state {
            State::Begins | State::Runs => ScenarioState::Running,
            State::Done => ScenarioState::Done,
            State::Stopped => ScenarioState::Stopped,
            State::Failed(_) => ScenarioState::Failed,
        },
    }
}
