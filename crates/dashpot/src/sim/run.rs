//! Runs a scenario to its end, or until Ctrl-C.

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use dashpot_sim::Simulation;
use dashpot_sources::simulated::PoolSnapshot;

use super::ReportWords;
use super::events::EventsFile;
use super::reports::{Output, show_all};
use super::stage::Stage;

/// A scenario that has ended or was stopped.
pub(super) struct Run<'a> {
    pub(super) simulation: Simulation,
    pub(super) reports: Vec<Output<'a>>,
    /// The snapshots of the pools at the end of the warm-up.
    pub(super) warm: Vec<PoolSnapshot>,
}

/// Runs a simulation.
pub(super) fn run<'a>(
    simulation: Simulation,
    words: &'a [ReportWords],
    events: Option<&mut EventsFile>,
    interrupted: &AtomicBool,
) -> anyhow::Result<Run<'a>> {
    let stage = RefCell::new(Stage::new(simulation, events, interrupted));
    let reports = show_all(words, &stage)?;
    let (simulation, warm) = stage.into_inner().into_parts();
    Ok(Run {
        simulation,
        reports,
        warm,
    })
}
