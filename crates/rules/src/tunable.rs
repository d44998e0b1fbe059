//! The tunables of a pool. Tunables have the names that ZFS gives them, and their values have units.

use dashpot_engine::Duration;
use dashpot_engine::pool::{Tunable, Unit};

use super::{ParseError, format_size, nearest, parse_duration, parse_size};

/// A tunable and its value, from `NAME=VALUE`.
pub fn parse_tunable_setting(text: &str) -> Result<(Tunable, u64), ParseError> {
    let (name, value) = text.split_once('=').ok_or_else(|| {
        ParseError::new(format!(
            "'{text}' has no value: write it as zfs_delay_scale=500us"
        ))
    })?;
    let tunable = parse_tunable_name(name)?;
    let value = parse_new_value(tunable, value)
        .map_err(|error| ParseError::new(format!("{name}: {error}")))?;
    Ok((tunable, value))
}

pub fn parse_tunable_name(name: &str) -> Result<Tunable, ParseError> {
    Tunable::from_name(name).ok_or_else(|| {
        let known = Tunable::ALL.iter().map(|tunable| tunable.info().name);
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean '{near}'?"),
            None => "`dashpot sim --tunables` lists all".to_owned(),
        };
        ParseError::new(format!("no tunable '{}': {hint}", name.escape_debug()))
    })
}

/// Parses the value of a tunable in a lab file, which must be within the tunable's bounds.
pub fn parse_tunable(tunable: Tunable, text: &str) -> Result<u64, ParseError> {
    let value = parse_in(tunable.info().unit, text)?;
    within_bounds(tunable, value, text)
}

/// Parses a new value for a tunable of a running pool. The value is written as in a lab file or, as for ZFS's
/// module parameters, is a bare number in the tunable's own unit.
pub fn parse_new_value(tunable: Tunable, text: &str) -> Result<u64, ParseError> {
    match (text.parse(), tunable.info().unit) {
        (Ok(number), unit) if !matches!(unit, Unit::Choice(_)) => {
            within_bounds(tunable, number, text)
        }
        _ => parse_tunable(tunable, text),
    }
}

fn within_bounds(tunable: Tunable, value: u64, text: &str) -> Result<u64, ParseError> {
    let info = tunable.info();
    if !(info.min..=info.max).contains(&value) {
        return Err(ParseError::new(format!(
            "'{text}' is out of bounds: give {} to {}",
            format_tunable(info.min, info.unit),
            format_tunable(info.max, info.unit)
        )));
    }
    Ok(value)
}

fn parse_in(unit: Unit, text: &str) -> Result<u64, ParseError> {
    match unit {
        Unit::Bytes => parse_size(text),
        Unit::Percent => parse_count(text.strip_suffix('%').unwrap_or(text), text),
        Unit::Nanoseconds => parse_duration(text).map(Duration::as_nanos),
        Unit::Milliseconds => whole(text, 1_000_000),
        Unit::Seconds => whole(text, 1_000_000_000),
        Unit::Count => parse_count(text, text),
        Unit::Choice(words) => parse_choice(text, words),
    }
}

fn parse_count(digits: &str, text: &str) -> Result<u64, ParseError> {
    digits
        .parse()
        .map_err(|_| ParseError::new(format!("'{text}' is not a whole number: give one")))
}

/// Parses a time, and returns it as a number of units. A unit has `unit_ns` nanoseconds. Refuses a time that
/// is not a whole number of units.
fn whole(text: &str, unit_ns: u64) -> Result<u64, ParseError> {
    let span = parse_duration(text)?.as_nanos();
    if !span.is_multiple_of(unit_ns) {
        let unit = format_tunable(unit_ns, Unit::Nanoseconds);
        return Err(ParseError::new(format!(
            "'{text}' is finer than {unit}: give a multiple of it"
        )));
    }
    Ok(span / unit_ns)
}

fn parse_choice(text: &str, words: &[&str]) -> Result<u64, ParseError> {
    let position = words.iter().zip(0..).find(|(word, _)| **word == text);
    position.map(|(_, position)| position).ok_or_else(|| {
        ParseError::new(format!(
            "'{text}' is not a choice: give one of {}",
            words.join(", ")
        ))
    })
}

/// A value in the words of a lab file.
pub fn format_tunable(value: u64, unit: Unit) -> String {
    let span = |ns: u64| Duration::from_nanos(value.saturating_mul(ns)).to_string();
    match unit {
        Unit::Bytes => format_size(value),
        Unit::Percent => format!("{value}%"),
        Unit::Nanoseconds => span(1),
        Unit::Milliseconds => span(1_000_000),
        Unit::Seconds => span(1_000_000_000),
        Unit::Count => value.to_string(),
        Unit::Choice(words) => {
            let word = usize::try_from(value)
                .ok()
                .and_then(|value| words.get(value));
            (*word.unwrap_or(&"?")).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use dashpot_engine::pool::{Tunable, Tunables};

    use super::{format_tunable, parse_tunable, parse_tunable_setting};

    #[test]
    fn every_default_and_bound_can_be_written_and_read_back() {
        let tunables = Tunables::new(8 << 30);
        for (tunable, value) in tunables.iter() {
            let info = tunable.info();
            for value in [value, info.min, info.max] {
                let words = format_tunable(value, info.unit);
                assert_eq!(
                    parse_tunable(tunable, &words),
                    Ok(value),
                    "{} {words}",
                    info.name
                );
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        let scale = parse_tunable_setting("zfs_delay_scale=1ms");
        assert_eq!(scale, Ok((Tunable::DelayScale, 1_000_000)));
        let in_its_unit = parse_tunable_setting("zfs_txg_timeout=7");
        assert_eq!(in_its_unit, Ok((Tunable::TxgTimeout, 7)));
        for (text, part) in [
            ("zfs_delay_scale", "has no value"),
            ("zfs_delay_scal=1ms", "did you mean 'zfs_delay_scale'"),
            ("x=1", "`dashpot sim --tunables` lists all"),
            (
                "zfs_delay_scale=2s",
                "zfs_delay_scale: '2s' is out of bounds: give 1ns to 1s",
            ),
            ("failmode=panic", "give one of wait, continue"),
        ] {
            let error = parse_tunable_setting(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
