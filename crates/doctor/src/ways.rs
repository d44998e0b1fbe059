//! Every way in which a program on this host could reach a disk that dashpot serves.

use std::io;
use std::path::Path;

use serde::Serialize;

use crate::calls::{calls_work, warnings};
use crate::drivers::{FUSE, Missing, loop_works, nbd_works, ublk_works};
use crate::found::{installed, opened};

/// Programs that speak NBD themselves.
const NBD_CLIENTS: [&str; 6] = ["nbdinfo", "nbdcopy", "nbdsh", "qemu-img", "qemu-io", "fio"];

/// One way to reach a disk.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Way {
    way: &'static str,
    works: bool,
    why: String,
    /// The remedy, if the way does not work.
    change: Option<&'static str>,
    /// A warning for users of the way.
    warning: Option<String>,
    /// Whether a signal waits for the end of a held I/O, as it does on a slow disk; null where dashpot cannot
    /// tell.
    signals_wait: Option<bool>,
}

/// All ways. The ways with the fewest requirements come first.
pub(crate) fn all() -> Vec<Way> {
    vec![
        nbd_client(),
        own_program(),
        with_command(
            "attach: a /dev/nbd node for any program",
            "dashpot attach DISK --with nbd",
            nbd_works(),
        ),
        with_command(
            "attach: a /dev/loop node for any program",
            "dashpot attach DISK --with loop",
            loop_works(),
        ),
        with_command(
            "attach: a /dev/ublkb node for any program",
            "dashpot attach DISK --with ublk",
            ublk_works(),
        ),
        kernel_nbd(),
        fuse(),
        path(),
    ]
}

impl Way {
    pub(crate) fn row(&self) -> Vec<String> {
        let works = if self.works { "yes" } else { "no" };
        let why = match self.change {
            Some(change) => format!("{}; {change}", self.why),
            None => self.why.clone(),
        };
        let signals = match self.signals_wait {
            Some(true) => ". A signal waits until a held call ends",
            _ => "",
        };
        let warning = self.warning.as_ref();
        let warning = warning.map_or_else(String::new, |warning| format!(". {warning}"));
        vec![
            self.way.to_owned(),
            works.to_owned(),
            why + signals + &warning,
        ]
    }
}

fn path() -> Way {
    let works = calls_work();
    let signals_wait = works.as_ref().ok().copied();
    Way {
        warning: warnings(signals_wait),
        signals_wait,
        ..with_command(
            "path:DIR: one program's files, anywhere",
            "dashpot run -d NAME=path:DIR -- CMD",
            works.map(drop),
        )
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
        warning: None,
        signals_wait: None,
    }
}

fn own_program() -> Way {
    Way {
        way: "NBD: QEMU, or your program with libnbd",
        works: true,
        why: "needs a socket, and no privilege".to_owned(),
        change: None,
        warning: None,
        signals_wait: None,
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
        way: "nbd-client: a /dev/nbd node, by hand",
        works: change.is_none(),
        why: why.to_owned(),
        warning: Some(KERNEL_NBD_WARNING.to_owned()),
        signals_wait: None,
        change,
    }
}

/// The warning about the kernel's NBD client. We saw with Linux 6.12 what this warning describes.
const KERNEL_NBD_WARNING: &str = "Beware: with one connection, I/O waits until a stall ends. With \
     N > 1 connections, a stall beyond about N times 30 s fails the I/O, and the node is dead until it \
     is attached again. Programs see every error as EIO";

/// `nbdfuse` of libnbd, an NBD client that shows a disk as a file.
fn fuse() -> Way {
    let fuse = opened(FUSE);
    let (why, change) = match (&fuse, installed("nbdfuse")) {
        (Err(_), _) => (
            "nbdfuse needs it",
            Some("modprobe fuse, as root; a container needs --device /dev/fuse, too"),
        ),
        (Ok(()), false) => (
            "nbdfuse is missing",
            Some("apt-get install libnbd-bin fuse3"),
        ),
        (Ok(()), true) => (
            "touch FILE; nbdfuse FILE URI & (fusermount3 -u FILE ends it)",
            None,
        ),
    };
    Way {
        way: "FUSE: a file that is a disk",
        works: change.is_none(),
        why: with_error(FUSE, &fuse, why),
        change,
        warning: None,
        signals_wait: None,
    }
}

/// A way that uses a command of dashpot.
fn with_command(way: &'static str, command: &str, works: Result<(), Missing>) -> Way {
    Way {
        way,
        works: works.is_ok(),
        why: match &works {
            Ok(()) => command.to_owned(),
            Err(missing) => missing.why.clone(),
        },
        change: works.err().map(|missing| missing.change),
        warning: None,
        signals_wait: None,
    }
}

fn with_error(device: &str, opened: &io::Result<()>, why: &str) -> String {
    match opened {
        Ok(()) => why.to_owned(),
        Err(error) => format!("{device}: {}: {why}", error.kind()),
    }
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
