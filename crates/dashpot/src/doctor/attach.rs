//! The kernel's drivers that can make a disk a block device here.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use super::found::{installed, opened};

/// The device whose descriptors are connections to the kernel's FUSE.
pub(crate) const FUSE: &str = "/dev/fuse";
/// The directory of the kernel's NBD client.
const NBD: &str = "/sys/module/nbd";
/// The file by which loop devices are made.
pub(crate) const LOOP_CONTROL: &str = "/dev/loop-control";

/// Whether `dashpot attach` can make a loop device over a FUSE file; if not, what is missing and how to
/// get it.
pub(crate) fn loop_works() -> Result<(), Missing> {
    for (device, change) in [
        (
            FUSE,
            "modprobe fuse, as root; a container needs --device /dev/fuse, too",
        ),
        (
            LOOP_CONTROL,
            "modprobe loop, as root; a container needs the host's loop devices, too (--privileged)",
        ),
    ] {
        match opened(device) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_root() => {}
            Err(error) => return Err(Missing::new(format!("{device}: {}", error.kind()), change)),
            Ok(()) => {}
        }
    }
    if !installed("losetup") {
        return Err(Missing::new("losetup is missing", "apt-get install mount"));
    }
    match is_root() {
        true => Ok(()),
        false => Err(Missing::new(
            "to mount a file and make a loop device takes root",
            "sudo",
        )),
    }
}

/// Whether `dashpot attach` can use the kernel's NBD client; if not, what is missing and how to get it.
pub(crate) fn nbd_works() -> Result<(), Missing> {
    if !Path::new(NBD).exists() {
        return Err(Missing::new(
            "this kernel has no NBD client, or has not loaded it",
            "modprobe nbd, as root",
        ));
    }
    if !Path::new("/dev/nbd0").exists() {
        return Err(Missing::new(
            "/dev/nbd0 is not found",
            "a container needs the host's nbd devices (--privileged)",
        ));
    }
    match is_root() {
        true => Ok(()),
        false => Err(Missing::new(
            "to configure the kernel's NBD client takes root",
            "sudo",
        )),
    }
}

/// The reason that dashpot does not use ublk.
pub(crate) fn ublk_works() -> Result<Infallible, Missing> {
    let device = "/dev/ublk-control";
    let why = match opened(device) {
        Ok(()) => format!("{device} can be used, but this version has no ublk frontend"),
        Err(error) => format!(
            "{device}: {}, and this version has no ublk frontend",
            error.kind()
        ),
    };
    Err(Missing::new(why, "a later version"))
}

/// What a way lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) why: String,
    pub(crate) change: &'static str,
}

impl Missing {
    fn new(why: impl Into<String>, change: &'static str) -> Missing {
        Missing {
            why: why.into(),
            change,
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
