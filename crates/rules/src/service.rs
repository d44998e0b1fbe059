//! Service times and lanes: `20ms`, `20ms~5ms`, `uniform=A..B`, `lognormal=P50..P99`,
//! `p50=1ms,p99=30ms`, each with or without `:LANES`.

use std::sync::Arc;

use dashpot_engine::Duration;
use dashpot_engine::inject::{Delay, LANES_MAX, QuantileTable, Ramp, Service};

use super::ParseError;
use super::decimal::Decimal;
use super::distribution::{self, Knot};
use super::duration::parse_duration;

/// The value of one option `-D`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TypedDelay {
    pub delay: Delay,
    /// The words of the service time. They are kept because a quantile table cannot be turned back into
    /// words.
    pub words: String,
}

/// Parses a service time, and lanes after a colon.
pub(crate) fn parse_delay(text: &str) -> Result<TypedDelay, ParseError> {
    let Some((service, lanes)) = text.rsplit_once(':') else {
        return parse_hold(text, None);
    };
    if Decimal::parse(service).is_some() {
        return Err(ParseError::new(format!(
            "'{text}' has no unit: did you mean {service}ms:{lanes}?"
        )));
    }
    parse_hold(service, Some(parse_lanes(lanes, text)?))
}

/// Parses a service time, or the first and the last time of a ramp: `10ms..500ms`. How long the ramp takes is the
/// value of another option.
fn parse_hold(text: &str, lanes: Option<u32>) -> Result<TypedDelay, ParseError> {
    let is_ramp = text.contains("..") && !text.contains('=');
    let Some((from, to)) = text.split_once("..").filter(|_| is_ramp) else {
        let (service, words) = parse_service(text)?;
        let delay = Delay::new(service, lanes);
        return Ok(TypedDelay { delay, words });
    };
    let (from, to) = (parse_duration(from)?, parse_duration(to)?);
    let ramp = Ramp {
        from,
        lasts: Duration::ZERO,
        repeats: false,
    };
    Ok(TypedDelay {
        delay: Delay {
            ramp: Some(ramp),
            ..Delay::new(Service::Constant(to), lanes)
        },
        words: format!("{from}..{to}"),
    })
}

fn parse_lanes(lanes: &str, text: &str) -> Result<u32, ParseError> {
    let number = lanes.parse().ok().filter(|n| (1..=LANES_MAX).contains(n));
    number.ok_or_else(|| {
        ParseError::new(format!(
            "'{lanes}' lanes in '{text}' are not possible: give 1 to {LANES_MAX}, or leave \
             ':{lanes}' out for no queueing"
        ))
    })
}

/// Parses a service time. Also returns the words of the service time in canonical form.
pub fn parse_service(text: &str) -> Result<(Service, String), ParseError> {
    if let Some(span) = text.strip_prefix("uniform=") {
        let (low, high) = parse_span(span, text)?;
        return table(
            distribution::uniform(low, high),
            format!("uniform={low}..{high}"),
        );
    }
    if let Some(span) = text.strip_prefix("lognormal=") {
        let (p50, p99) = parse_span(span, text)?;
        refuse_zero(p50, text)?;
        return table(
            distribution::log_normal(p50, p99),
            format!("lognormal={p50}..{p99}"),
        );
    }
    if text.starts_with('p') && text.contains('=') {
        return parse_percentiles(text);
    }
    if let Some((middle, half)) = text.split_once('~') {
        return parse_spread(middle, half, text);
    }
    if let Some((kind, _)) = text.split_once('=') {
        return Err(ParseError::new(format!(
            "'{kind}' in '{text}' is not a distribution: write uniform=A..B, lognormal=P50..P99 or \
             p50=1ms,p99=30ms"
        )));
    }
    let constant = parse_duration(text)?;
    Ok((Service::Constant(constant), constant.to_string()))
}

