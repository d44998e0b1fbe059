//! A disk as a file: a mount of `/dev/fuse`, whose descriptor goes to the daemon.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::Context;
use dashpot_doctor::FUSE;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// The mount of one file. Dropping this value unmounts the file, unless it was [kept](FuseMount::keep).
#[derive(Debug)]
pub(crate) struct FuseMount {
    at: PathBuf,
    kept: bool,
}

impl FuseMount {
    /// Mounts a new file at `at`, for root alone. The holder of the descriptor serves the file
    /// until all copies of the descriptor are closed.
    pub(crate) fn new(at: PathBuf, read_only: bool) -> anyhow::Result<(FuseMount, OwnedFd)> {
        let device = OpenOptions::new().read(true).write(true).open(FUSE);
        let device = device.with_context(|| format!("{FUSE} cannot be opened"))?;
        File::create_new(&at).with_context(|| format!("cannot make {}", at.display()))?;
        let descriptor = device.as_raw_fd();
        let options = format!("fd={descriptor},rootmode=100600,user_id=0,group_id=0");
        let mut flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        flags.set(MountFlags::RDONLY, read_only);
        let mounted = mount(
            "dashpot",
            &at,
            TYPE,
            flags,
            CString::new(options)?.as_c_str(),
        );
        mounted.with_context(|| format!("a FUSE file cannot be mounted at {}", at.display()))?;
        Ok((FuseMount { at, kept: false }, device.into()))
    }

    /// The file that the mount serves.
    pub(crate) fn path(&self) -> &Path {
        &self.at
    }

    /// Lets the mount outlive this value.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        if !self.kept {
            undo(&self.at);
        }
    }
}

/// Removes the mounts at a path. A mount that is in use ends when its last user closes it.
pub(crate) fn undo(at: &Path) {
    while unmount(at, UnmountFlags::NOFOLLOW).is_ok()
        || unmount(at, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH).is_ok()
    {}
}

/// The file system type that the list of mounts shows for these mounts.
const TYPE: &str = "fuse.dashpot";
