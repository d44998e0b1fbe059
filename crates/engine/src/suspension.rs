//! A suspension: a period in which a disk issues no zios.

use alloc::vec::Vec;

use crate::command::{Action, Answer, CommandId};
use crate::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Suspension {
    pub(crate) since: Instant,
    /// How long the suspension lasts, if it ends automatically.
    pub(crate) lasts: Option<Duration>,
    /// The commands that are answered when all issued zios have ended.
    pub(crate) waiters: Vec<CommandId>,
}

impl Suspension {
    pub(crate) fn since(now: Instant) -> Suspension {
        Suspension {
            since: now,
            lasts: None,
            waiters: Vec::new(),
        }
    }

    /// When the suspension ends automatically.
    pub(crate) fn ends_at(&self) -> Option<Instant> {
        Some(self.since + self.lasts?).filter(|at| *at < Instant::NEVER)
    }

    /// Answers the commands that wait until no zio is in flight.
    pub(crate) fn answer_waiters(&mut self, actions: &mut Vec<Action>) {
        let waiters = self.waiters.drain(..);
        actions.extend(
            waiters.map(|waiter| Action::Answer(waiter, Ok(Answer::Suspended { in_flight: 0 }))),
        );
    }
}
