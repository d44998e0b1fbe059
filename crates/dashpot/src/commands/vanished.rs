//! What a report says of devices that have vanished, beside its output.

/// Says which have vanished in the interval that has just been shown.
pub(super) fn warn_of_vanished(names: &[String]) {
    for name in names {
        eprintln!("dashpot: {name} has vanished; the report has it up to then");
    }
}
