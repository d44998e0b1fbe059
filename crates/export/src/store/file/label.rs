//! A file's label names its disk, so that two swapped files are not mistaken for each other.
//!
//! The label is the disk's name, in the file's extended attribute `user.dashpot.disk`. We considered three
//! places:
//!
//! - *in the file*, behind the data. That would change a user's image: it would grow by a block, its checksum
//!   would differ, its backup partition table would no longer be at the end, and if it grew later, the label
//!   would end up in the middle of the data;
//! - *in a second file*. This file would stay behind when the image is moved, so it would miss the very swap
//!   that the label has to detect. If it named the inode, it would detect the swap, but a restored backup,
//!   which has another inode, would look like a swap, too;
//! - *on the inode*. The label moves with the file, and changes none of its bytes. A copy is not the disk's
//!   file any more, and starts without a label. We chose this place.
//!
//! After the server has opened all disks of the lab, it labels the files that have no label and whose disks
//! can be written to. On file systems without extended attributes (FAT; tmpfs before Linux 6.6), files have
//! no labels, and swaps are not detected.

use std::fs::File;
use std::io;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use rustix::io::Errno;

/// The attribute whose value is the name of the file's disk.
pub(in crate::store) const ATTRIBUTE: &str = "user.dashpot.disk";
/// The attribute that holds the label of a mirror's side.
const MIRROR: &str = "user.dashpot.mirror";

/// The length of the longest label, in bytes. Many file systems cannot store much more in an attribute.
const LONGEST: usize = 4096;

/// The name of the disk that a file belongs to, if the file has a label.
pub(super) fn read(file: &File) -> io::Result<Option<String>> {
    let mut name = vec![0; LONGEST];
    match fgetxattr(file, ATTRIBUTE, name.as_mut_slice()) {
        Ok(length) => Ok(Some(String::from_utf8_lossy(&name[..length]).into_owned())),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The label that marks a file as the side of a mirror, if the file has one. Fails with
/// [`io::ErrorKind::Unsupported`] if the file system has no attributes.
pub(super) fn read_mirror(file: &File) -> io::Result<Option<String>> {
    let mut label = vec![0; LONGEST];
    match fgetxattr(file, MIRROR, label.as_mut_slice()) {
        Ok(length) => Ok(Some(String::from_utf8_lossy(&label[..length]).into_owned())),
        Err(Errno::NODATA) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Labels a file as a side of a mirror, durably. Uses `fsync`, because `fdatasync` need not write
/// attributes.
pub(super) fn write_mirror(file: &File, label: &str) -> io::Result<()> {
    fsetxattr(file, MIRROR, label.as_bytes(), XattrFlags::empty())?;
    file.sync_all()
}

/// Labels a file as the file of a disk. Does nothing if the file system has no attributes.
pub(super) fn write(file: &File, disk: &str) -> io::Result<()> {
    match fsetxattr(file, ATTRIBUTE, disk.as_bytes(), XattrFlags::empty()) {
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
