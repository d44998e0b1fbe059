//! What is said beside a report, on standard error: how long intervals really were, the events that were
//! lost, and the devices that have vanished.

use dashpot_export::complain;
use dashpot_observe::{Length, Seen};
use dashpot_report::report::Tells;

/// Says which devices have vanished in what has just been shown.
pub(super) fn warn_of_vanished(names: &[String]) {
    for name in names {
        complain(format_args!(
            "dashpot: {name} has vanished; the report has it up to then"
        ));
    }
}

/// What is to be said, and what is to be summed up at the end.
#[derive(Debug)]
pub(super) struct Beside {
    /// What the report says itself.
    tells: Tells,
    /// Whether each interval is spoken of. If not, only the sum is.
    each: bool,
    /// Intervals that were missed and not spoken of: of intervals of a few milliseconds, those are many
    /// on a busy host.
    missed: u64,
    /// Events that were lost, and in how many intervals.
    lost: u64,
    lossy: u64,
}

impl Beside {
    pub(super) fn new(tells: Tells, each: bool) -> Beside {
        Beside {
            tells,
            each,
            missed: 0,
            lost: 0,
            lossy: 0,
        }
    }

    /// Speaks of the interval that has just been shown.
    pub(super) fn say(&mut self, seen: &Seen) {
        self.say_length(&seen.length());
        if !self.tells.lost {
            self.say_lost(seen.lost);
        }
        warn_of_vanished(&seen.vanished);
    }

    fn say_length(&mut self, length: &Length) {
        match length.line() {
            None => self.missed += length.missed,
            Some(line) if self.each && !self.tells.length => complain(format_args!("{line}")),
            Some(_) => {}
        }
    }

    fn say_lost(&mut self, events: u64) {
        if events == 0 {
            return;
        }
        self.lost += events;
        self.lossy += 1;
        if self.each {
            complain(format_args!(
                "WARNING: lost {events} events in this interval: it shows too little I/O"
            ));
        }
    }

    /// Sums up at the end.
    pub(super) fn sum_up(&self) {
        if self.missed > 0 {
            let missed = self.missed;
            complain(format_args!(
                "{missed} intervals were missed in all: those after them are longer, and hold what was \
                 done meanwhile."
            ));
        }
        if self.lossy > u64::from(self.each) {
            let (events, intervals) = (self.lost, self.lossy);
            complain(format_args!(
                "WARNING: lost {events} events in {intervals} intervals"
            ));
        }
    }
}
