//! Warns about disks whose shard has failed. Reports leave these disks out, and show all other disks.

use dashpot_export::complain;

/// Warns about disks that a report leaves out, each with its name and the reason.
pub fn warn_of_failed<'a>(disks: impl Iterator<Item = (&'a String, &'a Option<String>)>) {
    for (name, failed) in disks {
        if let Some(why) = failed {
            complain(format_args!("dashpot: disk '{name}' is left out: {why}"));
        }
    }
}
