//! Undoes an attachment, in reverse order.

use anyhow::bail;
use dashpot_api::MechanismWord;

use super::fuse_mount;
use super::loop_device::{self, backing_file};
use super::nbd_device::{self, backend_of};
use super::place::{Place, Record};

/// Whether the node is still the attached device.
pub(super) fn is_ours(place: &Place, record: &Record) -> bool {
    let path = match record.mechanism {
        MechanismWord::Loop => backing_file(&record.node),
        MechanismWord::Nbd => backend_of(&record.node),
    };
    path.as_deref() == Some(&place.file(&record.disk))
}

/// Frees the node, if it is ours, and removes its files.
pub(super) fn take_down(place: Place, record: &Record) -> anyhow::Result<()> {
    if is_ours(&place, record) {
        free(record)?;
        if is_ours(&place, record) {
            bail!("a program has opened it meanwhile; it goes when that program closes it");
        }
    }
    fuse_mount::undo(&place.file(&record.disk));
    place.remove();
    Ok(())
}

/// Frees the node. With the kernel's NBD client, I/O in flight fails.
pub(super) fn free(record: &Record) -> anyhow::Result<()> {
    match record.mechanism {
        MechanismWord::Loop => loop_device::free(&record.node, &record.before),
        MechanismWord::Nbd => nbd_device::free(&record.node, &record.before),
    }
}
