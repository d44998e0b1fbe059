//! Looks for held calls whose threads were killed. The kernel does not report this, so dashpot asks the
//! kernel about each held call again and again.
//!
//! For each question, the kernel searches through all waiting calls. With thousands of calls, asking about
//! all of them at once would take too long. So each look continues where the previous look ended.

use std::time::{Duration, Instant};

use dashpot_sys::seccomp::CallId;

use super::answers::Answers;

/// The held calls about which dashpot has not yet asked the kernel in this round. When none is left, the next
/// round begins.
#[derive(Debug, Default)]
pub(super) struct Looks(Vec<CallId>);

impl Looks {
    /// Finds calls that no thread waits for any more. Makes `answers` forget them; the caller must tell the
    /// disks.
    pub(super) fn look(&mut self, answers: &Answers) -> Vec<CallId> {
        let begun = Instant::now();
        if self.0.is_empty() {
            self.0 = answers.held();
        }
        let mut abandoned = Vec::new();
        while begun.elapsed() < LOOK
            && let Some(id) = self.0.pop()
        {
            abandoned.extend(answers.forget_abandoned(id).then_some(id));
        }
        abandoned
    }
}

/// The least time between two looks.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// The longest time that a look may take. One look of this length in each half second uses half a percent of
/// a core.
const LOOK: Duration = Duration::from_micros(2_500);
