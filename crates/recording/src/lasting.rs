//! Lasting marks. Readers need such a mark until the I/Os and the counts that it concerns are deleted. An
//! example is the mark that a daemon's disks are not recorded any more: without it, the later seconds would
//! look idle.
//!
//! Before the recorder deletes the oldest file of marks, it carries these marks over into the next file.

use std::collections::{BTreeMap, BTreeSet};

use crate::evict::Segment;
use crate::marks::{Event, Mark};

/// The I/Os and counts that are left of a recording.
pub(crate) struct Left<'a> {
    /// The oldest moment with an I/O or a count, in nanoseconds since 1970.
    pub(crate) since_ns: u64,
    /// The files of I/Os, in their order.
    pub(crate) segments: &'a [Segment],
}

/// A condition that lasts until a newer mark with the same subject replaces it: the kind of mark, its device, and
/// a part of its text.
type Condition<'a> = (Event, Option<&'a str>, Option<&'a str>);

/// The marks to carry over, in their order: the newest mark of each condition, and the marks of the beginning
/// and the end of each session that has I/Os or counts left. If all of them take more than about `most`
/// bytes, the oldest are left out.
pub(crate) fn lasting(marks: &[Mark], left: &Left<'_>, most: u64) -> Vec<Mark> {
    let has_begun = |mark: &Mark| mark.event == Event::Began && mark.at_ns <= left.since_ns;
    let first = marks.iter().rposition(has_begun).unwrap_or(0);
    let mut kept = BTreeSet::new();
    let mut conditions: BTreeMap<Condition<'_>, usize> = BTreeMap::new();
    for (at, mark) in marks.iter().enumerate() {
        if mark.event == Event::Began {
            // When a recorder begins, it makes new marks of the conditions that it finds.
            conditions.retain(|(event, ..), _| matches!(event, Event::Watched | Event::Stacked));
        }
        match condition(mark) {
            Some(condition) if is_over(mark) => drop(conditions.remove(&condition)),
            Some(condition) => drop(conditions.insert(condition, at)),
            None if at >= first && left.concerns(mark) => drop(kept.insert(at)),
            None => {}
        }
    }
    kept.extend(conditions.into_values());
    let mut bytes = 0;
    let newest = kept.iter().rev().take_while(|at| {
        bytes += size(&marks[**at]);
        bytes <= most
    });
    let mut newest: Vec<Mark> = newest.map(|at| marks[*at].clone()).collect();
    newest.reverse();
    newest
}

/// Whether a mark may be carried over, so that two files may have it.
pub(crate) fn is_carried(mark: &Mark) -> bool {
    is_of_session(mark.event) || condition(mark).is_some()
}

impl Left<'_> {
    /// Whether this is a mark of a session, and readers still need it. A mark about times without single I/Os
    /// lies between two files. If other files between these two were deleted, the numbers of the two files
    /// already show that I/Os are missing, so readers do not need the mark.
    fn concerns(&self, mark: &Mark) -> bool {
        match mark.event {
            Event::SecondsOnly | Event::SingleIos => {
                let before = |segment: &Segment| segment.to_ns < mark.at_ns;
                let next = self.segments.partition_point(before);
                let around = (next.checked_sub(1), self.segments.get(next));
                match around {
                    (Some(last), Some(next)) => self.segments[last].number + 1 == next.number,
                    _ => true,
                }
            }
            event => is_of_session(event),
        }
    }
}

/// Whether a mark tells the beginning or the end of what a recorder records, or how exact a source's times
/// are.
fn is_of_session(event: Event) -> bool {
    matches!(
        event,
        Event::Began
            | Event::Ended
            | Event::Stopped
            | Event::Clock
            | Event::WatchEnded
            | Event::SecondsOnly
            | Event::SingleIos
    )
}

/// The condition that a mark states.
fn condition(mark: &Mark) -> Option<Condition<'_>> {
    let text = mark.text.as_deref();
    let subject = match mark.event {
        Event::Watched | Event::Cut => text,
        Event::Vanished | Event::State | Event::Stacked | Event::Earlier => None,
        // The text begins with 'rule' and the number of the rule.
        Event::Rule => text.map(|text| match text.match_indices(' ').nth(1) {
            Some((end, _)) => &text[..end],
            None => text,
        }),
        _ => return None,
    };
    Some((mark.event, mark.device.as_deref(), subject))
}

/// Whether a mark says that its condition is over.
fn is_over(mark: &Mark) -> bool {
    let text = mark.text.as_deref().unwrap_or_default();
    match mark.event {
        Event::State => text == RUNNING,
        Event::Earlier => mark.n == Some(0),
        Event::Rule => text.ends_with(CLEARED),
        _ => false,
    }
}

