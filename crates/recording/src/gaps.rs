//! The gaps of a recording: times for which it has the counts of each second but no single I/Os.

use std::ops::Range;

use crate::evict::Segment;
use crate::marks::{Event, Mark};

/// The times that no file of I/Os covers, because the files of these times were deleted to keep the recording
/// small, or were never written because the recorder took too much CPU time. The times are in nanoseconds
/// since 1970. `segments` must be in chronological order.
pub(crate) fn gaps(segments: &[Segment], marks: &[Mark]) -> Vec<Range<u64>> {
    let omitted: Vec<u64> = marks
        .iter()
        .filter(|mark| mark.event == Event::SecondsOnly)
        .map(|mark| mark.at_ns)
        .collect();
    let (mut number, mut end_ns) = (0, 0);
    let mut gaps = Vec::new();
    for segment in segments {
        let between = end_ns..segment.from_ns;
        let is_gap = segment.number != number + 1 || omitted.iter().any(|at| between.contains(at));
        if is_gap && !between.is_empty() {
            gaps.push(between);
        }
        (number, end_ns) = (segment.number, segment.to_ns.saturating_add(1).max(end_ns));
    }
    if omitted.iter().any(|at| *at >= end_ns) {
        gaps.push(end_ns..u64::MAX);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds_only(at_ns: u64) -> Mark {
        Mark {
            at_ns,
            clock_ns: 0,
            event: Event::SecondsOnly,
            device: None,
            n: None,
            text: None,
        }
    }

    #[test]
    fn files_that_follow_each_other_have_no_gap() {
        assert!(gaps(&[Segment::usual(1, 10, 20), Segment::usual(2, 35, 40)], &[]).is_empty());
        assert!(gaps(&[], &[]).is_empty());
    }

    #[test]
    fn deleted_files_and_omitted_ios_leave_gaps() {
        let left = [
            Segment::usual(3, 10, 20),
            Segment::usual(4, 21, 30),
            Segment::usual(7, 60, 70),
        ];
        assert_eq!(gaps(&left, &[]), [0..10, 31..60]);
        let all = [Segment::usual(1, 10, 20), Segment::usual(2, 90, 95)];
        let middle = gaps(&all, &[seconds_only(25)]);
        let end = gaps(&all, &[seconds_only(97)]);
        assert_eq!([middle, end].concat(), [21..90, 96..u64::MAX]);
    }
}
