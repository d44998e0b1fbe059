//! Messages about a report, on standard error: about the true lengths of intervals, lost events, and
//! devices that have vanished.

use dashpot_export::{complain, complain_lines};
use dashpot_observe::{Length, Seen, Stacked, VanishedDevice, unplaced_calls};
use dashpot_report::report::Tells;

/// The warnings that are still to be printed, and the sums that are printed at the end.
#[derive(Debug)]
pub(super) struct Notes {
    /// The warnings that the report's own text contains.
    tells: Tells,
    /// The report's name, which begins each warning if there are several reports.
    whose: Option<String>,
    /// Whether to warn about each interval, or only once in a summary.
    each: bool,
    /// How many intervals were missed without a warning. A busy host misses many intervals if they last only
    /// a few milliseconds, so one sentence at the end gives their number.
    missed: u64,
    /// How many events were lost.
    lost: u64,
    /// How many intervals lost events.
    lossy: u64,
    /// How many sync calls were on unknown devices in intervals without a warning.
    unplaced: u64,
    /// The devices of which it was last said that the sums leave them out.
    stacked: Vec<String>,
    /// The first of the messages, each once, for the report's file.
    notes: Vec<String>,
}

impl Notes {
    pub(super) fn new(tells: Tells, whose: Option<String>, each: bool) -> Notes {
        Notes {
            tells,
            whose,
            each,
            missed: 0,
            lost: 0,
            lossy: 0,
            unplaced: 0,
            stacked: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The messages that a reader of the report's file needs, too.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    fn tell(&mut self, message: String) {
        complain(format_args!("{message}"));
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&message) {
            self.notes.push(message);
        }
    }

    /// Tells of devices that have vanished in the last shown interval.
    fn say_vanished(&mut self, devices: &[VanishedDevice]) {
        for device in devices {
            let then = device.warning();
            let then = then.as_deref().unwrap_or("the report has it up to then");
            self.tell(format!("dashpot: {} has vanished; {then}", device.name));
        }
    }

    /// Warns about the last shown interval, whose sums leave out the stacked devices.
    pub(super) fn say(&mut self, seen: &Seen, stacked: &[Stacked]) {
        self.say_length(&seen.length());
        if !self.tells.lost {
            self.say_lost(seen.lost);
        }
        self.say_unplaced(seen);
        let now: Vec<String> = stacked.iter().map(Stacked::to_string).collect();
        for device in &now {
            if !self.stacked.contains(device) {
                self.tell(format!(
                    "dashpot: not in the sums: {device}; -d names one that counts"
                ));
            }
        }
        self.stacked = now;
        for device in &seen.appeared {
            self.tell(format!(
                "dashpot: {device} has appeared; the report has it from its first I/O"
            ));
        }
        self.say_vanished(&seen.vanished);
    }

    fn say_length(&mut self, length: &Length) {
        match length.line() {
            None => self.missed += length.missed,
            Some(line) if self.each && !self.tells.length => match &self.whose {
                Some(whose) => complain_lines(&format!("{whose}: {line}")),
                None => complain_lines(&line),
            },
            Some(_) => {}
        }
    }

    fn say_unplaced(&mut self, seen: &Seen) {
        match seen.unplaced.unwrap_or(0) {
            0 => {}
            // The source of single I/Os has no intervals.
            calls if self.each && seen.span.elapsed_ns() > 0 => {
                let calls = unplaced_calls(calls);
                self.tell(format!("{calls} in this interval: {WHY}"));
            }
            calls => self.unplaced += calls,
        }
    }

    fn say_lost(&mut self, events: u64) {
        if events == 0 {
            return;
        }
        self.lost += events;
        self.lossy += 1;
        if self.each {
            self.tell(format!(
                "WARNING: lost {events} events up to here: this interval or the next shows too little I/O"
            ));
        }
    }

    /// Prints how many intervals were missed and how many events were lost in all, and how many sync calls were on
    /// unknown devices, unless that has been printed for each interval.
    pub(super) fn sum_up(&mut self) {
        if self.unplaced > 0 {
            let calls = unplaced_calls(self.unplaced);
            self.tell(format!("{calls}: {WHY}"));
        }
        if self.missed > 0 {
            let missed = self.missed;
            self.tell(format!(
                "{missed} intervals were missed in all: the intervals after them are longer, and \
                 include the I/O of the missed ones."
            ));
        }
        if self.lossy > u64::from(self.each) {
            let (events, intervals) = (self.lost, self.lossy);
            self.tell(format!(
                "WARNING: lost {events} events in {intervals} intervals"
            ));
        }
    }
}

/// More different messages than these say nothing new.
const NOTES_MAX: usize = 100;
/// The place where a user learns why a call's device is unknown.
const WHY: &str = "docs/observe.md, 'Sync calls', says why";
