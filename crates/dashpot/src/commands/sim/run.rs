//! Runs a scenario to its end, or until Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as WallClock};

use dashpot_engine::Instant;
use dashpot_sim::Simulation;

use super::events::{EventsFile, Names};
use super::look::{PoolLook, pools};
use super::progress::Progress;
use super::reports::Running;
use crate::cli::ReportWords;

/// A scenario that has ended or was stopped.
pub(super) struct Run<'a> {
    pub(super) simulation: Simulation,
    pub(super) reports: Vec<Running<'a>>,
    /// The pools when the warm-up was over.
    pub(super) warm: Vec<PoolLook>,
}

/// Runs a simulation. Its results do not depend on the size of the pieces.
pub(super) fn run<'a>(
    mut simulation: Simulation,
    words: &'a [ReportWords],
    mut events: Option<&mut EventsFile>,
    interrupted: &Arc<AtomicBool>,
) -> anyhow::Result<Run<'a>> {
    let warmup = Instant::ZERO + simulation.scenario().warmup;
    let lasts = simulation.scenario().lasts;
    let begin = |words| Running::begin(words, &simulation);
    let mut reports = words
        .iter()
        .map(begin)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let wanted = events.is_some() || reports.iter().any(Running::wants_events);
    simulation.record_events(wanted);
    let names = Names::of(simulation.scenario());
    let mut warm = pools(&simulation);
    let mut progress = Progress::new(lasts);
    let mut pieces = Pieces::default();
    while !simulation.done() && !interrupted.load(Ordering::Relaxed) {
        let looks = reports.iter().map(Running::next).min();
        let warming = (simulation.now() < warmup).then_some(warmup);
        let until = pieces.next(simulation.now());
        let until = [looks, warming].into_iter().flatten().fold(until, Ord::min);
        simulation.run_until(until)?;
        for event in simulation.events() {
            if let Some(events) = &mut events {
                events.write(&event, &names)?;
            }
            reports
                .iter_mut()
                .for_each(|report| report.take(&event, &names));
        }
        if simulation.now() == warmup {
            warm = pools(&simulation);
        }
        let over = simulation.done();
        for report in &mut reports {
            report.go_on(&simulation, over)?;
        }
        progress.show(&simulation);
    }
    for report in &mut reports {
        report.go_on(&simulation, true)?;
        report.end()?;
    }
    Ok(Run {
        simulation,
        reports,
        warm,
    })
}

/// Pieces of virtual time. Each takes about as long as an eye needs to notice a change.
struct Pieces {
    length: dashpot_engine::Duration,
    began: Option<WallClock>,
}

impl Default for Pieces {
    fn default() -> Self {
        Pieces {
            length: dashpot_engine::Duration::from_millis(1),
            began: None,
        }
    }
}

impl Pieces {
    /// The end of the next piece. Its size follows the time that the last piece took.
    fn next(&mut self, now: Instant) -> Instant {
        let took = self.began.map(|began| began.elapsed());
        let nanos = self.length.as_nanos();
        let nanos = match took {
            Some(took) if took < SHORT => nanos.saturating_mul(2),
            Some(took) if took > LONG => (nanos / 2).max(1),
            _ => nanos,
        };
        self.length = dashpot_engine::Duration::from_nanos(nanos);
        self.began = Some(WallClock::now());
        now + self.length
    }
}

/// A piece should take longer than this.
const SHORT: Duration = Duration::from_millis(20);
/// A piece should take less than this.
const LONG: Duration = Duration::from_millis(100);
