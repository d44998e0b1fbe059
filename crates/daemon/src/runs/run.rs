//! A run of a scenario, as the daemon's callers see it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dashpot_engine::{Duration, Instant};
use dashpot_rules::Speed;
use dashpot_rules::scenario::{Scenario, Step};
use tokio::sync::watch;

/// A scenario on its disks.
pub(crate) struct Run {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) scenario: Scenario,
    pub(crate) disks: Vec<usize>,
    speed: Speed,
    pub(crate) began: Instant,
    log: Mutex<Log>,
    is_stopped: watch::Sender<bool>,
    state: watch::Sender<State>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The steps at its beginning are being made.
    Begins,
    Runs,
    Done,
    Stopped,
    Failed(String),
}

/// What a run has done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) made: u64,
    /// The last steps, each with its number, its line, and when it was made.
    pub(crate) steps: VecDeque<(u64, usize, Instant, String)>,
    /// When the next step comes, if it is known.
    pub(crate) next: Option<Instant>,
    pub(crate) ended: Option<Instant>,
}

/// The most steps that a log keeps.
const STEPS_MAX: usize = 100;
/// The most bytes that the text of a step has in a log. A step may have many rules with long globs.
const TEXT_MAX: usize = 1_000;

fn shortened(mut text: String) -> String {
    if text.len() > TEXT_MAX {
        let mut ends = (0..=TEXT_MAX).rev();
        let end = ends.find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

impl State {
    pub(crate) fn is_over(&self) -> bool {
        !matches!(self, State::Begins | State::Runs)
    }
}

impl Run {
    pub(crate) fn new(
        id: u64,
        name: &str,
        scenario: Scenario,
        disks: Vec<usize>,
        speed: Speed,
        began: Instant,
    ) -> Run {
        Run {
            id,
            name: name.to_owned(),
            scenario,
            disks,
            speed,
            began,
            log: Mutex::default(),
            is_stopped: watch::Sender::new(false),
            state: watch::Sender::new(State::Begins),
        }
    }

    /// When a step is due that comes at this time of the scenario.
    pub(crate) fn due(&self, at: Duration) -> Instant {
        let takes = self.speed.takes(at).as_nanos();
        self.began + Duration::from_nanos(u64::try_from(takes).unwrap_or(u64::MAX))
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    pub(crate) fn log(&self) -> Log {
        self.lock().clone()
    }

    /// Asks for the end of the run.
    pub(crate) fn stop(&self) {
        self.is_stopped.send_replace(true);
    }

    /// Waits until somebody asks for the end of the run.
    pub(crate) async fn stopped(&self) {
        // This cannot fail, because the run has the sender.
        let _ = self
            .is_stopped
            .subscribe()
            .wait_for(|stopped| *stopped)
            .await;
    }

    /// Waits until the steps at the beginning are made, or the run has ended.
    pub(crate) async fn begun(&self) {
        let _ = self
            .state
            .subscribe()
            .wait_for(|state| *state != State::Begins)
            .await;
    }

    /// Waits until the run has ended, and is undone.
    pub(crate) async fn ended(&self) {
        let _ = self.state.subscribe().wait_for(State::is_over).await;
    }

    /// Notes that the steps at the beginning are made, and when the next one comes.
    pub(crate) fn note_begun(&self, next: Instant) {
        self.lock().next = Some(next);
        self.state.send_if_modified(|state| {
            let begins = *state == State::Begins;
            *state = State::Runs;
            begins
        });
    }

    /// Notes a step that was made.
    pub(crate) fn note(&self, step: &Step, now: Instant) {
        let mut log = self.lock();
        log.made += 1;
        let made = log.made;
        log.steps
            .push_back((made, step.line, now, shortened(step.action.to_string())));
        if log.steps.len() > STEPS_MAX {
            log.steps.pop_front();
        }
    }

    /// Notes how the run ended.
    pub(crate) fn end(&self, state: State, now: Instant) {
        let mut log = self.lock();
        (log.next, log.ended) = (None, Some(now));
        drop(log);
        self.state.send_replace(state);
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
