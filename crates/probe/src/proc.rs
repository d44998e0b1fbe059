//! The tasks of this host, as `/proc` shows them now.

use std::fs;
use std::sync::Arc;

use crate::cgroup::Hierarchy;
use crate::follower::{Follower, Present};
use crate::io::Comm;

/// The tasks in `/proc`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proc {
    /// The hierarchy of cgroups that governs I/O; `None` if cgroups are not asked for, or the host has none.
    pub(crate) hierarchy: Option<Hierarchy>,
    /// Whether `/proc` and the kernel's events number tasks alike. In a PID namespace of its own, `/proc` has
    /// other numbers, so nothing is looked up there.
    is_whole: bool,
}

impl Proc {
    pub(crate) fn new(hierarchy: Option<Hierarchy>) -> Proc {
        let namespace = fs::read_link("/proc/self/ns/pid").ok();
        Proc {
            hierarchy,
            is_whole: namespace.is_none_or(|link| link.to_string_lossy() == INITIAL_NAMESPACE),
        }
    }

    /// Tells a follower about all tasks that this host has. Events show the tasks that begin or end
    /// meanwhile.
    pub(crate) fn introduce(mut self, follower: &mut Follower) {
        if !self.is_whole {
            return;
        }
        for process in numbers("/proc") {
            for pid in numbers(&format!("/proc/{process}/task")) {
                let cgroup = self.cgroup(pid);
                if self.hierarchy.is_none() || cgroup.is_some() {
                    follower.know(pid, process, cgroup);
                }
            }
            // Later, the first thread may have another name.
            follower.name(process, &mut self);
        }
    }

    fn read(self, pid: i32, file: &str) -> Option<Vec<u8>> {
        let path = self.is_whole.then(|| format!("/proc/{pid}/{file}"))?;
        fs::read(path).ok()
    }
}

impl Present for Proc {
    fn cgroup(&mut self, pid: i32) -> Option<Arc<str>> {
        let hierarchy = self.hierarchy?;
        let memberships = self.read(pid, "cgroup")?;
        hierarchy.path(&String::from_utf8_lossy(&memberships), pid)
    }

    fn process(&mut self, pid: i32) -> Option<i32> {
        process_of(&self.read(pid, "status")?)
    }

    fn name(&mut self, pid: i32) -> Option<Comm> {
        let name = self.read(pid, "comm")?;
        Some(Comm::new(name.strip_suffix(b"\n").unwrap_or(&name)))
    }
}

/// The number of the process's first thread, from `/proc/TID/status`. The name before it cannot look like it,
/// because the kernel escapes line breaks.
fn process_of(status: &[u8]) -> Option<i32> {
    let mut lines = status.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(b"Tgid:"))?;
    str::from_utf8(value).ok()?.trim().parse().ok()
}

/// The entries of a directory that are numbers.
fn numbers(directory: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The target of `/proc/PID/ns/pid` for a process in the host's first PID namespace. Its number is the
/// kernel's constant `PROC_PID_INIT_INO`.
const INITIAL_NAMESPACE: &str = "pid:[4026531836]";

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn a_living_task_has_a_process_a_name_and_a_cgroup_and_a_dead_one_has_none() {
        let mut proc = Proc::new(Hierarchy::find());
        assert!(proc.hierarchy.is_some(), "cgroups");
        let this = std::process::id() as i32;
        let path = proc.cgroup(this).expect("a cgroup");
        assert!(path.starts_with('/'), "{path}");
        let dead = i32::MAX;
        assert_eq!(
            (proc.cgroup(dead), proc.process(dead), proc.name(dead)),
            (None, None, None)
        );

        let (say, heard) = channel();
        let (end, ended) = channel::<()>();
        let named = thread::Builder::new().name("a thread".to_owned());
        let other = named.spawn(move || {
            let _ = say.send(rustix::thread::gettid().as_raw_nonzero().get());
            let _ = ended.recv();
        });
        let other = other.expect("a thread");
        let tid = heard.recv().expect("its id");
        let mut follower = Follower::default();
        proc.introduce(&mut follower);
        let told = (
            follower.process(tid, &mut proc),
            follower.name(tid, &mut proc),
        );
        assert_eq!(told, (Some(this), Some(Comm::new(b"a thread"))));
        assert_eq!(proc.process(tid), Some(this));
        drop(end);
        other.join().expect("its end");
    }

    #[test]
    fn in_another_namespace_nothing_is_looked_up() {
        let mut inner = Proc {
            is_whole: false,
            ..Proc::new(Hierarchy::find())
        };
        let this = std::process::id() as i32;
        assert_eq!(
            (inner.cgroup(this), inner.process(this), inner.name(this)),
            (None, None, None)
        );
        let mut follower = Follower::default();
        inner.introduce(&mut follower);
        assert_eq!(follower.process(this, &mut inner), None);
    }

    #[test]
    fn the_process_is_in_the_status() {
        let status = b"Name:\tTgid:\\n7\nUmask:\t0022\nTgid:\t4711\nPid:\t4712\n";
        assert_eq!(process_of(status), Some(4711));
        assert_eq!(process_of(b"Name:\ta\n"), None);
    }
}
