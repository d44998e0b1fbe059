//! System calls that wait until data is on the disk, such as `fsync`.
//!
//! The kernel's events show the beginning and the end of each call. The events of file systems, if the kernel
//! has them, show the file. No event shows the calls of 32-bit programs on a 64-bit kernel. io_uring, and
//! writes to files that were opened with `O_SYNC` or `O_DSYNC`, sync without any of these calls.

mod pairing;
mod storage;
mod tracer;

use crate::io::{Comm, Owner};

pub use storage::Storage;
pub use tracer::SyncTracer;

pub(crate) use pairing::{SyncEvent, SyncWhat};

/// A kind of call that syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncCall {
    /// `fsync` makes a file durable, with its size and times.
    Fsync,
    /// `fdatasync` makes the data of a file durable.
    Fdatasync,
    /// `msync` makes a part of mapped memory durable.
    Msync,
    /// `sync_file_range` writes a range of a file to the disk, but makes nothing durable.
    SyncFileRange,
    /// `syncfs` makes a file system durable.
    Syncfs,
    /// `sync` makes all file systems durable.
    Sync,
}

impl SyncCall {
    /// All kinds.
    pub const ALL: [SyncCall; 6] = [
        SyncCall::Fsync,
        SyncCall::Fdatasync,
        SyncCall::Msync,
        SyncCall::SyncFileRange,
        SyncCall::Syncfs,
        SyncCall::Sync,
    ];

    /// The call's name in C.
    pub fn name(self) -> &'static str {
        match self {
            SyncCall::Fsync => "fsync",
            SyncCall::Fdatasync => "fdatasync",
            SyncCall::Msync => "msync",
            SyncCall::SyncFileRange => "sync_file_range",
            SyncCall::Syncfs => "syncfs",
            SyncCall::Sync => "sync",
        }
    }
}

/// A call that syncs, with the facts that events have shown so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync {
    /// The kind of the call.
    pub call: SyncCall,
    /// The id of the thread that made the call.
    pub tid: i32,
    /// The name of the thread, if it is known.
    pub thread: Option<Comm>,
    /// The owner of the thread when the call began.
    pub owner: Owner,
    /// When the call began.
    pub began_ns: u64,
    /// When the call ended; `None` if the call has not ended.
    pub ended_ns: Option<u64>,
    /// The errno with which the call ended, or 0.
    pub error: i32,
    /// The first byte and the length of the call's range, if it has one.
    pub range: Option<(u64, u64)>,
    /// The file, if it is known.
    pub file: Option<FileId>,
}

/// A file, or the file system that `syncfs` makes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The place where the file's data is.
    pub storage: Storage,
    /// The file's inode number; `None` for a file system.
    pub inode: Option<u64>,
}
