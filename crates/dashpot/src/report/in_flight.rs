//! The zios that no histogram can know of yet.

use std::time::Duration;

use serde::Serialize;

/// Zios not yet replied to when a report was made. JSON: `{"zios": 3, "oldest_ns": 12500000}`,
/// with `oldest_ns` null if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct InFlight {
    /// How many.
    pub(crate) zios: u64,
    /// Since when the first of them has been there, in nanoseconds.
    pub(crate) oldest_ns: Option<u64>,
}

impl InFlight {
    /// A line for the end of a report's text, if a zio has been in flight for the whole interval:
    /// no histogram has seen it so far. A younger one will be in the next interval's, so a report
    /// without such zios looks exactly like the original tool's.
    pub(crate) fn warning(&self, interval: Duration) -> Option<String> {
        let oldest = Duration::from_nanos(self.oldest_ns?);
        (oldest >= interval).then(|| {
            let (zios, seconds) = (self.zios, oldest.as_secs_f64());
            format!("In flight: {zios}, the oldest for {seconds:.3} s.")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_interval_did_not_see_is_worth_a_line() {
        let in_flight = InFlight {
            zios: 3,
            oldest_ns: Some(1_250_000_000),
        };
        let line = in_flight.warning(Duration::from_secs(1));
        assert_eq!(
            line.as_deref(),
            Some("In flight: 3, the oldest for 1.250 s.")
        );
        assert_eq!(in_flight.warning(Duration::from_secs(5)), None);
        assert_eq!(InFlight::default().warning(Duration::ZERO), None);
    }
}
