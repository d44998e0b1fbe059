//! The times at which requests should start.

use dashpot_engine::{Duration, Instant, Random};

/// When requests start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A request starts whenever the number of requests in flight is below the depth.
    Closed,
    /// Requests start in bursts of a random size. A burst starts when all requests of the previous burst are
    /// answered.
    ClosedBursts {
        /// The minimum and the maximum number of requests in a burst.
        burst: (u32, u32),
    },
    /// Requests start at this rate, in bursts of a random size, without waiting for earlier replies.
    Open {
        /// Requests per second on average.
        rate: u32,
        /// The minimum and the maximum number of requests in a burst. With `(1, 1)`, requests are evenly
        /// spaced.
        burst: (u32, u32),
    },
}

/// The start times of the next requests.
#[derive(Debug)]
pub(super) struct Arrivals {
    pace: Pace,
    random: Random,
    /// The start of the current burst.
    at: Instant,
    /// How many requests of the current burst have not begun yet.
    left: u32,
}

impl Arrivals {
    pub(super) fn new(pace: Pace, start: Instant, seed: u64) -> Arrivals {
        let mut arrivals = Arrivals {
            pace,
            random: Random::new(!seed),
            at: start,
            left: 0,
        };
        arrivals.left = arrivals.burst();
        arrivals
    }

    /// The intended start of the next request; `None` if no request should begin now.
    pub(super) fn next(&mut self, now: Instant, in_flight: u32) -> Option<Instant> {
        match self.pace {
            Pace::Closed => Some(now),
            Pace::ClosedBursts { .. } => {
                if self.left == 0 && in_flight == 0 {
                    self.left = self.burst();
                }
                self.left = self.left.checked_sub(1)?;
                Some(now)
            }
            Pace::Open { rate, .. } => {
                if self.at > now {
                    return None;
                }
                let start = self.at;
                self.left = self.left.saturating_sub(1);
                if self.left == 0 {
                    self.left = self.burst();
                    let gap = u64::from(self.left) * 1_000_000_000 / u64::from(rate.max(1));
                    self.at = self.at + Duration::from_nanos(gap);
                }
                Some(start)
            }
        }
    }

    /// When the next request may begin; [`Instant::NEVER`] if that depends on replies.
    pub(super) fn next_at(&self) -> Instant {
        match self.pace {
            Pace::Open { .. } => self.at,
            Pace::Closed | Pace::ClosedBursts { .. } => Instant::NEVER,
        }
    }

    fn burst(&mut self) -> u32 {
        let (least, most) = match self.pace {
            Pace::Closed => (1, 1),
            Pace::ClosedBursts { burst } | Pace::Open { burst, .. } => burst,
        };
        least + self.random.below(u64::from(most.saturating_sub(least)) + 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrivals, Pace};
    use dashpot_engine::Instant;

    #[test]
    fn an_open_loop_keeps_its_rate_however_late_it_is_asked() {
        let pace = Pace::Open {
            rate: 1_000,
            burst: (1, 4),
        };
        let mut arrivals = Arrivals::new(pace, Instant::ZERO, 1);
        let late = Instant::from_nanos(10_000_000_000);
        let starts: Vec<Instant> = std::iter::from_fn(|| arrivals.next(late, 9)).collect();
        assert!((9_990..=10_010).contains(&starts.len()), "{}", starts.len());
        assert!(starts.is_sorted());
        assert!(arrivals.next_at() > late);
    }

    #[test]
    fn a_closed_burst_waits_for_the_last_one() {
        let pace = Pace::ClosedBursts { burst: (3, 3) };
        let mut arrivals = Arrivals::new(pace, Instant::ZERO, 1);
        let mut next = |in_flight| arrivals.next(Instant::ZERO, in_flight).is_some();
        assert!(next(0) && next(1) && next(2));
        assert!(!next(3) && !next(1));
        assert!(next(0));
    }
}
