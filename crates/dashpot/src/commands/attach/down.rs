//! Undoes an attachment, in reverse order.

use anyhow::bail;

use super::block_device::free;
use super::fuse_mount;
use super::place::{Place, Record};
use super::state::is_ours;

/// Frees the node, if it is ours, and removes its files.
pub(super) fn take_down(place: Place, record: &Record) -> anyhow::Result<()> {
    if is_ours(&place, record) {
        free(&record.node, record.mechanism, &record.before)?;
        if is_ours(&place, record) {
            bail!("a program has opened it meanwhile; it goes when that program closes it");
        }
    }
    fuse_mount::undo(&place.file(&record.disk));
    place.remove();
    Ok(())
}
