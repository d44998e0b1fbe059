//! The zios that no histogram can know of yet.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Zios not yet replied to when a report was made. JSON: `{"zios": 3, "oldest_ns": 12500000,
/// "device": "c1t1d0", "wait": "held", "rule": 1}`, of which all but the first are null if there are
/// none, and `rule` if no rule holds the oldest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct InFlight {
    /// How many.
    pub(crate) zios: u64,
    /// Since when the first of them has been there, in nanoseconds.
    pub(crate) oldest_ns: Option<u64>,
    /// The device of the first.
    pub(crate) device: Option<String>,
    /// Where the first waits.
    pub(crate) wait: Option<String>,
    /// The rule that holds the first.
    pub(crate) rule: Option<u32>,
}

/// Of which zios in flight a report's text speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mention {
    /// Of those that were there for the whole interval: a younger one is in the next interval's
    /// report at the latest, and without an older one the text is exactly the original tool's.
    #[default]
    WholeInterval,
    /// Of all: no report comes after this one.
    All,
}

impl InFlight {
    /// A line for the end of the text of a report over `interval`, if there is one to mention.
    pub(crate) fn line(&self, mention: Mention, interval: Duration) -> Option<String> {
        let oldest = Duration::from_nanos(self.oldest_ns?);
        let is_mentioned = mention == Mention::All || oldest >= interval;
        is_mentioned.then(|| self.to_string())
    }
}

impl fmt::Display for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let oldest = Duration::from_nanos(self.oldest_ns.unwrap_or_default());
        let seconds = oldest.as_secs_f64();
        write!(f, "In flight: {}, the oldest for {seconds:.3} s", self.zios)?;
        if let Some(device) = &self.device {
            write!(f, " on {device}")?;
        }
        match (&self.wait, self.rule) {
            (Some(wait), Some(rule)) => write!(f, " ({wait}, rule {rule})")?,
            (Some(wait), None) => write!(f, " ({wait})")?,
            (None, _) => {}
        }
        write!(f, ".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hung() -> InFlight {
        InFlight {
            zios: 3,
            oldest_ns: Some(1_250_000_000),
            device: Some("d".to_owned()),
            wait: Some("hung".to_owned()),
            rule: Some(2),
        }
    }

    #[test]
    fn between_intervals_only_what_the_interval_did_not_see_is_worth_a_line() {
        let line = |seconds| hung().line(Mention::WholeInterval, Duration::from_secs(seconds));
        let text = "In flight: 3, the oldest for 1.250 s on d (hung, rule 2).";
        assert_eq!(line(1).as_deref(), Some(text));
        assert_eq!(line(5), None);
    }

    #[test]
    fn at_the_end_everything_in_flight_is() {
        let line = |in_flight: InFlight| in_flight.line(Mention::All, Duration::from_secs(5));
        assert!(line(hung()).is_some());
        assert_eq!(line(InFlight::default()), None);
    }

    #[test]
    fn what_no_rule_holds_says_where_it_waits() {
        let suspended = InFlight {
            wait: Some("suspended".to_owned()),
            rule: None,
            ..hung()
        };
        let text = suspended.to_string();
        assert!(text.ends_with(" on d (suspended)."), "{text}");
    }
}
