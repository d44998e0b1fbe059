//! The cgroup that governs a task's I/O, as `/proc` shows it now.

use std::fs;
use std::sync::Arc;

/// Stands for the cgroup of a task that no event had shown, and that had ended before the probe looked
/// for its cgroup.
pub const GONE: &str = "gone";

/// The hierarchy of cgroups that governs I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    /// The hierarchy's number, which `/proc` and events use.
    pub(crate) id: u32,
    /// Whether the kernel's events and `/proc` show the same paths. `/proc` shows paths relative to the root
    /// of this process's cgroup namespace.
    pub(crate) is_whole: bool,
}

impl Hierarchy {
    /// Finds the hierarchy that governs I/O on this host; `None` if the host has no cgroups.
    pub(crate) fn find() -> Option<Hierarchy> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let namespace = fs::read_link("/proc/self/ns/cgroup").ok();
        let is_whole = namespace.is_none_or(|link| link.to_string_lossy() == INITIAL_NAMESPACE);
        let (id, _) = governing(&own)?;
        Some(Hierarchy { id, is_whole })
    }

    /// Whether this is the hierarchy of cgroup v2.
    pub(crate) fn is_unified(self) -> bool {
        self.id == UNIFIED
    }

    /// The path that governs a task's I/O, from the task's `/proc/TID/cgroup`; `None` if the task is ending.
    pub(crate) fn path(self, memberships: &str, pid: i32) -> Option<Arc<str>> {
        let (_, path) = governing(memberships)?;
        // In a hierarchy of cgroup v1, the kernel shows a task in the root cgroup while the task is ending.
        if path == "/" && !self.is_unified() && is_ending(pid) {
            return None;
        }
        Some(path.strip_suffix(" (deleted)").unwrap_or(path).into())
    }
}

/// The number of the hierarchy that governs I/O, and the path in it. A controller is in one hierarchy only.
/// If a hierarchy of cgroup v1 has the I/O controller, that hierarchy governs I/O, and the unified hierarchy,
/// `0::`, does not.
fn governing(memberships: &str) -> Option<(u32, &str)> {
    let memberships = || memberships.lines().filter_map(membership);
    let v1 =
        memberships().find(|(_, controllers, _)| controllers.split(',').any(|one| one == "blkio"));
    let unified = || memberships().find(|(_, controllers, _)| controllers.is_empty());
    v1.or_else(unified).map(|(id, _, path)| (id, path))
}

/// The number, the controllers and the path of a line `ID:CONTROLLERS:PATH`.
fn membership(line: &str) -> Option<(u32, &str, &str)> {
    let (id, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    Some((id.parse().ok()?, controllers, path))
}

/// Whether a task has begun to exit, or no longer exists.
fn is_ending(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    flags_of(&stat).is_none_or(|flags| flags & PF_EXITING != 0)
}

/// The flags in a line of `/proc/PID/stat`. The name before the flags may itself contain parentheses and
/// spaces.
fn flags_of(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split_whitespace().nth(6)?.parse().ok()
}

/// The number of cgroup v2's hierarchy.
const UNIFIED: u32 = 0;
/// The target of `/proc/PID/ns/cgroup` for a process in the host's first cgroup namespace. Its number is the
/// kernel's constant `PROC_CGROUP_INIT_INO`.
const INITIAL_NAMESPACE: &str = "cgroup:[4026531835]";
/// The flag of a task that is exiting, from the kernel's `sched.h`.
const PF_EXITING: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_of_io_governs() {
        let v2 = "0::/user.slice/a:b.service\n";
        assert_eq!(governing(v2), Some((0, "/user.slice/a:b.service")));
        let v1 = "9:name=systemd:/s\n7:blkio,net_cls:/batch\n4:memory:/m\n";
        assert_eq!(governing(v1), Some((7, "/batch")));
        let hybrid = "7:blkio:/batch\n0::/unified\n";
        assert_eq!(governing(hybrid), Some((7, "/batch")));
        let v1_without_io = "4:memory:/m\n0::/unified\n";
        assert_eq!(governing(v1_without_io), Some((0, "/unified")));
        assert_eq!(governing("nonsense\n"), None);
    }

    #[test]
    fn a_task_that_has_ended_is_ending() {
        assert!(is_ending(i32::MAX) && !is_ending(std::process::id() as i32));
    }

    #[test]
    fn the_flags_come_after_the_name() {
        assert_eq!(
            flags_of("7 (a) b) S 1 2 3 4 5 1077936128 9"),
            Some(1_077_936_128)
        );
        assert_eq!(flags_of("7 (a"), None);
    }
}
