//! The speed at which a user watches a simulation.

use std::time::Duration as WallTime;

use dashpot_engine::Duration;

use super::ParseError;
use super::decimal::Decimal;

/// How many simulated seconds pass in each real second, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    simulated: u64,
    of_clock: u64,
}

impl Speed {
    /// One simulated second per real second.
    pub const ONE: Speed = Speed {
        simulated: 1,
        of_clock: 1,
    };

    /// The simulated time that passes in this real time.
    pub fn simulated(self, time: WallTime) -> Duration {
        let nanos = time.as_nanos() * u128::from(self.simulated) / u128::from(self.of_clock);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The real time in which this simulated time passes.
    pub fn takes(self, simulated: Duration) -> WallTime {
        let nanos = u128::from(simulated.as_nanos()) * u128::from(self.of_clock);
        let nanos = nanos.div_ceil(u128::from(self.simulated));
        WallTime::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Parses a number such as `10` or `0.1`.
pub fn parse_speed(text: &str) -> Result<Speed, ParseError> {
    let number = Decimal::parse(text.strip_suffix('x').unwrap_or(text));
    let thousandths = number.and_then(|number| number.times(1_000).ok());
    match thousandths {
        Some(simulated @ 1..=THOUSANDTHS_MAX) => Ok(Speed {
            simulated,
            of_clock: 1_000,
        }),
        _ => Err(ParseError::new(format!(
            "'{text}' is not a speed: give simulated seconds per second, 0.001 to 1000"
        ))),
    }
}

const THOUSANDTHS_MAX: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::{Speed, parse_speed};
    use dashpot_engine::Duration;
    use std::time::Duration as WallTime;

    #[test]
    fn a_speed_is_a_number() {
        for (text, simulated_ms) in [
            ("1", 2_000),
            ("1000", 2_000_000),
            ("0.001", 2),
            ("2.5x", 5_000),
        ] {
            let speed = parse_speed(text).unwrap();
            let simulated = Duration::from_millis(simulated_ms);
            assert_eq!(speed.simulated(WallTime::from_secs(2)), simulated);
            assert_eq!(speed.takes(simulated), WallTime::from_secs(2));
        }
        for text in ["", "x", "0", "-1", "0.0001", "1001", "1e3", "fast"] {
            let error = parse_speed(text).unwrap_err().to_string();
            assert!(error.contains("0.001 to 1000"), "{text}: {error}");
        }
    }

    #[test]
    fn a_moment_is_reached_when_it_is_not_before() {
        let third = parse_speed("3").unwrap();
        let takes = third.takes(Duration::from_nanos(10));
        assert_eq!(takes, WallTime::from_nanos(4));
        assert!(third.simulated(takes) >= Duration::from_nanos(10));
        assert_eq!(
            Speed::ONE.takes(Duration::from_nanos(7)),
            WallTime::from_nanos(7)
        );
    }
}
