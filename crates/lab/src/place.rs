//! Looks up names in a lab, and makes the errors for unknown names.

use dashpot_rules::{ParseError, remedy_for};

/// The index of a name in a list.
pub(crate) fn place_of(kind: &str, name: &str, known: &[&str]) -> Result<usize, ParseError> {
    let place = known.iter().position(|known| *known == name);
    place.ok_or_else(|| {
        ParseError::new(format!(
            "there is no {kind} '{name}'; {}",
            remedy(kind, name, known)
        ))
    })
}

fn remedy(kind: &str, name: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return format!("the lab has no {kind} at all");
    }
    remedy_for(name, known)
}
