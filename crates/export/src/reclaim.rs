//! Keeps a process that serves a block device of its own host from waiting for that device.
//!
//! The kernel frees memory by writing to devices, perhaps to the device that this process serves. So the
//! process must not wait for memory that only such a write would free. This module locks the daemon's memory,
//! and tells the kernel that the process is part of the path to a disk (`PR_SET_IO_FLUSHER`).

use std::fs;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Pid, Resource, Rlimit, configure_io_flusher_behavior, getrlimit, prlimit};
use rustix::thread::{CapabilitySet, capabilities, capability_is_in_bounding_set};

/// The protections in force in this process.
#[derive(Clone, Debug)]
pub struct InForce {
    /// Whether the memory of the process is locked.
    pub locked: bool,
    /// Whether the process is marked as part of the path to a disk.
    pub io_flusher: bool,
    /// The protections that are missing, each with its remedy.
    pub lacks: Vec<&'static str>,
}

/// Protects this process, and the threads that this process starts from now on. [`in_force`] tells which
/// protections have failed.
pub fn protect() {
    // This call needs CAP_SYS_RESOURCE.
    let _ = configure_io_flusher_behavior(true);
    let _ = raise_limit(None);
    lock_memory();
}

/// Locks the memory of this process, if the process may lock it.
pub fn lock_memory() {
    // A process that may lock only some memory locks none, because later mappings could fail at the limit.
    if may_lock() {
        let _ = mlockall(LOCKED);
    }
}

/// Lets a process (`None` is this one) lock as much memory as it likes. The caller needs CAP_SYS_RESOURCE.
pub fn raise_limit(process: Option<Pid>) -> rustix::io::Result<()> {
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    prlimit(process, Resource::Memlock, unlimited).map(|_| ())
}

/// Whether this process may lock all of its memory without a capability.
pub fn is_unlimited() -> bool {
    getrlimit(Resource::Memlock).current.is_none()
}

/// The protections that are in force in this process now.
pub fn in_force() -> InForce {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let (locked, io_flusher) = (locked_kb(&status) > 0, is_flusher());
    let lacks = [
        (locked, not_locked(can_have(CapabilitySet::IPC_LOCK))),
        (
            io_flusher,
            not_flusher(can_have(CapabilitySet::SYS_RESOURCE)),
        ),
    ];
    let lacks = lacks.into_iter().filter(|(is_there, _)| !is_there);
    InForce {
        locked,
        io_flusher,
        lacks: lacks.map(|(_, what)| what).collect(),
    }
}

/// Whether this process could give a capability to a root process that it starts. Containers and services
/// often remove some capabilities.
fn can_have(capability: CapabilitySet) -> bool {
    capability_is_in_bounding_set(capability).unwrap_or(true)
}

fn not_locked(root_can: bool) -> &'static str {
    if root_can {
        "its memory is not locked: give it CAP_IPC_LOCK, or set no limit before it starts (ulimit -l unlimited)"
    } else {
        "its memory is not locked, and even root may not lock it here: give its container or service CAP_IPC_LOCK (docker run --cap-add IPC_LOCK), or no limit (--ulimit memlock=-1; LimitMEMLOCK=infinity)"
    }
}

fn not_flusher(root_can: bool) -> &'static str {
    if root_can {
        "it is not marked as a part of the way to a disk: start it with CAP_SYS_RESOURCE (sudo dashpot serve --attach)"
    } else {
        "it is not marked as a part of the way to a disk, and even root may not mark it here: give its container or service CAP_SYS_RESOURCE (docker run --cap-add SYS_RESOURCE; CapabilityBoundingSet=), and start it anew"
    }
}

/// Whether this process may lock all of its memory.
pub fn may_lock() -> bool {
    let has_right = |set: CapabilitySet| set.contains(CapabilitySet::IPC_LOCK);
    is_unlimited() || capabilities(None).is_ok_and(|sets| has_right(sets.effective))
}

/// The locked memory in the text of `/proc/PID/status`, in kilobytes.
fn locked_kb(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    let figure = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    figure.unwrap_or_default()
}

/// Whether this thread is marked as part of the path to a disk. If so, every thread that it started after the
/// mark is marked, too. We read `/proc` because asking the kernel directly needs the same capability as
/// setting the mark.
fn is_flusher() -> bool {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    flags(&stat).is_some_and(|flags| flags & IO_FLUSHER == IO_FLUSHER)
}

/// The flags in the text of `/proc/PID/stat`.
fn flags(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(FLAGS)?.parse().ok()
}

/// Locks each page only when it is first used, because RAM disks are sparse.
const LOCKED: MlockAllFlags = MlockAllFlags::CURRENT
    .union(MlockAllFlags::FUTURE)
    .union(MlockAllFlags::ONFAULT);
/// `PF_MEMALLOC_NOIO` and `PF_LOCAL_THROTTLE`, from the kernel's linux/sched.h.
const IO_FLUSHER: u64 = 0x80000 | 0x100000;
/// The place of the field `flags` in `/proc/PID/stat`, counted from the field `state` (see proc(5)).
const FLAGS: usize = 6;

#[cfg(test)]
mod tests {
    use super::{flags, in_force, locked_kb, not_flusher, not_locked};

    #[test]
    fn the_kernels_files_are_understood() {
        assert_eq!(
            locked_kb("VmPeak:\t 9 kB\nVmLck:\t    4120 kB\nVmPin:\t 0 kB\n"),
            4120
        );
        assert_eq!(locked_kb(""), 0);
        assert_eq!(flags("7 (a) b) S 1 2 3 4 5 4194304 7"), Some(0x400000));
        assert_eq!(flags("7 (a"), None);
    }

    #[test]
    fn the_remedy_is_another_one_where_root_lacks_the_capability() {
        for (remedy, capability) in [
            (not_locked as fn(bool) -> &'static str, "CAP_IPC_LOCK"),
            (not_flusher, "CAP_SYS_RESOURCE"),
        ] {
            let (root_can, root_cannot) = (remedy(true), remedy(false));
            assert!(root_can.contains(capability) && root_cannot.contains(capability));
            assert!(root_cannot.contains("container") && !root_cannot.contains("sudo"));
            assert!(!root_can.contains("container"));
        }
    }

    #[test]
    fn what_is_not_in_force_is_said() {
        let now = in_force();
        let missing = [now.locked, now.io_flusher]
            .iter()
            .filter(|is_there| !**is_there)
            .count();
        assert_eq!(now.lacks.len(), missing);
    }
}
