//! The layout of messages and replies between the receiver, the shard and the transport. They never leave
//! the process.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A call on a file of the disk.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Message {
    /// The kernel's name for the call.
    pub(super) id: u64,
    /// 1 if the call is on several disks, each of which must reply.
    pub(super) several: u64,
}

/// The reply to a call.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Reply {
    pub(super) id: u64,
    /// The number of an error; 0: the call goes on.
    pub(super) error: u64,
}

pub(super) const MESSAGE: usize = size_of::<Message>();
pub(super) const REPLY: usize = size_of::<Reply>();
