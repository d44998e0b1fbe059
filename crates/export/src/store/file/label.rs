//! A file's label names its disk, so that two swapped files are not mistaken for each other.
//!
//! The label is the disk's name in the extended attribute `user.dashpot.disk` of the file. There
//! were three places to choose from:
//!
//! - *in the file*, behind the data. That would change an image that a user brought: it would grow
//!   by a block, its checksum would differ, its backup partition table would no longer be at the
//!   end, and later growth would bury the label in the data;
//! - *in a second file*. This file would stay behind when the image is moved, and so miss the very swap
//!   that the label should detect. A second file that named the inode would detect the swap, but
//!   restoring a backup changes the inode;
//! - *on the inode*. The label moves with the file and leaves every byte alone. A copy is no longer the
//!   disk's file, and starts without a label.
//!
//! The server labels an unlabelled file if clients may write to the disk, after the server has opened
//! every disk of the lab. On file systems without extended attributes (FAT; tmpfs before Linux 6.6) there is
//! no protection.

use std::fs::File;
use std::io;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use rustix::io::Errno;

/// The name of the attribute; its value is the name of the disk.
pub(in crate::store) const ATTRIBUTE: &str = "user.dashpot.disk";
/// The attribute with the label of a mirror's side.
const MIRROR: &str = "user.dashpot.mirror";

/// The longest label: file systems store at most about this many bytes in an attribute.
const LONGEST: usize = 4096;

/// The name of the disk that a file belongs to, if it has a label.
pub(super) fn read(file: &File) -> io::Result<Option<String>> {
    let mut name = vec![0; LONGEST];
    match fgetxattr(file, ATTRIBUTE, name.as_mut_slice()) {
        Ok(length) => Ok(Some(String::from_utf8_lossy(&name[..length]).into_owned())),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The label of a file as a mirror's side, if the file has such a label. Fails with
/// [`io::ErrorKind::Unsupported`] if the file system has no attributes.
pub(super) fn read_mirror(file: &File) -> io::Result<Option<String>> {
    let mut label = vec![0; LONGEST];
    match fgetxattr(file, MIRROR, label.as_mut_slice()) {
        Ok(length) => Ok(Some(String::from_utf8_lossy(&label[..length]).into_owned())),
        Err(Errno::NODATA) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Labels a file as a mirror's side, durably. `fdatasync` is not enough for an attribute.
pub(super) fn write_mirror(file: &File, label: &str) -> io::Result<()> {
    fsetxattr(file, MIRROR, label.as_bytes(), XattrFlags::empty())?;
    file.sync_all()
}

/// Labels a file as the file of a disk.
pub(super) fn write(file: &File, disk: &str) -> io::Result<()> {
    match fsetxattr(file, ATTRIBUTE, disk.as_bytes(), XattrFlags::empty()) {
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
