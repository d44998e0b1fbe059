//! What a report says, beside its output, of intervals that were not as long as was asked for.

use dashpot_export::complain;
use dashpot_observe::Length;

/// Intervals that were missed without a word so far: of intervals of a few milliseconds, those are
/// many on a busy host.
#[derive(Default)]
pub(super) struct Lengths {
    untold: u64,
}

impl Lengths {
    /// Says how long the interval was that has just been shown, if its length is off.
    pub(super) fn warn(&mut self, length: &Length) {
        match length.line() {
            Some(line) => complain(format_args!("{line}")),
            None => self.untold += length.missed,
        }
    }

    /// The same of a report whose text says it itself.
    pub(super) fn count(&mut self, length: &Length) {
        if !length.is_off() {
            self.untold += length.missed;
        }
    }

    /// Says at the end what was missed without a word.
    pub(super) fn sum_up(&self) {
        if self.untold > 0 {
            complain(format_args!(
                "{} intervals were missed in all: those after them are longer, and hold what was \
                 done meanwhile.",
                self.untold
            ));
        }
    }
}