/// About how many bytes a mark takes in a file.
fn size(mark: &Mark) -> u64 {
    let texts = [&mark.device, &mark.text].into_iter().flatten();
    FIXED_BYTES + texts.map(|text| text.len() as u64).sum::<u64>()
}

/// The text of a mark about a disk that runs again.
pub const RUNNING: &str = "running";
/// The end of the text of a mark about a rule that was cleared.
pub const CLEARED: &str = ": cleared";
/// About how many bytes a mark takes beside its texts.
const FIXED_BYTES: u64 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(event: Event, at_ns: u64, device: &str, text: &str) -> Mark {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Mark {
            at_ns,
            clock_ns: at_ns,
            event,
            device: some(device),
            n: None,
            text: some(text),
        }
    }

    fn kept(marks: &[Mark], since_ns: u64, segments: &[Segment], most: u64) -> Vec<(Event, u64)> {
        let left = Left { since_ns, segments };
        let kept = lasting(marks, &left, most);
        kept.iter().map(|mark| (mark.event, mark.at_ns)).collect()
    }

    #[test]
    fn of_a_condition_the_newest_mark_stays_until_it_is_over() {
        let marks = [
            mark(Event::Watched, 1, "d", "disk"),
            mark(Event::Rule, 2, "d", "rule 1 -D 1ms"),
            mark(Event::Rule, 3, "d", "rule 2 -D 1ms"),
            mark(Event::State, 4, "d", "suspended"),
            mark(Event::Lost, 5, "", "daemon"),
            mark(Event::Rule, 6, "d", "rule 1 -D 2ms (waiting)"),
            mark(Event::Rule, 7, "d", "rule 2 -D 1ms: cleared"),
            mark(Event::Slow, 8, "d", "disk: an I/O took more than 1 s"),
            mark(Event::Vanished, 9, "e", "kernel"),
        ];
        let all = kept(&marks, 0, &[], 1_000);
        let expected = [
            (Event::Watched, 1),
            (Event::State, 4),
            (Event::Rule, 6),
            (Event::Vanished, 9),
        ];
        assert_eq!(all, expected);
        let again = [
            mark(Event::State, 10, "d", "running"),
            mark(Event::Watched, 11, "d", "disk"),
        ];
        let all = kept(&[&marks[..], &again].concat(), 0, &[], 1_000);
        let expected = [(Event::Rule, 6), (Event::Vanished, 9), (Event::Watched, 11)];
        assert_eq!(all, expected);
        // The next recorder makes new marks of the conditions that still hold.
        let begun = [mark(Event::Began, 12, "", "")];
        let all = kept(&[&marks[..], &begun].concat(), 12, &[], 1_000);
        assert_eq!(all, [(Event::Watched, 1), (Event::Began, 12)]);
    }

    #[test]
    fn sessions_of_which_something_is_left_keep_their_ends() {
        let session = |at_ns: u64| {
            [
                mark(Event::Began, at_ns, "", ""),
                mark(Event::WatchEnded, at_ns + 5, "", "daemon: it went away"),
                mark(Event::Ended, at_ns + 9, "", ""),
            ]
        };
        let marks = [session(10), session(20), session(30)].concat();
        let from = |since_ns| kept(&marks, since_ns, &[], 1_000);
        let moments = |kept: Vec<(Event, u64)>| -> Vec<u64> {
            kept.into_iter().map(|(_, at_ns)| at_ns).collect()
        };
        // The oldest I/O or count that is left is of the second session, after the end of the daemon.
        assert_eq!(moments(from(27)), [20, 25, 29, 30, 35, 39]);
        assert_eq!(moments(from(u64::MAX)), [30, 35, 39]);
        assert_eq!(from(0).len(), marks.len());
        assert_eq!(moments(kept(&marks, 0, &[], 100)), [30, 35, 39]);
    }

    #[test]
    fn times_without_single_ios_stay_known_unless_a_deleted_file_tells_them() {
        let segments = [
            Segment::usual(4, 10, 19),
            Segment::usual(5, 40, 49),
            Segment::usual(7, 70, 79),
        ];
        let marks = [
            mark(Event::SecondsOnly, 20, "", ""),
            mark(Event::SingleIos, 39, "", ""),
            mark(Event::SecondsOnly, 50, "", ""),
            mark(Event::SecondsOnly, 80, "", ""),
        ];
        let all = kept(&marks, 10, &segments, 1_000);
        let expected = [
            (Event::SecondsOnly, 20),
            (Event::SingleIos, 39),
            (Event::SecondsOnly, 80),
        ];
        assert_eq!(all, expected);
    }
}
