//! The parts of a period that a recording does not have.

use crate::wall::shown_moment;
use dashpot_export::complain;
use dashpot_observe::unplaced_calls;
use dashpot_recording::Event;
use dashpot_rules::thousands;

use super::period::Recorded;
use super::spans::Period;
use crate::owner::Owner;

impl Recorded {
    /// Prints which parts of the period are missing. `counts` is true if the per-second counts answer the
    /// question.
    pub fn tell_gaps(&self, counts: bool) {
        if let Some(cut) = self.conditions() {
            complain(format_args!(
                "The recording is a part of another one, with I/Os of {cut} only."
            ));
        }
        self.tell_pauses();
        let count = self.counted_seconds();
        let seconds = thousands(count);
        match counts {
            _ if count == 0 => {}
            true => complain(format_args!(
                "For {seconds} seconds the recording has only counts: their latencies are up to a twelfth too \
                 high, and each I/O gets the same share of the bytes."
            )),
            false => complain(format_args!(
                "{seconds} seconds are left out: the recording has only counts of them, not the single I/Os."
            )),
        }
    }

    /// Says how many sync calls of the period were on unknown devices, and so are in no figure.
    pub fn tell_unplaced(&self) {
        if let Some(calls @ 1..) = self.unplaced(self.period) {
            complain(format_args!("Left out: {}.", unplaced_calls(calls)));
        }
    }

    /// The times in which no recorder watched.
    fn unwatched(&self) -> impl Iterator<Item = Period> {
        let pairs = self.sessions.iter().zip(self.sessions.iter().skip(1));
        let pauses = pairs.map(|(session, next)| Period {
            from_ns: session.to_ns,
            to_ns: next.from_ns,
        });
        // The recording may have gone on without the disks of one owner.
        let ended = self.sessions.last().filter(|last| {
            let own = self
                .ends
                .iter()
                .filter(|(owner, _)| self.owner() == Some(*owner));
            own.map(|(_, at_ns)| at_ns)
                .any(|at_ns| *at_ns == last.to_ns)
        });
        let rest = ended.map(|last| Period {
            from_ns: last.to_ns,
            to_ns: self.period.to_ns,
        });
        pauses
            .chain(rest)
            .filter(|pause| pause.shared_ns(self.period) > 0)
    }

    /// The times in which no recorder watched, in nanoseconds since 1970.
    pub fn pauses(&self) -> Vec<(u64, u64)> {
        let pauses = self.unwatched();
        pauses.map(|pause| (pause.from_ns, pause.to_ns)).collect()
    }

    /// The moments of a period at which the I/Os in flight were not known, because the daemon did not answer.
    fn unknown(&self, period: Period) -> impl Iterator<Item = u64> {
        let own = self.marks.iter().filter(move |mark| {
            let owner = mark.text.as_deref().and_then(Owner::of_word);
            let is_own = owner.is_none() || self.owner().is_none() || owner == self.owner();
            mark.event == Event::InFlightUnknown && is_own && period.has(mark.at_ns)
        });
        own.map(|mark| mark.at_ns)
    }

    /// Whether the I/Os in flight at the end of a period are not known. `last_ns` is when the last I/O of the
    /// period ended.
    pub(super) fn loses_sight_after(&self, last_ns: u64, period: Period) -> bool {
        self.unknown(period).any(|at_ns| at_ns >= last_ns)
    }

    /// Prints the moments at which the I/Os in flight were not known. The report shows no I/Os in flight for
    /// these moments.
    fn tell_unknown(&self) {
        let moments: Vec<u64> = self.unknown(self.period).collect();
        let (Some(first), Some(last)) = (moments.first(), moments.last()) else {
            return;
        };
        let when = match moments.len() {
            1 => format!("at {}", shown_moment(*first)),
            times => format!(
                "{} times from {} to {}",
                thousands(times as u64),
                shown_moment(*first),
                shown_moment(*last)
            ),
        };
        complain(format_args!(
            "The daemon did not say which I/Os were in flight {when}: none of them is in the report."
        ));
    }

    /// Prints the moments at which the I/Os in flight were not known, and the times in which no recorder
    /// watched these disks.
    pub(super) fn tell_pauses(&self) {
        self.tell_unknown();
        let own: Vec<Period> = self.unwatched().collect();
        let whose = self.owner().map(|owner| format!(" of {}", owner.disks()));
        let whose = whose.unwrap_or_default();
        for pause in own.iter().take(PAUSES_MAX) {
            let (from, to) = pause.shown();
            complain(format_args!(
                "Nothing{whose} was recorded from {from} to {to}."
            ));
        }
        if let Some(more @ 1..) = own.len().checked_sub(PAUSES_MAX) {
            complain(format_args!(
                "Nothing{whose} was recorded in {more} more periods."
            ));
        }
    }
}

/// At most this many pauses are listed one by one.
const PAUSES_MAX: usize = 3;
