//! Times: a number and its unit, such as `10ms`, `1.5s`, `250us`.
//!
//! A bare number is refused, because similar tools disagree on its unit (dm-delay: ms, SPDK: µs, nbdkit: s,
//! null_blk: ns).

use dashpot_engine::Duration;

use super::ParseError;
use super::decimal::{Decimal, Inexact, split_unit};

/// Parses a time with its unit. Most times are latencies of I/Os, so the error for a missing unit proposes
/// milliseconds.
pub fn parse_duration(text: &str) -> Result<Duration, ParseError> {
    parse(text, "ms")
}

/// Like [`parse_duration`], but for a time that a person waits for something: the error for a missing unit
/// proposes seconds.
pub fn parse_wait(text: &str) -> Result<Duration, ParseError> {
    parse(text, "s")
}

/// Parses a time. `likely` is the unit that the error for a missing unit proposes.
fn parse(text: &str, likely: &str) -> Result<Duration, ParseError> {
    if text.starts_with('-') {
        return Err(ParseError::new(format!(
            "'{text}' is negative: a time is 0s or more"
        )));
    }
    let (number, unit) = split_unit(text);
    let Some(decimal) = Decimal::parse(number) else {
        return Err(not_a_time(text, number));
    };
    let unit_ns = nanos_of(unit).ok_or_else(|| wrong_unit(text, number, unit, likely))?;
    let nanos = decimal.times(unit_ns).map_err(|inexact| match inexact {
        Inexact::TooFine => ParseError::new(format!("'{text}' is finer than 1ns")),
        Inexact::TooLarge => too_long(text),
    })?;
    Ok(Duration::from_nanos(nanos))
}

/// Parses a bound for latencies: like [`parse_duration`], but refuses zero.
pub fn parse_latency(text: &str) -> Result<Duration, ParseError> {
    let latency = parse_duration(text)?;
    if latency == Duration::ZERO {
        return Err(ParseError::new(format!(
            "'{text}' is shorter than every I/O: give more than 0s"
        )));
    }
    Ok(latency)
}

/// Parses how long something lasts: like [`parse_wait`], but refuses zero.
pub fn parse_span(text: &str) -> Result<Duration, ParseError> {
    let span = parse_wait(text)?;
    if span == Duration::ZERO {
        return Err(ParseError::new(format!(
            "'{text}' ends at once: give more than 0s"
        )));
    }
    Ok(span)
}

/// Parses the interval of a report: like [`parse_duration`], but a bare number is in seconds, as in
/// the original tools (iostat, iolatency).
pub fn parse_interval(text: &str) -> Result<Duration, ParseError> {
    let seconds = if Decimal::parse(text).is_some() {
        "s"
    } else {
        ""
    };
    let interval = parse_duration(&format!("{text}{seconds}"))?;
    if interval == Duration::ZERO {
        return Err(ParseError::new(format!(
            "'{text}' is not an interval: give more than 0"
        )));
    }
    Ok(interval)
}

/// Parses a number of reports.
pub fn parse_report_count(text: &str) -> Result<u64, ParseError> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| {
        ParseError::new(format!(
            "'{text}' is not a number of reports: give 1 or more"
        ))
    })
}

fn nanos_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // A user may write the µ as "u", as the micro sign (U+00B5) or as the Greek letter (U+03BC).
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn not_a_time(text: &str, number: &str) -> ParseError {
    let only_digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    if only_digits {
        return too_long(text);
    }
    ParseError::new(format!("'{text}' is not a time: write 10ms, 1.5s or 250us"))
}

fn wrong_unit(text: &str, number: &str, unit: &str, likely: &str) -> ParseError {
    if unit.is_empty() {
        return ParseError::new(format!(
            "'{text}' has no unit: did you mean {number}{likely}?"
        ));
    }
    ParseError::new(format!(
        "'{unit}' in '{text}' is not a unit of time: those are ns, us, ms, s, m (minutes) and h (hours)"
    ))
}

fn too_long(text: &str) -> ParseError {
    ParseError::new(format!("'{text}' is too long: at most 584 years"))
}

#[cfg(test)]
mod tests {
    use super::{parse_duration, parse_interval, parse_span, parse_wait};
    use proptest::prelude::*;

    #[test]
    fn every_unit() {
        for (text, nanos) in [
            ("0s", 0),
            ("7ns", 7),
            ("250us", 250_000),
            ("5µs", 5_000),
            ("5μs", 5_000),
            ("10ms", 10_000_000),
            ("1.5ms", 1_500_000),
            ("0.000000001s", 1),
            ("2m", 120_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("18446744073709551615ns", u64::MAX),
        ] {
            assert_eq!(
                parse_duration(text).map(|d| d.as_nanos()),
                Ok(nanos),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_refused_says_what_to_write() {
        for (text, message) in [
            ("10", "'10' has no unit: did you mean 10ms?"),
            ("1.5", "'1.5' has no unit: did you mean 1.5ms?"),
            ("-5ms", "'-5ms' is negative: a time is 0s or more"),
            ("0.5ns", "'0.5ns' is finer than 1ns"),
            (
                "584542046091s",
                "'584542046091s' is too long: at most 584 years",
            ),
            (
                "99999999999999999999ms",
                "'99999999999999999999ms' is too long: at most 584 years",
            ),
            ("", "'' is not a time: write 10ms, 1.5s or 250us"),
            ("ms", "'ms' is not a time: write 10ms, 1.5s or 250us"),
            (
                "1e3ms",
                "'e3ms' in '1e3ms' is not a unit of time: those are ns, us, ms, s, m (minutes) and h (hours)",
            ),
            (
                "10 ms",
                "' ms' in '10 ms' is not a unit of time: those are ns, us, ms, s, m (minutes) and h (hours)",
            ),
        ] {
            let error = parse_duration(text).map_err(|e| e.to_string());
            assert_eq!(error, Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn seconds_are_proposed_where_seconds_are_meant() {
        for parse in [parse_span, parse_wait] {
            let error = parse("5").map_err(|error| error.to_string());
            let expected = "'5' has no unit: did you mean 5s?";
            assert_eq!(error, Err(expected.to_owned()));
        }
    }

    #[test]
    fn what_lasts_does_not_end_at_once() {
        assert_eq!(parse_span("1ns"), parse_duration("1ns"));
        assert!(parse_span("0s").is_err());
    }

    #[test]
    fn a_bare_interval_is_in_seconds() {
        assert_eq!(parse_interval("2"), parse_duration("2s"));
        assert_eq!(parse_interval("0.5"), parse_duration("500ms"));
        assert_eq!(parse_interval("250ms"), parse_duration("250ms"));
        assert!(parse_interval("0").is_err());
    }

    proptest! {
        #[test]
        fn what_is_shown_parses_back(nanos: u64) {
            let span = dashpot_engine::Duration::from_nanos(nanos);
            prop_assert_eq!(parse_duration(&span.to_string()), Ok(span));
        }
    }
}
