//! A block device that `attach` makes with one of the kernel's drivers.

use std::path::Path;

use dashpot_api::MechanismWord;

use crate::place::{Changes, LockedDirectory};
use crate::sysfs::{self, Before};
use crate::{loop_device, nbd_device, ublk_device};

/// A block device of this host. Dropping this value frees the device, unless it was
/// [kept](BlockDevice::keep).
#[derive(Debug)]
pub(crate) struct BlockDevice {
    node: String,
    mechanism: MechanismWord,
    /// The settings that `attach` has changed, with their former values.
    pub(crate) before: Before,
    kept: bool,
}

impl BlockDevice {
    /// A device that its driver has just made.
    pub(crate) fn new(node: &str, mechanism: MechanismWord) -> BlockDevice {
        BlockDevice {
            node: node.to_owned(),
            mechanism,
            before: Before::new(),
            kept: false,
        }
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// Notes the settings that `attach` is about to change, with their former values. The note is a file in
    /// the directory of the attachment, so it outlives this process.
    pub(crate) fn note(&mut self, before: Before, place: &LockedDirectory) -> anyhow::Result<()> {
        let changes = Changes {
            node: self.node.clone(),
            mechanism: self.mechanism,
            before,
        };
        place.note(&changes)?;
        self.before = changes.before;
        Ok(())
    }

    /// Lets the device outlive this value.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for BlockDevice {
    fn drop(&mut self) {
        if !self.kept {
            // If this fails, `detach --stale` removes the device later.
            let _ = free(&self.node, self.mechanism, &self.before);
        }
    }
}

/// Frees a node, and restores its settings. The kernel's NBD client fails I/O in flight; ublk waits for it.
pub(crate) fn free(
    node: &str,
    mechanism: MechanismWord,
    before: &[(String, String)],
) -> anyhow::Result<()> {
    match mechanism {
        MechanismWord::Loop => loop_device::free(node)?,
        MechanismWord::Nbd => nbd_device::free(node)?,
        // The settings vanish with the device.
        MechanismWord::Ublk => return ublk_device::free(node),
    }
    sysfs::restore(node, before);
    Ok(())
}

/// Whether the node is free, which means that no program has made a device of it. A ublk node exists only
/// while its device does, so it is never free.
pub(crate) fn is_free(node: &str, mechanism: MechanismWord) -> bool {
    match mechanism {
        MechanismWord::Loop => loop_device::backing_file(node).is_none(),
        MechanismWord::Nbd => nbd_device::is_free(node),
        MechanismWord::Ublk => false,
    }
}

/// Whether the kernel says that the node's device was made for this path.
pub(crate) fn is_at(node: &str, mechanism: MechanismWord, path: &Path) -> bool {
    match mechanism {
        MechanismWord::Loop => loop_device::backing_file(node).as_deref() == Some(path),
        MechanismWord::Nbd => nbd_device::backend_of(node).as_deref() == Some(path),
        MechanismWord::Ublk => path
            .parent()
            .is_some_and(|directory| ublk_device::is_of(node, directory)),
    }
}
