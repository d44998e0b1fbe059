//! The submitter of an I/O: the name of the process and its cgroup.
//!
//! Processes dirty pages, and the kernel writes them back later, when no event tells which process
//! it was. The kernel's threads for this have hundreds of names, such as `kworker/u8:5`, which help
//! no reader: all their writes are named [`WRITE_BACK`]. So are the writes of `xfsaild`, which writes
//! back metadata. The threads of a journal (`jbd2/vda-8`, `btrfs-transacti`) keep their names, because
//! the caller of fsync waits for them. So does `kswapd0`, which runs because memory is short. Reads of
//! a `kworker` are no write-back, and are named `kworker`. A `kworker` also queues the writes that
//! `io.max` has held back; no event distinguishes them from write-back.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;

use crate::io::{Rwbs, Submitter};

/// The name for writes that the kernel made on behalf of others.
pub const WRITE_BACK: &str = "write-back";

/// The cgroup of a process that had ended before it was asked for.
pub const GONE: &str = "gone";

/// The most processes whose cgroup is remembered.
const REMEMBERED: usize = 4096;

/// Threads of the kernel that write back data that others have dirtied.
const WRITERS: [&[u8]; 2] = [b"kworker/", b"xfsaild/"];

impl Submitter {
    /// The name to show for an operation with these letters.
    pub fn name(&self, rwbs: Rwbs) -> Cow<'_, str> {
        if self.writes_back(rwbs) {
            return Cow::Borrowed(WRITE_BACK);
        }
        if self.comm.bytes().starts_with(b"kworker/") {
            return Cow::Borrowed("kworker");
        }
        String::from_utf8_lossy(self.comm.bytes())
    }

    fn writes_back(&self, rwbs: Rwbs) -> bool {
        let writer = WRITERS
            .iter()
            .any(|writer| self.comm.bytes().starts_with(writer));
        writer && rwbs.operation() != b'R'
    }
}

/// The cgroups of processes, as they were when first asked for.
#[derive(Default)]
pub struct Cgroups {
    /// A thread's id may be used again, but hardly with the same name.
    known: HashMap<Submitter, String>,
}

impl Cgroups {
    /// The path of the cgroup that governs a submitter's I/O, [`WRITE_BACK`], or [`GONE`].
    pub fn of(&mut self, submitter: &Submitter, rwbs: Rwbs) -> &str {
        if submitter.writes_back(rwbs) {
            return WRITE_BACK;
        }
        if self.known.len() >= REMEMBERED && !self.known.contains_key(submitter) {
            self.known.clear();
        }
        self.known
            .entry(*submitter)
            .or_insert_with(|| of_thread(submitter.pid))
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

/// A controller is in one hierarchy only. If the I/O controller is in one of cgroup v1, that
/// hierarchy governs, and the unified one, `0::`, has other purposes.
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
    fn names_are_those_that_help() {
        let name = |comm, rwbs: &str| {
            let submitter = submitter(1, comm);
            submitter.name(Rwbs::new(rwbs.as_bytes())).into_owned()
        };
        assert_eq!(name("kworker/u8:5", "W"), "write-back");
        assert_eq!(name("kworker/u8:5", "D"), "write-back");
        assert_eq!(name("kworker/u8:5", "RA"), "kworker");
        assert_eq!(name("xfsaild/vda1", "WM"), "write-back");
        assert_eq!(name("jbd2/vda-8", "WS"), "jbd2/vda-8");
        assert_eq!(name("my kworker/", "W"), "my kworker/");
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
        let (mut cgroups, read) = (Cgroups::default(), Rwbs::new(b"R"));
        let this = i32::try_from(std::process::id()).expect("a pid");
        assert!(cgroups.of(&submitter(this, "this"), read).starts_with('/'));
        assert_eq!(cgroups.of(&submitter(i32::MAX, "none"), read), GONE);
        let writer = submitter(this, "kworker/0:1");
        assert_eq!(cgroups.of(&writer, Rwbs::new(b"W")), WRITE_BACK);
    }

    #[test]
    fn no_more_is_remembered_than_is_allowed() {
        let mut cgroups = Cgroups::default();
        for pid in 0..=REMEMBERED {
            let pid = i32::MAX - i32::try_from(pid).expect("few");
            cgroups.of(&submitter(pid, "none"), Rwbs::new(b"R"));
        }
        assert_eq!(cgroups.known.len(), 1);
    }
}
