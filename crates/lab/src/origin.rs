//! The places of a simulation's parts in its lab file, for errors that are found after reading.

use std::path::PathBuf;

use dashpot_engine::Duration;
use dashpot_rules::ParseError;
use dashpot_sim::SetupError;
use dashpot_sim::scenario::Scenario;

/// The lab file of a scenario and, for each item in the scenario's lists, the item's place in the file:
/// `LINE: [TABLE]`.
#[derive(Debug, Default)]
pub(crate) struct Origin {
    pub(crate) path: PathBuf,
    pub(crate) disks: Vec<String>,
    pub(crate) pools: Vec<String>,
    pub(crate) volumes: Vec<String>,
    pub(crate) workloads: Vec<String>,
    /// The places of `[[at]]`, with their times.
    pub(crate) changes: Vec<(Duration, String)>,
}

impl Origin {
    /// Why a simulation cannot begin, with the place in the lab.
    pub(crate) fn refusal(&self, error: &SetupError) -> ParseError {
        let (places, at, why) = match error {
            SetupError::Rules { disk, error } => (&self.disks, *disk, error.to_string()),
            SetupError::Pool { pool, error } => (&self.pools, *pool, error.to_string()),
            SetupError::Volume { volume, error } => (&self.volumes, *volume, error.to_string()),
            SetupError::Workload { workload, error } => {
                (&self.workloads, *workload, error.to_string())
            }
        };
        self.at(places.get(at).map_or("", String::as_str), &why)
    }

    /// Warnings about parts of a lab that have no effect, and about missing parts.
    pub(crate) fn warnings(&self, scenario: &Scenario) -> Vec<ParseError> {
        let lasts = scenario.lasts;
        let workloads = scenario.workloads.iter().zip(&self.workloads);
        let workloads = workloads.map(|(workload, place)| (workload.starts, place));
        let changes = self.changes.iter().map(|(time, place)| (*time, place));
        let late = workloads.chain(changes).filter(|(at, _)| *at >= lasts);
        let late = late.map(|(at, place)| {
            let why = format!(
                "its time, {at}, is not before the end of the run, {lasts}: it does nothing"
            );
            self.at(place, &why)
        });
        let idle = scenario.workloads.is_empty().then(|| {
            let why = "no workload, so nothing reads or writes: add [workload.NAME]";
            ParseError::new(format!("{}: {why}", self.path.display()))
        });
        idle.into_iter().chain(late).collect()
    }

    fn at(&self, place: &str, why: &str) -> ParseError {
        ParseError::new(format!("{}:{place}: {why}", self.path.display()))
    }
}
