//! Turns changes that failed on some disks into an error.

use anyhow::bail;
use dashpot_api::Failure;

/// Fails if a change failed on any disk.
pub(crate) fn check_failures(failed: &[Failure]) -> anyhow::Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let lines = failed
        .iter()
        .map(|failure| format!("disk '{}': {}", failure.disk, failure.error));
    bail!(lines.collect::<Vec<_>>().join("; "))
}
