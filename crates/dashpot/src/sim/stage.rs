//! A simulation that runs while reports watch it.

use std::sync::atomic::{AtomicBool, Ordering};

use dashpot_engine::{Event, Instant};
use dashpot_sim::Simulation;
use dashpot_sources::simulated::{Names, PoolSnapshot, pools};

use super::events::EventsFile;
use super::pieces::Pieces;
use super::progress::Progress;
use super::tap::Tap;

/// A simulation, and the receivers of its events.
pub(super) struct Stage<'a> {
    simulation: Simulation,
    names: Names,
    taps: Vec<Option<Tap>>,
    events: Option<&'a mut EventsFile>,
    interrupted: &'a AtomicBool,
    warmup: Instant,
    /// The snapshots of the pools at the end of the warm-up.
    warm: Vec<PoolSnapshot>,
    pieces: Pieces,
    progress: Progress,
}

/// Identifies a tap of a stage.
#[derive(Clone, Copy)]
pub(super) struct TapId(usize);

impl<'a> Stage<'a> {
    /// A simulation at its beginning. The simulation runs until its end, or until it is interrupted.
    pub(super) fn new(
        mut simulation: Simulation,
        events: Option<&'a mut EventsFile>,
        interrupted: &'a AtomicBool,
    ) -> Stage<'a> {
        simulation.record_events(events.is_some());
        let scenario = simulation.scenario();
        Stage {
            names: Names::of(scenario),
            taps: Vec::new(),
            events,
            interrupted,
            warmup: Instant::ZERO + scenario.warmup,
            warm: pools(&simulation),
            pieces: Pieces::default(),
            progress: Progress::new(scenario.lasts),
            simulation,
        }
    }

    pub(super) fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    /// The simulation, and the pools at the end of the warm-up.
    pub(super) fn into_parts(self) -> (Simulation, Vec<PoolSnapshot>) {
        (self.simulation, self.warm)
    }

    /// Sends all events from now on to a tap.
    pub(super) fn add(&mut self, tap: Tap) -> TapId {
        self.simulation.record_events(true);
        self.taps.push(Some(tap));
        TapId(self.taps.len() - 1)
    }

    /// The tap, unless it is closed.
    pub(super) fn tap(&mut self, id: TapId) -> Option<&mut Tap> {
        self.taps.get_mut(id.0).and_then(Option::as_mut)
    }

    pub(super) fn close(&mut self, id: TapId) {
        if let Some(tap) = self.taps.get_mut(id.0) {
            *tap = None;
        }
    }

    /// Whether the simulation has ended or was interrupted.
    pub(super) fn is_over(&self) -> bool {
        self.simulation.done() || self.interrupted.load(Ordering::Relaxed)
    }

    /// Runs the simulation until a moment, or until its end. The number of stops on the way does not change
    /// its results.
    pub(super) fn run_until(&mut self, until: Instant) -> anyhow::Result<()> {
        while self.simulation.now() < until && !self.is_over() {
            let now = self.simulation.now();
            let piece = self.pieces.next(now).min(until);
            let warming = now < self.warmup;
            let end = if warming {
                piece.min(self.warmup)
            } else {
                piece
            };
            self.simulation.run_until(end)?;
            self.hand_out_events()?;
            if self.simulation.now() == self.warmup {
                self.warm = pools(&self.simulation);
            }
            self.progress.show(&self.simulation);
        }
        Ok(())
    }

    fn hand_out_events(&mut self) -> anyhow::Result<()> {
        for event in self.simulation.events() {
            let event: Event = event;
            if let Some(events) = &mut self.events {
                events.write(&event, &self.names)?;
            }
            for tap in self.taps.iter_mut().flatten() {
                tap.take(&event, &self.names);
            }
        }
        Ok(())
    }
}
