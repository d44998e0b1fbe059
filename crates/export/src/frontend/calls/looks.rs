//! Looks for calls whose threads were killed. The kernel does not report that, so dashpot asks for each
//! call that is held, again and again.
//!
//! The kernel searches all calls that wait for the one that it is asked about. So with thousands of them
//! a look at all would take too long, and each look goes on where the last one ended.

use std::time::{Duration, Instant};

use dashpot_sys::seccomp::CallId;

use super::answers::Answers;

#[derive(Debug)]
pub(super) struct Looks {
    last: Instant,
    /// The calls that are still to be asked for.
    left: Vec<CallId>,
}

impl Looks {
    pub(super) fn new() -> Looks {
        Looks {
            last: Instant::now(),
            left: Vec::new(),
        }
    }

    /// Finds calls that no thread waits for, if the last look was long ago. `answers` forgets them; the
    /// caller tells the disks.
    pub(super) fn look(&mut self, answers: &Answers) -> Vec<CallId> {
        let begun = Instant::now();
        if begun.duration_since(self.last) < BETWEEN_LOOKS {
            return Vec::new();
        }
        if self.left.is_empty() {
            self.left = answers.held();
        }
        let mut abandoned = Vec::new();
        while begun.elapsed() < LOOK
            && let Some(id) = self.left.pop()
        {
            abandoned.extend(answers.forget_abandoned(id).then_some(id));
        }
        self.last = Instant::now();
        abandoned
    }
}

/// How long the receiver waits between two looks, if there is nothing else to do.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// How long a look takes at most: half a percent of a core.
const LOOK: Duration = Duration::from_micros(2_500);
