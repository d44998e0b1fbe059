//! Undoes an attachment, in reverse order.

use anyhow::bail;

use super::fuse_mount;
use super::loop_device::{backing_file, free};
use super::place::{Place, Record};

/// Whether the node is still the attached device.
pub(super) fn is_ours(place: &Place, record: &Record) -> bool {
    backing_file(&record.node).as_deref() == Some(&place.file(&record.disk))
}

/// Frees the node, if it is ours, and removes its files.
pub(super) fn take_down(place: Place, record: &Record) -> anyhow::Result<()> {
    if is_ours(&place, record) {
        free(&record.node, &record.before)?;
        if is_ours(&place, record) {
            bail!("a program has opened it meanwhile; it goes when that program closes it");
        }
    }
    fuse_mount::undo(&place.file(&record.disk));
    place.remove();
    Ok(())
}
