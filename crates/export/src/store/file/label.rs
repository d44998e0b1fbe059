//! Whose file it is: a label keeps two swapped files from being taken for each other.
//!
//! The label is the disk's name in the extended attribute `user.dashpot.disk` of the file. Of the
//! three places where it can be:
//!
//! - *in the file*, behind the data: it would change an image that a user brought. The image would
//!   grow by a block, its checksum differ, its backup partition table no longer be at the end, and
//!   growing the file would bury the label in the data;
//! - *in a second file* beside it: it would stay behind when the file is moved, and so miss the
//!   very swap that it is there for, unless it named the inode, which a restored backup changes;
//! - *on the inode*: it moves with the file, leaves every byte alone, and a copy, which is no
//!   longer the disk's file, starts without one.
//!
//! A file without a label is adopted when it is served writable, after every disk of the lab has
//! been opened. File systems without such attributes (FAT; tmpfs before Linux 6.6) go without the
//! protection.

use std::fs::File;
use std::io;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use rustix::io::Errno;

/// The name of the attribute; its value is the name of the disk.
pub(in crate::store) const ATTRIBUTE: &str = "user.dashpot.disk";

/// File systems store at most this much in an attribute, or little more.
const LONGEST: usize = 4096;

/// The name of the disk that a file belongs to, if it belongs to one.
pub(super) fn read(file: &File) -> io::Result<Option<String>> {
    let mut name = vec![0; LONGEST];
    match fgetxattr(file, ATTRIBUTE, name.as_mut_slice()) {
        Ok(length) => Ok(Some(String::from_utf8_lossy(&name[..length]).into_owned())),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Makes a file belong to a disk.
pub(super) fn write(file: &File, disk: &str) -> io::Result<()> {
    match fsetxattr(file, ATTRIBUTE, disk.as_bytes(), XattrFlags::empty()) {
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
