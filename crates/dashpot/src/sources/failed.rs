//! Disks whose shard has failed: they are left out, while the others go on.

use dashpot_export::complain;

/// Says what a report over all disks leaves out: of each disk its name, and why it has failed.
pub(crate) fn warn_of_failed<'a>(disks: impl Iterator<Item = (&'a String, &'a Option<String>)>) {
    for (name, failed) in disks {
        if let Some(why) = failed {
            complain(format_args!("dashpot: disk '{name}' is left out: {why}"));
        }
    }
}
