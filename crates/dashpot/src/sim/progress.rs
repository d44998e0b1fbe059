//! The progress line: the virtual time, and the speed of the simulation.

use std::time::Instant;

use dashpot_engine::Duration;
use dashpot_output::progress_bar;
use dashpot_sim::Simulation;
use indicatif::ProgressBar;

/// The progress of one simulation.
pub(super) struct Progress {
    bar: ProgressBar,
    began: Instant,
    lasts_s: f64,
}

impl Progress {
    pub(super) fn new(lasts: Duration) -> Progress {
        Progress {
            bar: progress_bar(),
            began: Instant::now(),
            lasts_s: lasts.as_nanos() as f64 / 1e9,
        }
    }

    pub(super) fn show(&mut self, simulation: &Simulation) {
        let seconds = simulation.now().as_nanos() as f64 / 1e9;
        let speed = seconds / self.began.elapsed().as_secs_f64().max(1e-9);
        let calls = simulation.calls_ended();
        self.bar.set_message(format!(
            "{seconds:.1} s of {:.1} s, {speed:.0} times as fast as real time, {calls} calls",
            self.lasts_s
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