/// Parses `20ms~5ms`: a uniform distribution from 15 to 25 ms.
fn parse_spread(middle: &str, half: &str, text: &str) -> Result<(Service, String), ParseError> {
    let (middle, half) = (parse_duration(middle)?, parse_duration(half)?);
    if half > middle {
        return Err(ParseError::new(format!(
            "'{text}' goes below zero: the time after '~' is at most {middle}"
        )));
    }
    if middle + half == Duration::MAX {
        return Err(ParseError::new(format!(
            "'{text}' is too long: at most 584 years"
        )));
    }
    let knots = distribution::uniform(middle - half, middle + half);
    table(knots, format!("{middle}~{half}"))
}

/// Parses `A..B` with A below B.
fn parse_span(span: &str, text: &str) -> Result<(Duration, Duration), ParseError> {
    let Some((low, high)) = span.split_once("..") else {
        return Err(ParseError::new(format!(
            "'{text}' has no '..': write two latencies, for example 1ms..30ms"
        )));
    };
    let (low, high) = (parse_duration(low)?, parse_duration(high)?);
    if low >= high {
        return Err(ParseError::new(format!(
            "'{text}': {low} is not below {high}"
        )));
    }
    Ok((low, high))
}

/// Parses `p50=1ms,p99=30ms`: a distribution that is constant outside of the given points, and log-linear
/// between them.
fn parse_percentiles(text: &str) -> Result<(Service, String), ParseError> {
    let mut points: Vec<Knot> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for word in text.split(',') {
        let (percent, q, latency) = parse_percentile(word)?;
        refuse_zero(latency, text)?;
        if points
            .last()
            .is_some_and(|last| last.0 >= q || last.1 > latency)
        {
            return Err(ParseError::new(format!(
                "'{word}' in '{text}' does not follow the one before it: percentiles must grow, \
                 and latencies must not shrink"
            )));
        }
        points.push((q, latency));
        words.push(format!("p{percent}={latency}"));
    }
    table(distribution::log_linear(&points), words.join(","))
}

/// Parses `p99.9=30ms`: the percentage as typed, its quantile as a fraction of 2^64, and the
/// latency.
fn parse_percentile(word: &str) -> Result<(&str, u64, Duration), ParseError> {
    let no_percentile = || {
        ParseError::new(format!(
            "'{word}' is not a percentile: write p50=1ms, p99.9=30ms and so on"
        ))
    };
    let point = word.strip_prefix('p').and_then(|rest| rest.split_once('='));
    let (percent, latency) = point.ok_or_else(no_percentile)?;
    let fraction = Decimal::parse(percent).and_then(Decimal::fraction);
    let (hits, cases) = fraction.ok_or_else(no_percentile)?;
    let q = (u128::from(hits) << 64) / (u128::from(cases) * 100);
    if q > 1 << 64 {
        return Err(ParseError::new(format!(
            "'{word}' is not a percentile: at most p100"
        )));
    }
    Ok((
        percent,
        u64::try_from(q).unwrap_or(u64::MAX),
        parse_duration(latency)?,
    ))
}

fn refuse_zero(latency: Duration, text: &str) -> Result<(), ParseError> {
    if latency == Duration::ZERO {
        return Err(ParseError::new(format!(
            "'{text}' has a latency of 0, which has no logarithm: give at least 1ns"
        )));
    }
    Ok(())
}

fn table(knots: Vec<Knot>, words: String) -> Result<(Service, String), ParseError> {
    let table = QuantileTable::new(knots)
        .map_err(|error| ParseError::new(format!("'{words}': {error}")))?;
    Ok((Service::Quantiles(Arc::new(table)), words))
}

#[cfg(test)]
mod tests {
    use super::{Delay, parse_delay};
    use dashpot_engine::Duration;
    use dashpot_engine::inject::Service;

    fn quantile(delay: &Delay, percent: u64) -> Duration {
        match &delay.service {
            Service::Constant(span) => *span,
            Service::Quantiles(table) => table.at(u64::MAX / 100 * percent),
        }
    }

    #[test]
    fn constants_with_and_without_lanes() {
        let ten = Service::Constant(Duration::from_millis(10));
        for (text, lanes) in [
            ("10ms", None),
            ("10ms:1", Some(1)),
            ("10ms:65534", Some(65_534)),
        ] {
            let delay = parse_delay(text).unwrap().delay;
            assert_eq!((&delay.service, delay.lanes), (&ten, lanes), "{text}");
        }
    }

