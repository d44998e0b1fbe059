//! Looks for calls whose threads were killed. The kernel does not report such a kill, so dashpot asks the
//! kernel about each held call, again and again.
//!
//! For each question, the kernel searches through all waiting calls. With thousands of calls, a look at
//! all of them would take too long. So each look continues where the previous look ended.

use std::time::{Duration, Instant};

use dashpot_sys::seccomp::CallId;

use super::answers::Answers;

#[derive(Debug)]
pub(super) struct Looks {
    last: Instant,
    /// The held calls that the looks have not asked about in this round. The next round begins when none
    /// is left.
    left: Vec<CallId>,
}

impl Looks {
    pub(super) fn new() -> Looks {
        Looks {
            last: Instant::now(),
            left: Vec::new(),
        }
    }

    /// Finds calls that no thread waits for, if the last look was long ago. `answers` forgets these
    /// calls; the caller tells the disks.
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
