//! The kernel's drivers that can make a disk a block device here.

use std::io;
use std::path::Path;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities};

#[cfg(feature = "ublk")]
use dashpot_sys::{
    ublk::{CONTROL, Control},
    why_no_ring,
};

use crate::found::{installed, opened};

/// The device whose descriptors are connections to the kernel's FUSE.
pub const FUSE: &str = "/dev/fuse";
/// The directory of the kernel's NBD client.
const NBD: &str = "/sys/module/nbd";
/// The file through which programs make loop devices.
pub(crate) const LOOP_CONTROL: &str = "/dev/loop-control";

/// Whether `dashpot attach` can make a loop device over a FUSE file; if not, what is missing and how to
/// get it.
pub fn loop_works() -> Result<(), Missing> {
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
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Missing::new(format!("{device} is not there"), change));
            }
            Err(error) => return Err(Missing::new(format!("{device}: {}", error.kind()), change)),
            Ok(()) => {}
        }
    }
    needs_root("mounting a file and making a loop device")?;
    if installed("losetup") {
        Ok(())
    } else {
        Err(Missing::new("losetup is missing", "apt-get install mount"))
    }
}

/// Whether `dashpot attach` can use the kernel's NBD client; if not, what is missing and how to get it.
pub fn nbd_works() -> Result<(), Missing> {
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
    needs_root("configuring the kernel's NBD client")
}

/// Whether `dashpot attach` can use the kernel's ublk driver; if not, what is missing and how to get it.
#[cfg(feature = "ublk")]
pub fn ublk_works() -> Result<(), Missing> {
    if !Path::new(CONTROL).exists() {
        return Err(Missing::new(
            "this kernel has no ublk driver, or has not loaded it",
            "modprobe ublk_drv, as root",
        ));
    }
    needs_root("making a ublk device")?;
    let mut control = Control::open().map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::NotFound => format!("{CONTROL}: {error}"),
            _ => why_no_ring(&error),
        };
        Missing::new(why, "a kernel and a container that allow it")
    })?;
    if control.is_sufficient() {
        Ok(())
    } else {
        Err(Missing::new(
            "this kernel's ublk driver is too old",
            "Linux 6.9 or later",
        ))
    }
}

/// Always says that this build has no ublk.
#[cfg(not(feature = "ublk"))]
pub fn ublk_works() -> Result<(), Missing> {
    Err(Missing::new(
        "this dashpot was built without ublk",
        "build it with --features ublk",
    ))
}

/// Whether this process is root, and has root's right to change mounts and devices. Containers often lack that
/// right.
fn needs_root(what: &str) -> Result<(), Missing> {
    if !is_root() {
        return Err(Missing::new(format!("{what} needs root"), "sudo"));
    }
    let has_right = |sets: CapabilitySets| sets.effective.contains(CapabilitySet::SYS_ADMIN);
    // If the kernel does not tell which rights this process has, assume the right. The attempt to use it then
    // shows whether this process has it.
    if capabilities(None).is_ok_and(|sets| !has_right(sets)) {
        Err(Missing::new(
            format!("{what} needs CAP_SYS_ADMIN, which root lacks here"),
            "a container needs --privileged",
        ))
    } else {
        Ok(())
    }
}

/// The reason why a way to a disk does not work on this host, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The reason.
    pub why: String,
    /// The change that would make it work.
    pub change: &'static str,
}

impl Missing {
    pub(crate) fn new(why: impl Into<String>, change: &'static str) -> Missing {
        Missing {
            why: why.into(),
            change,
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
