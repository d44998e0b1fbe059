//! The tolerance for a latency: a share of the latency, a time, or the larger of the two: `5%,500us`.

use std::fmt;

use dashpot_engine::Duration;

use super::ParseError;
use super::decimal::Decimal;
use super::duration::parse_duration;

/// A tolerance: a share of the latency or a time, whichever is larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// The share of the latency, in millionths.
    pub share_ppm: u64,
    /// The time in nanoseconds.
    pub time_ns: u64,
}

impl Allowance {
    /// The tolerance for a latency of `ns`, in nanoseconds.
    pub fn of(self, ns: u64) -> u64 {
        let share = u128::from(ns) * u128::from(self.share_ppm) / 1_000_000;
        u64::try_from(share).unwrap_or(u64::MAX).max(self.time_ns)
    }
}

/// Parses `5%`, `500us`, or `5%,500us` for the larger of the two.
pub fn parse_allowance(text: &str) -> Result<Allowance, ParseError> {
    let (mut share, mut time) = (None, None);
    for part in text.split(',') {
        let first_of_its_kind = match part.strip_suffix('%') {
            Some(percent) => share.replace(parse_percent(percent, text)?).is_none(),
            None => time.replace(parse_time(part, text)?).is_none(),
        };
        if !first_of_its_kind {
            return Err(refused(text));
        }
    }
    Ok(Allowance {
        share_ppm: share.unwrap_or_default(),
        time_ns: time.unwrap_or_default(),
    })
}

fn parse_percent(percent: &str, text: &str) -> Result<u64, ParseError> {
    let ppm = Decimal::parse(percent).and_then(|percent| percent.times(10_000).ok());
    ppm.ok_or_else(|| refused(text))
}

fn parse_time(time: &str, text: &str) -> Result<u64, ParseError> {
    let time = parse_duration(time).map_err(|_| refused(text))?;
    Ok(time.as_nanos())
}

fn refused(text: &str) -> ParseError {
    ParseError::new(format!(
        "'{text}' is not a tolerance: write 5%, 500us, or 5%,500us for the larger of both"
    ))
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = self.share_ppm as f64 / 1e4;
        write!(f, "{share}%,{}", Duration::from_nanos(self.time_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::{Allowance, parse_allowance};
    use proptest::prelude::*;

    #[test]
    fn the_larger_of_both_counts() {
        let both = parse_allowance("5%,500us").unwrap();
        assert_eq!(
            (both.of(1_000_000), both.of(20_000_000)),
            (500_000, 1_000_000)
        );
        assert_eq!(parse_allowance("2ms").unwrap().of(1 << 40), 2_000_000);
        assert_eq!(parse_allowance("0.5%").unwrap().of(1_000), 5);
        assert_eq!(parse_allowance("100%").unwrap().of(u64::MAX), u64::MAX);
    }

    #[test]
    fn what_is_refused_says_what_to_write() {
        for text in ["", "5", "5%,6%", "1ms,2ms", "x%", "-1%", "5%;1ms"] {
            assert!(parse_allowance(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_parses_back(share_ppm in 0_u64..1_000_000_000, time_ns: u64) {
            let allowance = Allowance { share_ppm, time_ns };
            prop_assert_eq!(parse_allowance(&allowance.to_string()), Ok(allowance));
        }
    }
}
