//! Facts about files.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, OFlags, StatxAttributes, StatxFlags, makedev, readlink, statx};
use rustix::io::Errno;
use rustix::path::Arg;

/// The facts about a file by which dashpot recognises the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The device number of the file's file system.
    pub device: u64,
    /// The file's number in its file system.
    pub inode: u64,
    /// How many names the file has.
    pub names: u64,
    /// The file's length in bytes.
    pub length: u64,
    /// The file's kind and permissions.
    pub mode: u32,
    /// The number of the mount through which the file was reached.
    pub mount: u64,
    /// Whether mappings of the file reach persistent memory itself (DAX), and not the page cache.
    pub is_persistent_memory: bool,
}

/// The place to which a name leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTarget {
    /// The facts about the file to which the name leads. If the last part of the name was not to be followed,
    /// or if no such file exists yet, these are the facts about the directory to which the other parts lead.
    pub status: Status,
    /// The path of the place.
    pub path: Vec<u8>,
}

impl Status {
    /// The facts about the file at a path.
    pub fn of(path: impl Arg) -> Result<Status, Errno> {
        // With this flag, the kernel does not ask the server of a file system, which may be gone, or may be
        // waiting for this process.
        let flags = AtFlags::STATX_DONT_SYNC;
        let asked = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let found = statx(CWD, path, flags, asked)?;
        Ok(Status {
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            names: found.stx_nlink.into(),
            length: found.stx_size,
            mode: found.stx_mode.into(),
            mount: found.stx_mnt_id,
            is_persistent_memory: found.stx_attributes.contains(StatxAttributes::DAX),
        })
    }
}

impl PathTarget {
    /// The place of an open file. With `last`, `file` is a directory, and the result is the place of its
    /// entry `last`.
    pub(super) fn of(file: &OwnedFd, last: Option<&[u8]>) -> Result<PathTarget, Errno> {
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        let status = Status::of(&own)?;
        let mut path = link(&own)?;
        if let Some(last) = last {
            if path.last() != Some(&b'/') {
                path.push(b'/');
            }
            path.extend_from_slice(last);
        }
        Ok(PathTarget { status, path })
    }
}

pub fn link(path: &str) -> Result<Vec<u8>, Errno> {
    Ok(readlink(path, Vec::new())?.into_bytes())
}

pub(super) const PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
pub(super) const DIRECTORY: OFlags = PLACE.union(OFlags::DIRECTORY);
