//! The I/Os that began before the watch, and have not ended.
//!
//! No event shows them until they end, so only the kernel's count of I/Os in flight knows them. At a moment,
//! this count has the earlier I/Os, and at least those I/Os of the watch that were in flight before and after
//! that moment. So the count without the latter is never less than the number of earlier I/Os, and the least of
//! many such differences is that number.

/// How many I/Os of a device began before the watch and have not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Earlier {
    least: Option<u64>,
    last: Option<u64>,
}

impl Earlier {
    /// No I/Os, for a device that appeared during the watch.
    pub(crate) const NONE: Earlier = Earlier {
        least: Some(0),
        last: Some(0),
    };

    /// The number, if the kernel counts the device's I/Os.
    pub(crate) fn number(self) -> Option<u64> {
        self.least
    }

    /// Whether a further count could change the number.
    pub(crate) fn is_open(self) -> bool {
        self.least != Some(0)
    }

    /// Takes a count of the kernel, and the number of the watch's I/Os that were in flight before and after
    /// it. The kernel raises an event shortly before or after it counts, so one difference may be too small:
    /// of two in a row, the larger counts.
    pub(crate) fn take(&mut self, counted: u64, certain: u64) {
        let now = counted.saturating_sub(certain);
        let last = self.last.replace(now).unwrap_or(now);
        let both = now.max(last);
        self.least = Some(self.least.map_or(both, |least| least.min(both)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The number is never less than the truth, whatever the device's own load, and it is the truth once two
        /// counts in a row were taken while all the watch's I/Os were certain.
        #[test]
        fn it_is_the_number_of_those_that_have_not_ended(
            counts in prop::collection::vec((0..3_u64, 0..40_u64, 0..40_u64), 1..20),
        ) {
            let mut left: u64 = counts.iter().map(|(ends, ..)| ends).sum::<u64>() + 1;
            let mut earlier = Earlier::default();
            for (ends, own, certain) in counts {
                left -= ends;
                earlier.take(left + own, certain.min(own));
                prop_assert!(earlier.number() >= Some(left));
            }
            for _ in 0..2 {
                earlier.take(left + 5, 5);
            }
            prop_assert_eq!(earlier.number(), Some(left));
        }
    }

    #[test]
    fn a_single_count_that_is_too_small_does_not_clear_the_alarm() {
        let mut earlier = Earlier::default();
        for (counted, certain) in [(1, 0), (1, 1), (1, 0)] {
            earlier.take(counted, certain);
        }
        assert_eq!(earlier.number(), Some(1));
    }
}
