//! Tunables of a pool in a lab file, with ZFS's names, and with units in their values.

use dashpot_engine::pool::{Tunable, TunableError, Tunables};
use dashpot_rules::{ParseError, parse_tunable};

use crate::section::Section;

/// The names of all tunables, in the order of their table.
pub(crate) fn names() -> Vec<&'static str> {
    let tunables = Tunable::ALL.iter();
    tunables.map(|tunable| tunable.info().name).collect()
}

/// The tunables of a pool at the start.
pub(crate) fn read_tunables(section: &Section<'_>, ram: u64) -> Result<Tunables, ParseError> {
    let mut tunables = Tunables::new(ram);
    set_tunables(section, &mut tunables)?;
    Ok(tunables)
}

/// Sets the tunables of a table together, because some tunables limit each other. Returns what the table
/// sets.
pub(crate) fn set_tunables(
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

/// The one or two tunables that an error is about. The lab sets at least one of these.
fn culprit(error: &TunableError) -> (&'static str, &'static str) {
    let pair = match error {
        TunableError::OutOfBounds { tunable, .. } => (*tunable, *tunable),
        TunableError::Crossed { low, high } => (low.0, high.0),
        TunableError::Overflows { .. } => (Tunable::DirtyDataMax, Tunable::DelayScale),
    };
    (pair.0.info().name, pair.1.info().name)
}
