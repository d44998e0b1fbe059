//! Disks whose shard has failed: what is said of them, while the others go on.

use anyhow::bail;

use crate::api::types::{Disk, Failure};

/// Says what a report over all disks leaves out.
pub(crate) fn warn_of_failed(disks: &[Disk]) {
    for disk in disks {
        if let Some(why) = &disk.failed {
            eprintln!("dashpot: disk '{}' is left out: {why}", disk.name);
        }
    }
}

/// Fails if something was not done to every disk.
pub(crate) fn check(failed: &[Failure]) -> anyhow::Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let lines = failed
        .iter()
        .map(|failure| format!("disk '{}': {}", failure.disk, failure.error));
    bail!(lines.collect::<Vec<_>>().join("\ndashpot: "))
}
