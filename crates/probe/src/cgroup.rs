//! The cgroups of submitters.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use crate::io::Submitter;

/// The cgroup of a process that had ended before it was asked for.
pub const GONE: &str = "gone";

/// The most processes whose cgroup is remembered.
const REMEMBERED: usize = 4096;

/// The cgroups of processes, as they were when first asked for.
#[derive(Default)]
pub struct Cgroups {
    /// A thread's id may be used again, but seldom with the same name.
    known: HashMap<Submitter, Arc<str>>,
}

impl Cgroups {
    /// The path of the cgroup that governs a submitter's I/O, or [`GONE`].
    pub fn of(&mut self, submitter: &Submitter) -> Arc<str> {
        if self.known.len() >= REMEMBERED && !self.known.contains_key(submitter) {
            self.known.clear();
        }
        let cgroup = || of_thread(submitter.pid).into();
        Arc::clone(self.known.entry(*submitter).or_insert_with(cgroup))
    }
}

fn of_thread(pid: i32) -> String {
    let memberships = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok();
    memberships
        .as_deref()
        .and_then(governing)
        .unwrap_or(GONE)
        .to_owned()
}

/// A controller is in one hierarchy only. If a hierarchy of cgroup v1 has the I/O controller, it governs,
/// and the unified one, `0::`, has other purposes.
fn governing(memberships: &str) -> Option<&str> {
    let memberships = || memberships.lines().filter_map(membership);
    let v1 =
        memberships().find(|(controllers, _)| controllers.split(',').any(|one| one == "blkio"));
    let unified = || memberships().find(|(controllers, _)| controllers.is_empty());
    v1.or_else(unified).map(|(_, path)| path)
}

/// The controllers and the path of a line `ID:CONTROLLERS:PATH`.
fn membership(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(':')?;
    rest.split_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Comm;

    fn submitter(pid: i32, comm: &str) -> Submitter {
        Submitter {
            pid,
            comm: Comm::new(comm.as_bytes()),
        }
    }

    #[test]
    fn the_hierarchy_of_io_governs() {
        let v2 = "0::/user.slice/a:b.service\n";
        assert_eq!(governing(v2), Some("/user.slice/a:b.service"));
        let v1 = "9:name=systemd:/s\n7:blkio,net_cls:/batch\n4:memory:/m\n";
        assert_eq!(governing(v1), Some("/batch"));
        let hybrid = "7:blkio:/batch\n0::/unified\n";
        assert_eq!(governing(hybrid), Some("/batch"));
        let v1_without_io = "4:memory:/m\n0::/unified\n";
        assert_eq!(governing(v1_without_io), Some("/unified"));
        assert_eq!(governing("nonsense\n"), None);
    }

    #[test]
    fn a_living_process_has_a_cgroup_and_a_dead_one_is_gone() {
        let mut cgroups = Cgroups::default();
        let this = i32::try_from(std::process::id()).expect("a pid");
        assert!(cgroups.of(&submitter(this, "this")).starts_with('/'));
        assert_eq!(&*cgroups.of(&submitter(i32::MAX, "none")), GONE);
    }

    #[test]
    fn no_more_is_remembered_than_is_allowed() {
        let mut cgroups = Cgroups::default();
        for pid in 0..=REMEMBERED {
            let pid = i32::MAX - i32::try_from(pid).expect("few");
            cgroups.of(&submitter(pid, "none"));
        }
        assert_eq!(cgroups.known.len(), 1);
    }
}
