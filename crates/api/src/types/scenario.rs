//! Scenarios that a daemon makes on its disks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Makes a scenario on disks.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunScenario {
    /// The name under which the daemon lists the scenario.
    pub name: String,
    /// The text of the scenario's file; null for the scenario of this name that dashpot comes with.
    #[serde(default)]
    pub scenario: Option<String>,
    /// The names of the disks.
    pub disks: Vec<String>,
    /// How many times as fast as written the steps come, from 0.001 to 1000; null for as written. The times in
    /// the words of rules stay.
    #[schema(example = "2")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
}

/// A scenario that runs, or has ended.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScenarioRun {
    /// The number of the run, for the life of the daemon.
    pub id: u64,
    /// The name under which the scenario was started.
    pub name: String,
    /// What the file says about the scenario.
    pub about: String,
    /// The names of the disks.
    pub disks: Vec<String>,
    /// Whether the scenario runs, or how it ended.
    pub state: ScenarioState,
    /// Why it failed; null if it did not.
    pub error: Option<String>,
    /// Time since the scenario began; if it has ended, how long it ran.
    pub age_ns: u64,
    /// Time until the next step; null if none is to come.
    pub next_in_ns: Option<u64>,
    /// How many steps were made.
    pub made: u64,
    /// The steps that were made last, the oldest first: at most 100.
    pub steps: Vec<ScenarioStep>,
}

/// A step of a scenario that was made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScenarioStep {
    /// The number of the step, counted from 1.
    pub number: u64,
    /// The line of the file in which the step begins.
    pub line: u64,
    /// Time from the beginning of the scenario until the step was made.
    pub at_ns: u64,
    /// What the step did.
    #[schema(example = "slow: inject -D 10ms -T read")]
    pub step: String,
}

/// Whether a scenario runs, or how it ended. However it ends, what it did is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScenarioState {
    Running,
    /// All steps were made.
    Done,
    /// Somebody stopped it, or the client that ran it went away.
    Stopped,
    /// A step failed.
    Failed,
}
