//! The random choices of a lab.

use dashpot_engine::{Duration, Random};

/// A source of random choices for labs.
pub(super) struct Dice(Random);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(Random::new(seed))
    }

    /// A number from `least` to `most`, both included.
    pub(super) fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.below(most - least + 1)
    }

    /// Returns true once in `times` cases.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.0.below(times) == 0
    }

    /// One of these values.
    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.below(all.len() as u64) as usize]
    }

    /// A time up to `most`, of any order of magnitude from 1 µs on.
    pub(super) fn time(&mut self, most: Duration) -> Duration {
        let magnitudes = u64::from((most.as_nanos() / 1_000).max(1).ilog2());
        let span = 1_000 << self.within(0, magnitudes);
        Duration::from_nanos(self.within(span / 2, span))
    }
}
