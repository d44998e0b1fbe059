//! Stops: periods in which the host kept the driver from running.
//!
//! If a zio is late mostly because of a stop, neither its rule nor the engine is to blame. Each rule
//! therefore counts such zios separately. Only the last few stops are kept, because a zio that falls due
//! during a stop is replied to soon after the stop.

use crate::time::{Duration, Instant};

/// The last few stops, in a ring.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stops {
    last: [Stop; KEPT],
    /// The index in `last` at which the next stop will be kept.
    next: usize,
    /// When the latest stop ended.
    until: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stop {
    from: Instant,
    until: Instant,
}

impl Stops {
    pub(crate) fn add(&mut self, from: Instant, until: Instant) {
        self.last[self.next] = Stop { from, until };
        self.next = (self.next + 1) % KEPT;
        self.until = self.until.max(until);
    }

    /// Whether the driver was stopped for more than half of the time from `ended - late` to `ended`.
    #[inline]
    pub(crate) fn explain(&self, late: Duration, ended: Instant) -> bool {
        let due = Instant::from_nanos(ended.as_nanos().saturating_sub(late.as_nanos()));
        due < self.until && self.stopped_between(due, ended).as_nanos() > late.as_nanos() / 2
    }

    #[cold]
    fn stopped_between(&self, from: Instant, until: Instant) -> Duration {
        let parts = self
            .last
            .iter()
            .map(|stop| stop.until.min(until).since(stop.from.max(from)).as_nanos());
        Duration::from_nanos(parts.sum())
    }
}

const KEPT: usize = 8;

#[cfg(test)]
mod tests {
    use super::{KEPT, Stops};
    use crate::time::{Duration, Instant};

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// Whether stops explain the lateness of a zio that was due at `due` and ended at `ended`.
    fn explains(stops: &Stops, due: u64, ended: u64) -> bool {
        stops.explain(Duration::from_nanos(ended - due), at(ended))
    }

    #[test]
    fn a_stop_explains_what_was_late_because_of_it() {
        let mut stops = Stops::default();
        assert!(!explains(&stops, 0, 10));
        stops.add(at(100), at(200));
        for (due, ended, explained) in [
            (50, 100, false),
            (50, 101, false),
            (50, 140, false),
            (50, 151, true),
            (50, 200, true),
            (150, 210, true),
            (199, 900, false),
            (200, 201, false),
        ] {
            assert_eq!(explains(&stops, due, ended), explained, "{due} to {ended}");
        }
    }

    #[test]
    fn an_older_stop_is_remembered_for_a_while() {
        let mut stops = Stops::default();
        for n in 0..KEPT as u64 {
            stops.add(at(100 * n), at(100 * n + 50));
        }
        assert!(explains(&stops, 10, 60));
        stops.add(at(10_000), at(10_001));
        assert!(!explains(&stops, 10, 60));
        assert!(explains(&stops, 110, 160));
    }
}
