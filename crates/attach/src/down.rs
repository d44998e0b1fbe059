//! Undoes the steps of an attachment, the last step first.

use std::os::unix::fs::chown;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use dashpot_api::MechanismWord;

use crate::place::{LockedDirectory, Record};
use crate::state::is_ours;
use crate::{block_device, fuse_mount, link, sysfs};

/// Frees the node if it is still the attachment's device, and removes the attachment's files. If the node is
/// already free, this function only restores its settings and its owner, because an earlier command may have
/// been killed before it restored them.
pub(crate) fn take_down(place: LockedDirectory, record: &Record) -> anyhow::Result<()> {
    if is_ours(&place, record) {
        free(record)?;
        if !goes_soon(&place, record) {
            bail!(
                "a program has just opened it; the kernel removes it when that program closes it"
            );
        }
    } else if block_device::is_free(&record.node, record.mechanism) {
        sysfs::restore(&record.node, &record.before);
        give_back(record)?;
    }
    link::remove(record);
    fuse_mount::undo(&place.file(&record.disk));
    place.remove();
    Ok(())
}

/// Waits until the kernel has removed a device that has been freed. Returns false if that takes too long. A
/// program such as udev may just have opened the device, and may need a moment to close it.
fn goes_soon(place: &LockedDirectory, record: &Record) -> bool {
    let begun = Instant::now();
    while is_ours(place, record) {
        if begun.elapsed() >= CLOSING {
            return false;
        }
        thread::sleep(LOOK_EVERY);
    }
    true
}

/// Gives the node back to its owner, and frees it, in this order: another program may take a free node at once,
/// and would then lose it to the owner. The kernel's NBD client fails I/O in flight.
pub(crate) fn free(record: &Record) -> anyhow::Result<()> {
    give_back(record)?;
    block_device::free(&record.node, record.mechanism, &record.before)
}

/// Gives the node back to its owner.
fn give_back(record: &Record) -> anyhow::Result<()> {
    match record.owner_before {
        // The node of a ublk device goes with the device, so there is no node to give back.
        Some((uid, gid)) if record.mechanism != MechanismWord::Ublk => {
            Ok(chown(&record.node, Some(uid), Some(gid))?)
        }
        _ => Ok(()),
    }
}

/// The time that programs get to close a node.
pub(crate) const CLOSING: Duration = Duration::from_secs(1);
/// The interval between two checks of the node.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);
