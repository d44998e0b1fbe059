//! The party that asked for an I/O: a client of dashpot, or a thread of this machine.
//!
//! A process that writes to a file only makes pages dirty. The kernel writes these pages back later, and then
//! no event says which process made them dirty. The kernel threads that write back have hundreds of names,
//! such as `kworker/u8:5`, which tell a reader nothing, so all their writes are named [`WRITE_BACK`]. The
//! writes of `xfsaild`, which writes back metadata, also have this name. The threads of a journal
//! (`jbd2/vda-8`, `btrfs-transacti`) keep their names, because the caller of fsync waits for them. `kswapd0`,
//! which runs because memory is short, keeps its name, too. Reads of a `kworker` are not write-back, and are
//! named `kworker`. A `kworker` also queues the writes that `io.max` has held back; no event distinguishes
//! these writes from write-back.

use std::sync::Arc;

use dashpot_engine::Op;

use super::kind::Kind;

/// The client or the thread that asked for an I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// A client of dashpot, by name.
    Client(Arc<str>),
    /// A thread of this machine.
    Thread(Thread),
}

/// A thread of this machine, with the facts that the source was asked for and knows. In a recording of an
/// older dashpot, which did not tell threads from processes, `process` and `pid` are the name and the id of the
/// thread, and `thread` and `tid` are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The name of the thread's process, which is the name of the process's first thread.
    pub process: Option<Arc<str>>,
    /// The id of the thread's process.
    pub pid: Option<i32>,
    /// The thread's name.
    pub thread: Option<Arc<str>>,
    /// The thread's id.
    pub tid: Option<i32>,
    /// The path of the cgroup that governs the thread's I/O.
    pub cgroup: Option<Arc<str>>,
}

impl Who {
    /// The name of the client.
    pub fn client(&self) -> Option<&str> {
        match self {
            Who::Client(name) => Some(name),
            Who::Thread(_) => None,
        }
    }

    pub fn thread(&self) -> Option<&Thread> {
        match self {
            Who::Thread(thread) => Some(thread),
            Who::Client(_) => None,
        }
    }

    /// The name to show for the process, for an I/O of this kind.
    pub fn process(&self, kind: Kind) -> Option<&str> {
        let process = self.thread()?.process.as_deref()?;
        Some(shown(process, kind))
    }

    /// The name to show for the thread, for an I/O of this kind.
    pub fn thread_name(&self, kind: Kind) -> Option<&str> {
        let thread = self.thread()?.thread.as_deref()?;
        Some(shown(thread, kind))
    }

    /// The cgroup to show, for an I/O of this kind.
    pub fn cgroup(&self, kind: Kind) -> Option<&str> {
        let thread = self.thread()?;
        // A thread of the kernel is a process of its own, with the same name.
        let name = thread.thread.as_deref().or(thread.process.as_deref());
        match name {
            Some(name) if writes_back(name, kind) => Some(WRITE_BACK),
            _ => thread.cgroup.as_deref(),
        }
    }
}

impl Thread {
    /// Whether an older dashpot recorded the thread, so that `process` and `pid` are the thread's own.
    pub fn is_its_process(&self) -> bool {
        self.pid.is_some() && self.tid.is_none()
    }
}

/// The name to show for a thread or a process of the kernel with this name.
fn shown(name: &str, kind: Kind) -> &str {
    match name {
        _ if writes_back(name, kind) => WRITE_BACK,
        _ if name.starts_with("kworker/") => "kworker",
        _ => name,
    }
}

fn writes_back(name: &str, kind: Kind) -> bool {
    let is_writer = WRITERS.iter().any(|writer| name.starts_with(writer));
    is_writer && kind != Kind::Op(Op::Read)
}

/// The name for writes that the kernel made on behalf of other processes.
pub const WRITE_BACK: &str = "write-back";

/// The kernel threads that write back the pages that processes have made dirty.
const WRITERS: [&str; 2] = ["kworker/", "xfsaild/"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_help() {
        let name = |thread: &str, word| {
            let who = Who::Thread(Thread {
                thread: Some(thread.into()),
                process: Some(thread.into()),
                cgroup: Some("/a".into()),
                ..Thread::default()
            });
            let kind = Kind::of_word(word);
            assert_eq!(who.thread_name(kind), who.process(kind));
            let cgroup = who.cgroup(kind).map(str::to_owned);
            (who.process(kind).map(str::to_owned), cgroup)
        };
        for (comm, op, process, cgroup) in [
            ("kworker/u8:5", "write", "write-back", "write-back"),
            ("kworker/u8:5", "trim", "write-back", "write-back"),
            ("kworker/u8:5", "read", "kworker", "/a"),
            ("xfsaild/vda1", "write", "write-back", "write-back"),
            ("jbd2/vda-8", "write", "jbd2/vda-8", "/a"),
            ("my kworker/", "write", "my kworker/", "/a"),
        ] {
            let expected = (Some(process.to_owned()), Some(cgroup.to_owned()));
            assert_eq!(name(comm, op), expected, "{comm} {op}");
        }
    }

    #[test]
    fn an_unknown_process_is_not_named_after_its_thread() {
        let who = Who::Thread(Thread {
            thread: Some("ib_io_rd-1".into()),
            tid: Some(8),
            ..Thread::default()
        });
        let kind = Kind::Op(Op::Read);
        assert_eq!(
            (who.process(kind), who.thread_name(kind)),
            (None, Some("ib_io_rd-1"))
        );
        let older = Thread {
            process: Some("ib_io_rd-1".into()),
            pid: Some(8),
            ..Thread::default()
        };
        assert!(older.is_its_process() && !Thread::default().is_its_process());
    }

    #[test]
    fn a_client_is_no_process() {
        let who = Who::Client("uid=0 pid=7".into());
        let kind = Kind::Op(Op::Read);
        assert_eq!(who.client(), Some("uid=0 pid=7"));
        assert_eq!(
            (who.process(kind), who.thread_name(kind), who.cgroup(kind)),
            (None, None, None)
        );
    }
}
