//! What was not done to every disk.

use anyhow::bail;
use dashpot_api::Failure;

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
