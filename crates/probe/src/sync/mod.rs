//! System calls that wait until data is on its disk, such as `fsync`.
//!
//! The kernel's events show the beginning and the end of each call. The events of file systems, if the
//! kernel has them, show the file. No event shows the calls of 32-bit programs on a 64-bit kernel. io_uring
//! syncs without a call, and writes to files that were opened with `O_SYNC` or `O_DSYNC` also sync without a
//! call.

mod pairing;
mod tracer;

use std::sync::Arc;

use crate::device::Number;
use crate::io::Comm;

pub use tracer::SyncTracer;

pub(crate) use pairing::{SyncEvent, SyncWhat};

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncCall {
    /// `fsync`: a file, with its size and times.
    Fsync,
    /// `fdatasync`: the data of a file.
    Fdatasync,
    /// `msync`: a part of mapped memory.
    Msync,
    /// `sync_file_range`: a range of a file. This call makes nothing durable.
    SyncFileRange,
    /// `syncfs`: a file system.
    Syncfs,
    /// `sync`: all file systems.
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

/// A call, or the part of it that events have shown so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync {
    /// The kind.
    pub call: SyncCall,
    /// The thread.
    pub pid: i32,
    /// The name of the thread, if it is known.
    pub comm: Option<Comm>,
    /// The cgroup of the thread at the time of the call, in the form of [`crate::Submitter::cgroup`].
    pub cgroup: Option<Arc<str>>,
    /// When the call began.
    pub began_ns: u64,
    /// When the call ended; `None` if the call has not ended.
    pub ended_ns: Option<u64>,
    /// The errno with which the call ended, or 0.
    pub error: i32,
    /// The first byte of a range, and its length, if the call has one.
    pub range: Option<(u64, u64)>,
    /// The file, if it is known.
    pub file: Option<FileId>,
}

/// A file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device of the file's file system, or, if the file is a block device, that device.
    pub device: Number,
    /// The file's inode number.
    pub inode: u64,
}