    #[test]
    fn distributions_pass_through_their_points() {
        for (text, points_us) in [
            ("20ms~5ms", [(1, 15_100), (50, 20_000), (99, 24_900)]),
            (
                "uniform=0ms..100ms:4",
                [(1, 1_000), (50, 50_000), (99, 99_000)],
            ),
            (
                "lognormal=10ms..30ms",
                [(1, 3_333), (50, 10_000), (99, 30_000)],
            ),
            (
                "p50=1ms,p99=30ms:2",
                [(1, 1_000), (50, 1_000), (99, 30_000)],
            ),
            ("p100=7ms", [(1, 7_000), (50, 7_000), (99, 7_000)]),
        ] {
            let delay = parse_delay(text).unwrap().delay;
            for (percent, us) in points_us {
                let off = quantile(&delay, percent).as_nanos().abs_diff(us * 1_000);
                assert!(off <= us, "{text}: p{percent} is off by {off} ns");
            }
        }
    }

    #[test]
    fn words_are_canonical() {
        for (text, words) in [
            ("0.02s~5000us", "20ms~5ms"),
            ("uniform=1000us..30ms:4", "uniform=1ms..30ms"),
            ("lognormal=10ms..0.03s", "lognormal=10ms..30ms"),
            ("p50=1000us,p99.9=30ms", "p50=1ms,p99.9=30ms"),
        ] {
            let typed = parse_delay(text).unwrap();
            assert_eq!(typed.words, words);
            let again = parse_delay(words).unwrap().delay;
            assert_eq!(again.service, typed.delay.service);
        }
    }

    #[test]
    fn what_is_refused_says_what_to_write() {
        for (text, message) in [
            ("10", "'10' has no unit: did you mean 10ms?"),
            ("10:1", "'10:1' has no unit: did you mean 10ms:1?"),
            (
                "10ms:0",
                "'0' lanes in '10ms:0' are not possible: give 1 to 65534, or leave ':0' out for \
                 no queueing",
            ),
            (
                "10ms:65535",
                "'65535' lanes in '10ms:65535' are not possible: give 1 to 65534, or leave \
                 ':65535' out for no queueing",
            ),
            ("-1ms:1", "'-1ms' is negative: a time is 0s or more"),
            (
                "5ms~10ms",
                "'5ms~10ms' goes below zero: the time after '~' is at most 5ms",
            ),
            (
                "uniform=2ms..1ms",
                "'uniform=2ms..1ms': 2ms is not below 1ms",
            ),
            (
                "uniform=2ms",
                "'uniform=2ms' has no '..': write two latencies, for example 1ms..30ms",
            ),
            (
                "lognormal=0s..1ms",
                "'lognormal=0s..1ms' has a latency of 0, which has no logarithm: give at least \
                 1ns",
            ),
            (
                "normal=1ms..2ms",
                "'normal' in 'normal=1ms..2ms' is not a distribution: write uniform=A..B, \
                 lognormal=P50..P99 or p50=1ms,p99=30ms",
            ),
            (
                "p99=1ms,p50=2ms",
                "'p50=2ms' in 'p99=1ms,p50=2ms' does not follow the one before it: percentiles \
                 must grow, and latencies must not shrink",
            ),
            ("p101=1ms", "'p101=1ms' is not a percentile: at most p100"),
            (
                "p50=1ms,99=2ms",
                "'99=2ms' is not a percentile: write p50=1ms, p99.9=30ms and so on",
            ),
            ("p50=1", "'1' has no unit: did you mean 1ms?"),
        ] {
            assert_eq!(
                parse_delay(text).unwrap_err().to_string(),
                message,
                "{text}"
            );
        }
        for text in [
            "10ms:",
            "10ms:x",
            "10ms:-1",
            "10ms:1:1",
            ":1",
            "",
            "p50=,p99=1ms",
        ] {
            assert!(parse_delay(text).is_err(), "{text}");
        }
    }
}
