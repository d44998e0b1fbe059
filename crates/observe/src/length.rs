//! The actual length of an interval, and the intended length.

use std::time::Duration;

use serde::{Serialize, Serializer, ser::SerializeStruct};

/// The length of an interval. JSON, in the object of the interval:
/// `"elapsed_ns": 6003000000, "missed": 5, "stopped_ns": 0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length {
    /// The actual length. Rates are amounts divided by this length.
    pub elapsed: Duration,
    /// The intended length, if there was one.
    pub asked: Option<Duration>,
    /// How many intervals are missing because this one ended only after they were due.
    pub missed: u64,
    /// How long the host kept a daemon from running in this interval. Requests that clients sent in that
    /// time waited unread, and no latency contains that wait.
    pub stopped: Duration,
}

impl Length {
    /// An actual length without an intended length.
    pub fn of(elapsed: Duration) -> Length {
        Length {
            elapsed,
            ..Length::default()
        }
    }

    /// This length, but with `elapsed` as the time between two readings of the devices. This time can differ
    /// from the interval's, because a source reads the devices one after another.
    pub fn seen(self, elapsed: Duration) -> Length {
        Length { elapsed, ..self }
    }

    /// Whether the actual length differs from the intended length by more than 5 % and by more than 50 ms.
    pub fn is_off(&self) -> bool {
        let tolerated = |asked: Duration| (asked / 20).max(TOLERATED);
        let is_off = |asked: Duration| self.elapsed.abs_diff(asked) > tolerated(asked);
        self.asked.is_some_and(is_off)
    }

    /// A line about an unintended length or a stop, to print in a report's text or after it.
    pub fn line(&self) -> Option<String> {
        let lines = [self.line_of_length(), stop_line(self.stopped)];
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        (!lines.is_empty()).then(|| lines.join(" "))
    }

    fn line_of_length(&self) -> Option<String> {
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
        let mut length = serializer.serialize_struct("Length", 3)?;
        length.serialize_field("elapsed_ns", &(self.elapsed.as_nanos() as u64))?;
        length.serialize_field("missed", &self.missed)?;
        length.serialize_field("stopped_ns", &(self.stopped.as_nanos() as u64))?;
        length.end()
    }
}

/// A sentence about a time in which the host kept a daemon from running, if the time is long enough.
pub fn stop_line(stopped: Duration) -> Option<String> {
    (stopped >= TOLERATED).then(|| {
        format!(
            "The host stopped dashpot for {:.3} s: clients waited, and no latency shows that.",
            stopped.as_secs_f64()
        )
    })
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
            ..Length::default()
        };
        length.line()
    }

    #[test]
    fn a_stop_is_worth_a_line_of_its_own() {
        let of = |stopped_ms| Length {
            stopped: Duration::from_millis(stopped_ms),
            ..Length::of(Duration::from_secs(1))
        };
        assert_eq!(of(49).line(), None);
        let stop =
            "The host stopped dashpot for 0.503 s: clients waited, and no latency shows that.";
        assert_eq!(of(503).line().as_deref(), Some(stop));
        let late = Length {
            asked: Some(Duration::from_millis(500)),
            ..of(503)
        };
        let both = format!("Interval: 1.000 s instead of 0.5 s. {stop}");
        assert_eq!(late.line(), Some(both));
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
