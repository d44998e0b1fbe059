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
    Thread {
        /// The thread's id.
        pid: i32,
        /// The thread's name.
        comm: Arc<str>,
        /// The path of the cgroup that governs the thread's I/O, if the source has asked for the path.
        cgroup: Option<Arc<str>>,
    },
}

impl Who {
    /// The name of the client.
    pub fn client(&self) -> Option<&str> {
        match self {
            Who::Client(name) => Some(name),
            Who::Thread { .. } => None,
        }
    }

    /// The id of the thread.
    pub fn pid(&self) -> Option<i32> {
        match self {
            Who::Thread { pid, .. } => Some(*pid),
            Who::Client(_) => None,
        }
    }

    /// The name to show for the process, for an I/O of this kind.
    pub fn process(&self, kind: Kind) -> Option<&str> {
        match self {
            Who::Thread { comm, .. } if writes_back(comm, kind) => Some(WRITE_BACK),
            Who::Thread { comm, .. } if comm.starts_with("kworker/") => Some("kworker"),
            Who::Thread { comm, .. } => Some(comm),
            Who::Client(_) => None,
        }
    }

    /// The cgroup to show, for an I/O of this kind.
    pub fn cgroup(&self, kind: Kind) -> Option<&str> {
        match self {
            Who::Thread { comm, .. } if writes_back(comm, kind) => Some(WRITE_BACK),
            Who::Thread { cgroup, .. } => cgroup.as_deref(),
            Who::Client(_) => None,
        }
    }
}

fn writes_back(comm: &str, kind: Kind) -> bool {
    let is_writer = WRITERS.iter().any(|writer| comm.starts_with(writer));
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
        let name = |comm: &str, word| {
            let who = Who::Thread {
                pid: 1,
                comm: comm.into(),
                cgroup: Some("/a".into()),
            };
            let kind = Kind::of_word(word);
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
    fn a_client_is_no_process() {
        let who = Who::Client("uid=0 pid=7".into());
        let kind = Kind::Op(Op::Read);
        assert_eq!(who.client(), Some("uid=0 pid=7"));
        assert_eq!(
            (who.process(kind), who.cgroup(kind), who.pid()),
            (None, None, None)
        );
    }
}
