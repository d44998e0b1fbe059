//! The pace of a simulation: how many simulated seconds pass in a real second.

use std::time::Instant as WallClock;

use dashpot_engine::Instant;
use dashpot_rules::Speed;

/// A moment on the wall clock, the moment of virtual time that belongs to it, and the speed from then on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    wall: WallClock,
    virtual_time: Instant,
    speed: Speed,
}

impl Pace {
    /// Begins at these moments.
    pub(super) fn new(wall: WallClock, virtual_time: Instant, speed: Speed) -> Pace {
        Pace {
            wall,
            virtual_time,
            speed,
        }
    }

    /// The moment that the simulation should have reached.
    pub(super) fn at(&self, now: WallClock) -> Instant {
        let elapsed = now.saturating_duration_since(self.wall);
        self.virtual_time + self.speed.simulated(elapsed)
    }

    /// The time at which the simulation should reach a moment.
    pub(super) fn reaches(&self, moment: Instant) -> WallClock {
        self.wall + self.speed.takes(moment.since(self.virtual_time))
    }

    /// The same speed, counted from these moments on: the simulation does not make up for lost time.
    pub(super) fn again(&self, wall: WallClock, virtual_time: Instant) -> Pace {
        Pace::new(wall, virtual_time, self.speed)
    }
}

#[cfg(test)]
mod tests {
    use dashpot_engine::{Duration, Instant};
    use dashpot_rules::parse_speed;

    use super::Pace;
    use std::time::Instant as WallClock;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn virtual_time_follows_the_clock() {
        let began = WallClock::now();
        let wall = |millis| began + std::time::Duration::from_millis(millis);
        for (speed, millis) in [("1", 2_000), ("10", 20_000), ("0.25", 500)] {
            let pace = Pace::new(wall(1_000), at(100), parse_speed(speed).unwrap());
            assert_eq!(pace.at(wall(3_000)), at(100 + millis), "{speed}");
            assert_eq!(pace.reaches(at(100 + millis)), wall(3_000), "{speed}");
            // The clock may have been read before the pace was set.
            assert_eq!(pace.at(wall(999)), at(100));
            let again = pace.again(wall(5_000), at(200));
            assert_eq!(again.at(wall(7_000)), at(200 + millis), "{speed}");
        }
    }
}
