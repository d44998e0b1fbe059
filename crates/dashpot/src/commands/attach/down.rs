//! Taking an attachment down, in the order opposite to that in which it was made.

use anyhow::bail;

use super::fuse_mount;
use super::loop_device::{backing_file, free};
use super::place::{Place, Record};

/// Whether the node is still what was attached.
pub(super) fn is_ours(place: &Place, record: &Record) -> bool {
    backing_file(&record.node).as_deref() == Some(&place.file(&record.disk))
}

/// Frees the node, if it is ours, and removes what was made for it.
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
