//! Tunables of a pool in a lab file: ZFS's names, with values in the words of their units.

use dashpot_engine::pool::{Tunable, TunableError, Tunables, Unit};
use dashpot_rules::{ParseError, format_size, parse_duration, parse_size};

use super::section::Section;

/// The names of all tunables, in the order of their table.
pub(super) fn names() -> Vec<&'static str> {
    let tunables = Tunable::ALL.iter();
    tunables.map(|tunable| tunable.info().name).collect()
}

/// The tunables of a pool at the start.
pub(super) fn read_tunables(section: &Section<'_>, ram: u64) -> Result<Tunables, ParseError> {
    let mut tunables = Tunables::new(ram);
    set_tunables(section, &mut tunables)?;
    Ok(tunables)
}

/// Sets the tunables of a table together, because some limit each other. Returns them.
pub(super) fn set_tunables(
    section: &Section<'_>,
    tunables: &mut Tunables,
) -> Result<Vec<(Tunable, u64)>, ParseError> {
    let mut changes = Vec::new();
    for tunable in Tunable::ALL.iter().copied() {
        let value = section.value(tunable.info().name, |word| parse_tunable(tunable, word))?;
        changes.extend(value.map(|value| (tunable, value)));
    }
    let set = tunables.set_all(changes.iter().copied());
    set.map_err(|error| {
        let key = culprit(&error);
        let key = if section.has(key.1) { key.1 } else { key.0 };
        section.error(
            section.span_of(key).unwrap_or_default(),
            key,
            &error.to_string(),
        )
    })?;
    Ok(changes)
}

/// The tunables that an error is about. One of them was set.
fn culprit(error: &TunableError) -> (&'static str, &'static str) {
    let pair = match error {
        TunableError::OutOfBounds { tunable, .. } => (*tunable, *tunable),
        TunableError::Crossed { low, high } => (low.0, high.0),
        TunableError::Overflows { .. } => (Tunable::DirtyDataMax, Tunable::DelayScale),
    };
    (pair.0.info().name, pair.1.info().name)
}

fn parse_tunable(tunable: Tunable, text: &str) -> Result<u64, ParseError> {
    let info = tunable.info();
    let value = match info.unit {
        Unit::Bytes => parse_size(text)?,
        Unit::Percent => parse_count(text.strip_suffix('%').unwrap_or(text), text)?,
        Unit::Nanoseconds => parse_duration(text)?.as_nanos(),
        Unit::Milliseconds => whole(text, 1_000_000)?,
        Unit::Seconds => whole(text, 1_000_000_000)?,
        Unit::Count => parse_count(text, text)?,
        Unit::Choice(words) => return parse_choice(text, words),
    };
    if !(info.min..=info.max).contains(&value) {
        return Err(ParseError::new(format!(
            "'{text}' is out of bounds: give {} to {}",
            in_words(info.min, info.unit),
            in_words(info.max, info.unit)
        )));
    }
    Ok(value)
}

fn parse_count(digits: &str, text: &str) -> Result<u64, ParseError> {
    digits
        .parse()
        .map_err(|_| ParseError::new(format!("'{text}' is no whole number: give one")))
}

/// Parses a time as a whole number of units of `unit_ns`.
fn whole(text: &str, unit_ns: u64) -> Result<u64, ParseError> {
    let span = parse_duration(text)?.as_nanos();
    if !span.is_multiple_of(unit_ns) {
        let unit = in_words(unit_ns, Unit::Nanoseconds);
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
            "'{text}' is no choice: give one of {}",
            words.join(", ")
        ))
    })
}

/// A value in the words of a lab file.
pub(crate) fn in_words(value: u64, unit: Unit) -> String {
    let span = |ns: u64| dashpot_engine::Duration::from_nanos(value.saturating_mul(ns)).to_string();
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
