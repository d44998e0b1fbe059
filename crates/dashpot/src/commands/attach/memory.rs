//! The memory of a process that serves a block device of its own host.
//!
//! The kernel frees memory by writing to devices, this one among them. So a daemon behind a device must
//! not wait for memory that only a write to the device would free: its memory is locked, and the kernel
//! is told that the process is a part of the way to a disk (`PR_SET_IO_FLUSHER`).

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::configure_io_flusher_behavior;
use rustix::thread::{CapabilitySet, capabilities};

/// Protects this process, and the threads that it starts from now on. Gives what could not be done, and
/// what it would take.
pub(crate) fn protect() -> Vec<&'static str> {
    let locked = may_lock() && mlockall(LOCKED).is_ok();
    let is_flusher = configure_io_flusher_behavior(true).is_ok();
    let missing = [
        (locked, "its memory is not locked (CAP_IPC_LOCK)"),
        (
            is_flusher,
            "it is not marked as a part of the way to a disk (CAP_SYS_RESOURCE)",
        ),
    ];
    let missing = missing.into_iter().filter(|(is_done, _)| !is_done);
    missing.map(|(_, what)| what).collect()
}

/// Undoes for a command what it would have inherited.
pub(crate) fn unprotect() {
    // Where it could not be set there is nothing to undo.
    let _ = configure_io_flusher_behavior(false);
}

/// Without this capability, what is mapped later could fail by the limit of locked memory.
fn may_lock() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK))
}

/// Pages are locked when they are first used: RAM disks are sparse.
const LOCKED: MlockAllFlags = MlockAllFlags::CURRENT
    .union(MlockAllFlags::FUTURE)
    .union(MlockAllFlags::ONFAULT);
