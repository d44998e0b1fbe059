//! Spans of time of a recording.

use std::ops::Range;

use crate::wall::shown_moment;
use dashpot_recording::Query;

/// A span of time in nanoseconds since 1970, from `from_ns` up to but not including `to_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

impl Period {
    pub(super) fn has(self, at_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&at_ns)
    }

    pub(super) fn query(self) -> Query {
        Query {
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            ..Query::default()
        }
    }

    /// The beginning and the end of the period, in this host's time zone.
    pub(super) fn shown(self) -> (String, String) {
        (shown_moment(self.from_ns), shown_moment(self.to_ns))
    }

    /// How many nanoseconds the two periods share.
    pub(super) fn shared_ns(self, other: Period) -> u64 {
        let to_ns = self.to_ns.min(other.to_ns);
        to_ns.saturating_sub(self.from_ns.max(other.from_ns))
    }

    /// The seconds that begin in the period.
    pub(super) fn seconds(self) -> (u64, u64) {
        (
            self.from_ns.div_ceil(SECOND_NS),
            self.to_ns.div_ceil(SECOND_NS),
        )
    }
}

/// The seconds of a recording for which single I/Os are missing, so that only the counts of the whole second
/// are complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted(Vec<Range<u64>>);

impl Counted {
    /// The seconds that contain a part of a gap.
    pub(super) fn of_gaps(gaps: &[Range<u64>]) -> Counted {
        let mut counted: Vec<Range<u64>> = Vec::new();
        for gap in gaps {
            let seconds = gap.start / SECOND_NS..gap.end.div_ceil(SECOND_NS);
            match counted.last_mut() {
                Some(last) if seconds.start < last.end => last.end = seconds.end,
                _ => counted.push(seconds),
            }
        }
        Counted(counted)
    }

    /// Whether there are no such seconds.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this moment lies in one of these seconds.
    pub(super) fn has(&self, at_ns: u64) -> bool {
        let second = at_ns / SECOND_NS;
        self.0.iter().any(|range| range.contains(&second))
    }

    /// The parts of a period outside these seconds.
    pub(super) fn outside(&self, period: Period) -> impl Iterator<Item = Period> {
        let second_ns = |second: u64| second.saturating_mul(SECOND_NS);
        let starts = self.0.iter().map(move |range| second_ns(range.start));
        let ends = self.0.iter().map(move |range| second_ns(range.end));
        let from = std::iter::once(0).chain(ends);
        let to = starts.chain([u64::MAX]);
        let parts = from.zip(to).map(move |(from_ns, to_ns)| Period {
            from_ns: from_ns.max(period.from_ns),
            to_ns: to_ns.min(period.to_ns),
        });
        parts.filter(|part| part.from_ns < part.to_ns)
    }

    /// How many of these seconds begin in a period.
    pub(super) fn seconds(&self, period: Period) -> u64 {
        let (from, to) = period.seconds();
        let own = self.0.iter();
        own.map(|range| range.end.min(to).saturating_sub(range.start.max(from)))
            .sum()
    }
}

pub(super) const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_outside_counted_seconds_are_what_they_leave() {
        let counted = Counted::of_gaps(&[0..2 * SECOND_NS + 1, 5 * SECOND_NS..6 * SECOND_NS]);
        let outside = |from_ns, to_ns| {
            let parts = counted.outside(Period { from_ns, to_ns });
            let parts: Vec<_> = parts.map(|part| (part.from_ns, part.to_ns)).collect();
            parts
        };
        let (three, five, six) = (3 * SECOND_NS, 5 * SECOND_NS, 6 * SECOND_NS);
        assert_eq!(outside(7, six + 9), [(three, five), (six, six + 9)]);
        assert_eq!(outside(1, three), []);
        assert_eq!(outside(three + 1, three + 2), [(three + 1, three + 2)]);
        let none = Counted::default();
        let whole = Period {
            from_ns: 4,
            to_ns: 9,
        };
        assert_eq!(none.outside(whole).collect::<Vec<_>>(), [whole]);
    }
}
