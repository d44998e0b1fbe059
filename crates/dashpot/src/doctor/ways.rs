//! Every way in which a program on this host could reach a disk of dashpot's.

use std::fs::OpenOptions;
use std::path::Path;

use serde::Serialize;

/// Programs that speak NBD themselves.
const NBD_CLIENTS: [&str; 6] = ["nbdinfo", "nbdcopy", "nbdsh", "qemu-img", "qemu-io", "fio"];

/// A way to a disk.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Way {
    way: &'static str,
    works: bool,
    why: String,
    /// What would change it, if it does not work.
    change: Option<&'static str>,
}

/// All of them, those that need least first.
pub(super) fn all() -> Vec<Way> {
    vec![
        nbd_client(),
        own_program(),
        kernel_nbd(),
        node(
            "ublk: a /dev node",
            "/dev/ublk-control",
            "this version has no ublk frontend; the kernel's module ublk_drv is needed, too",
        ),
        node(
            "FUSE: a file that is a disk",
            "/dev/fuse",
            "this version has no FUSE frontend; in a container: --device /dev/fuse",
        ),
        node(
            "loop: a /dev node over that file",
            "/dev/loop-control",
            "needs root, and the file that FUSE would give",
        ),
        path_store(),
    ]
}

impl Way {
    pub(super) fn row(&self) -> Vec<String> {
        let works = if self.works { "yes" } else { "no" };
        let why = match self.change {
            Some(change) => format!("{}; {change}", self.why),
            None => self.why.clone(),
        };
        vec![self.way.to_owned(), works.to_owned(), why]
    }
}

fn nbd_client() -> Way {
    let found: Vec<&str> = NBD_CLIENTS
        .into_iter()
        .filter(|name| installed(name))
        .collect();
    Way {
        way: "NBD: tools that speak it",
        works: !found.is_empty(),
        why: match found.as_slice() {
            [] => "none is installed".to_owned(),
            found => format!("installed: {}", found.join(", ")),
        },
        change: found
            .is_empty()
            .then_some("apt-get install libnbd-bin qemu-utils fio"),
    }
}

fn own_program() -> Way {
    Way {
        way: "NBD: QEMU, or your program with libnbd",
        works: true,
        why: "needs a socket, and no privilege".to_owned(),
        change: None,
    }
}

fn kernel_nbd() -> Way {
    let has_nodes = Path::new("/dev/nbd0").exists();
    let root = rustix::process::geteuid().is_root();
    let client = installed("nbd-client");
    let (why, change) = match (has_nodes, root, client) {
        (false, _, _) => (
            "this kernel has no /dev/nbd0",
            Some("modprobe nbd, as root; a container needs --device /dev/nbd0, too"),
        ),
        (true, false, _) => (
            "needs root",
            Some("sudo nbd-client -unix SOCKET -N DISK /dev/nbd0"),
        ),
        (true, true, false) => ("nbd-client is missing", Some("apt-get install nbd-client")),
        (true, true, true) => ("nbd-client -unix SOCKET -N DISK /dev/nbd0", None),
    };
    Way {
        way: "attach: a /dev/nbd node for any program",
        works: change.is_none(),
        why: why.to_owned(),
        change,
    }
}

/// A device that a frontend of a later version needs. None of them works in this one.
fn node(way: &'static str, device: &str, change: &'static str) -> Way {
    let opened = OpenOptions::new().read(true).write(true).open(device);
    Way {
        way,
        works: false,
        why: match opened {
            Ok(_) => format!("{device} is there and can be used"),
            Err(error) => format!("{device}: {}", error.kind()),
        },
        change: Some(change),
    }
}

fn path_store() -> Way {
    Way {
        way: "path:DIR: one program's files, anywhere",
        works: false,
        why: "this version has no such store".to_owned(),
        change: Some("until then, let the program use a disk over NBD"),
    }
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::all;

    #[test]
    fn what_does_not_work_says_what_would_change_it() {
        for way in all() {
            assert!(!way.why.is_empty(), "{}", way.way);
            assert_eq!(way.works, way.change.is_none(), "{}", way.way);
        }
    }
}
