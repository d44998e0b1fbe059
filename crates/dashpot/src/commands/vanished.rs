//! What a report says of devices that have vanished, beside its output.
use dashpot_export::complain;

/// Says which have vanished in the interval that has just been shown.
pub(super) fn warn_of_vanished(names: &[String]) {
    for name in names {
        complain(format_args!(
            "dashpot: {name} has vanished; the report has it up to then"
        ));
    }
}
