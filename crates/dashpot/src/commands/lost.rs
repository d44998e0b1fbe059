//! What a report says of events that it has missed, beside its output.
use dashpot_export::complain;

/// Events missed so far.
#[derive(Default)]
pub(super) struct Lost {
    events: u64,
    intervals: u64,
}

impl Lost {
    /// Says what the interval that has just been shown misses.
    pub(super) fn warn(&mut self, events: u64) {
        if events > 0 {
            complain(format_args!(
                "WARNING: lost {events} events in this interval: it shows too little I/O"
            ));
            self.events += events;
            self.intervals += 1;
        }
    }

    /// Says at the end what is missed in all.
    pub(super) fn sum_up(&self) {
        if self.intervals > 1 {
            let Lost { events, intervals } = self;
            complain(format_args!(
                "WARNING: lost {events} events in {intervals} intervals"
            ));
        }
    }
}
