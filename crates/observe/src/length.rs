//! The actual length of an interval, beside the intended one.

use std::time::Duration;

use serde::{Serialize, Serializer, ser::SerializeStruct};

/// The length of an interval. JSON, in the object of the interval:
/// `"elapsed_ns": 6003000000, "missed": 5`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length {
    /// The actual length. Rates are divided by it.
    pub elapsed: Duration,
    /// The intended length, if there was one.
    pub asked: Option<Duration>,
    /// How many intervals are missing because this one took their place.
    pub missed: u64,
}

impl Length {
    /// A length without an intended one.
    pub fn of(elapsed: Duration) -> Length {
        Length {
            elapsed,
            ..Length::default()
        }
    }

    /// The same length as devices saw it, which are read one after another.
    pub fn seen(self, elapsed: Duration) -> Length {
        Length { elapsed, ..self }
    }

    /// Whether the actual length is off by more than 5 % and 50 ms.
    pub fn is_off(&self) -> bool {
        let tolerated = |asked: Duration| (asked / 20).max(TOLERATED);
        let is_off = |asked: Duration| self.elapsed.abs_diff(asked) > tolerated(asked);
        self.asked.is_some_and(is_off)
    }

    /// A line about that, for the text of a report or beside it.
    pub fn line(&self) -> Option<String> {
        let asked = self.asked.filter(|_| self.is_off())?.as_secs_f64();
        let elapsed = self.elapsed.as_secs_f64();
        let missed = match self.missed {
            0 => String::new(),
            1 => "; 1 interval was missed".to_owned(),
            missed => format!("; {missed} intervals were missed"),
        };
        Some(format!(
            "Interval: {elapsed:.3} s instead of {asked} s{missed}."
        ))
    }
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut length = serializer.serialize_struct("Length", 2)?;
        length.serialize_field("elapsed_ns", &(self.elapsed.as_nanos() as u64))?;
        length.serialize_field("missed", &self.missed)?;
        length.end()
    }
}

const TOLERATED: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn line(elapsed_ms: u64, asked_ms: u64, missed: u64) -> Option<String> {
        let length = Length {
            elapsed: Duration::from_millis(elapsed_ms),
            asked: Some(Duration::from_millis(asked_ms)),
            missed,
        };
        length.line()
    }

    #[test]
    fn only_a_length_that_is_off_is_worth_a_line() {
        for (elapsed_ms, asked_ms) in [(1_000, 1_000), (1_050, 1_000), (62_900, 60_000), (50, 5)] {
            assert_eq!(line(elapsed_ms, asked_ms, 0), None, "{elapsed_ms}");
        }
        let long = "Interval: 6.003 s instead of 1 s; 5 intervals were missed.";
        assert_eq!(line(6_003, 1_000, 5).as_deref(), Some(long));
        let short = "Interval: 0.310 s instead of 0.5 s.";
        assert_eq!(line(310, 500, 0).as_deref(), Some(short));
        assert_eq!(Length::of(Duration::from_secs(3)).line(), None);
    }
}
