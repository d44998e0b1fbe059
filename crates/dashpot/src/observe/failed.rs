//! Disks whose shard has failed: they are left out, while the others go on.

use crate::api::types::Disk;

/// Says what a report over all disks leaves out.
pub(crate) fn warn_of_failed(disks: &[Disk]) {
    for disk in disks {
        if let Some(why) = &disk.failed {
            eprintln!("dashpot: disk '{}' is left out: {why}", disk.name);
        }
    }
}
