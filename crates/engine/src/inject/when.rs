//! When a rule applies.

use core::ops::Range;

use crate::random::Random;
use crate::time::{Duration, Instant};

/// The time in which a rule applies, counted from its arming or its last update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// The time until the rule begins to apply.
    pub after: Duration,
    /// How long the rule then lasts; `None` for ever.
    pub lasts: Option<Duration>,
    /// The part of that time in which the rule applies; `None` for all of it.
    pub cycle: Option<Cycle>,
}

impl When {
    /// Whether the rule, once it has begun, neither ends nor rests by itself.
    pub fn is_for_ever(self) -> bool {
        self.lasts.is_none() && self.cycle.is_none()
    }
}

/// A rule that applies and rests by turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// How long the rule applies in each period.
    pub on: Duration,
    pub period: Duration,
    /// In each period the rule begins to apply after a random time of at most this length.
    pub jitter: Duration,
}

/// Why a cycle is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleError {
    /// The rule would never apply, or never rest.
    On,
    /// With its jitter, the rule would still apply when the next period begins.
    Jitter,
}

impl Cycle {
    pub(crate) fn check(self) -> Result<(), CycleError> {
        if self.on == Duration::ZERO || self.on >= self.period {
            return Err(CycleError::On);
        }
        if self.jitter > self.period - self.on {
            return Err(CycleError::Jitter);
        }
        Ok(())
    }

    /// The turn of the period at `now`: when the rule begins to apply, and when it rests again. The first period
    /// begins at `from`, and `now` is not earlier. The seed gives the jitter of each period.
    pub fn turn(self, from: Instant, now: Instant, seed: u64) -> Range<Instant> {
        debug_assert!(from <= now, "no period has begun");
        let number = now.since(from).as_nanos() / self.period.as_nanos();
        let jitter = match self.jitter.as_nanos() {
            0 => 0,
            most => Random::new(seed ^ number.wrapping_mul(STRIDE)).below(most.saturating_add(1)),
        };
        let begun = number * self.period.as_nanos();
        let begins = from + Duration::from_nanos(begun) + Duration::from_nanos(jitter);
        begins..begins + self.on
    }
}

/// The distance between the seeds of neighbouring periods, so that their draws differ.
const STRIDE: u64 = 0xd134_2543_de82_ef95;
