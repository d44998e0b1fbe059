//! The errors of opening a store. The messages name the disk, the value and, if there is one, the remedy.

use std::path::PathBuf;
use std::{fmt, io};

use dashpot_rules::{StoreConfig, shell_word};

use super::file::label::ATTRIBUTE;

/// The reason that a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk's configuration has no size, and its store has no size either.
    #[error("disk `{disk}`: {store} has no size of its own; give it one, such as `size=1G`")]
    NoSize {
        /// The name of the disk.
        disk: String,
        /// The disk's store.
        store: StoreConfig,
    },
    /// The disk has a size of zero.
    #[error(
        "disk `{disk}`: {store} has a size of 0 bytes; give it a size, such as `size=1G` (a file must be at least as long: `truncate -s 1G`)"
    )]
    Empty {
        /// The name of the disk.
        disk: String,
        /// The disk's store.
        store: StoreConfig,
    },
    /// The directory of the disk's files cannot be used.
    #[error("disk `{disk}`: path:{}: {why}", .path.display())]
    Directory {
        /// The name of the disk.
        disk: String,
        /// The directory, as configured.
        path: PathBuf,
        /// The reason, and the remedy.
        why: String,
    },
    /// There is no such file.
    #[error(
        "disk `{disk}`: there is no file {path}; make one with `truncate -s {} {path}`",
        Size(.size.unwrap_or(1 << 30)), path = .path.display()
    )]
    Missing {
        /// The name of the disk.
        disk: String,
        /// The disk's file.
        path: PathBuf,
        /// The disk's size in bytes, if it is configured.
        size: Option<u64>,
    },
    /// There is something other than a regular file at the path.
    #[error("disk `{disk}`: {path} is {kind}", path = .path.display())]
    NotAFile {
        /// The name of the disk.
        disk: String,
        /// The disk's file.
        path: PathBuf,
        /// The kind of file at the path, and the remedy.
        kind: &'static str,
    },
    /// There is something other than a block device at the path.
    #[error("disk `{disk}`: {path} is {kind}", path = .path.display())]
    NotADevice {
        /// The name of the disk.
        disk: String,
        /// The disk's device.
        path: PathBuf,
        /// The kind of file at the path, and the remedy.
        kind: &'static str,
    },
    /// The kernel or another process uses the device.
    #[error(
        "disk `{disk}`: {path} is in use: {}; end that use, or name another device",
        .users.join(", "), path = .path.display()
    )]
    Busy {
        /// The name of the disk.
        disk: String,
        /// The disk's device.
        path: PathBuf,
        /// A description of each user.
        users: Vec<String>,
    },
    /// The user of this process may not open the device.
    #[error(
        "disk `{disk}`: {path} cannot be opened ({reason}); serve it as root, or as a member of the group that may open it (`ls -l {word}`)",
        path = .path.display(), word = shell_word(&.path.to_string_lossy())
    )]
    Forbidden {
        /// The name of the disk.
        disk: String,
        /// The disk's device.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// The disk does not fit on its device.
    #[error("disk `{disk}`: {path} has {why}", path = .path.display())]
    DoesNotFit {
        /// The name of the disk.
        disk: String,
        /// The disk's device.
        path: PathBuf,
        /// The property of the device that keeps the disk from fitting, and the remedy.
        why: String,
    },
    /// The device's blocks are too large for a lossy store on it.
    #[error(
        "disk `{disk}`: {store} needs a device with blocks of 512, and this device has blocks of {}; put a file on it (`lossy:file:PATH`)",
        Size((*.block).into())
    )]
    LossyBlocks {
        /// The name of the disk.
        disk: String,
        /// The disk's store.
        store: StoreConfig,
        /// The size of the device's blocks, in bytes.
        block: u32,
    },
    /// The user of this process may not write to the file.
    #[error(
        "disk `{disk}`: {path} cannot be written ({reason}); allow it (`chmod u+w`), or make the disk read-only (`ro`)",
        path = .path.display()
    )]
    NotWritable {
        /// The name of the disk.
        disk: String,
        /// The disk's file.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// Another user owns the file, and so can read and change the bytes of the disk.
    #[error(
        "disk `{disk}`: user {uid} owns {path}, and may have made it for you to find; name another file, or make it yours (`chown`)",
        path = .path.display()
    )]
    OfAnother {
        /// The name of the disk.
        disk: String,
        /// The disk's file.
        path: PathBuf,
        /// The user who owns the file.
        uid: u32,
    },
    /// Another disk of this daemon, or another daemon, uses the file.
    #[error(
        "disk `{disk}`: {path} is in use by another disk or daemon; stop that one, or name another file",
        path = .path.display()
    )]
    InUse {
        /// The name of the disk.
        disk: String,
        /// The disk's file.
        path: PathBuf,
    },
    /// The file ends before the end of the disk.
    #[error(
        "disk `{disk}`: {path} has {}, less than the disk's {}; enlarge it with `truncate -s {} {path}`, or leave the size out",
        Size(*.length), Span(*.offset, *.size), Size(*.offset + *.size), path = .path.display()
    )]
    TooSmall {
        /// The name of the disk.
        disk: String,
        /// The disk's file.
        path: PathBuf,
        /// The file's length in bytes.
        length: u64,
        /// The disk's size in bytes.
        size: u64,
        /// The offset of the disk's first byte in the file.
        offset: u64,
    },
    /// The file's label names another disk.
    #[error(
        "disk `{disk}`: {path} belongs to disk `{owner}`; name the file of `{disk}`, or call the disk `{owner}`, or serve a copy (`cp` leaves the label behind), or remove the label (`setfattr -x {ATTRIBUTE} {path}`)",
        path = .path.display()
    )]
    OtherDisk {
        /// The name of the disk.
        disk: String,
        /// The disk's file.
        path: PathBuf,
        /// The disk that the label names.
        owner: String,
    },
    /// The system refused an operation on the file or device, for a reason that no other variant names.
    #[error("disk `{disk}`: {path} cannot be {what}: {reason}", path = .path.display())]
    File {
        /// The name of the disk.
        disk: String,
        /// The disk's file.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
    /// The RAM disks could take more memory than is available.
    #[error(
        "RAM disks of {} in all, but this process may use {}; make them smaller, put them into files (`file:PATH`), or pass `--overcommit`",
        Size(*.total), Size(*.available >> 20 << 20)
    )]
    Memory {
        /// The total size of all RAM disks, in bytes.
        total: u64,
        /// The available memory, in bytes.
        available: u64,
    },
}

/// Prints a disk's size, and its offset in its file or on its device.
pub(crate) struct Span(pub(crate) u64, pub(crate) u64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Span(offset, size) = *self;
        match offset {
            0 => write!(f, "size of {}", Size(size)),
            _ => write!(f, "offset of {} and size of {}", Size(offset), Size(size)),
        }
    }
}

/// Prints a number of bytes as options accept it, in the largest unit that divides it without a remainder.
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
        let fits = |shift: u32| self.0 != 0 && self.0.trailing_zeros() >= shift;
        match units.into_iter().find(|&(shift, _)| fits(shift)) {
            Some((shift, unit)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}
