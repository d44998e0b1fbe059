//! The layout of messages and replies between the receiver, the shard and the transport. The messages
//! and replies never leave the process.

use dashpot_engine::Op;
use dashpot_sys::seccomp::CallId;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// A call on a file of the disk.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Message {
    /// The kernel's id of the call.
    pub(super) id: u64,
    /// When the receiver got the call, in nanoseconds.
    pub(super) arrived: u64,
    /// The offset of the first byte.
    pub(super) offset: u64,
    /// The number of bytes.
    pub(super) length: u32,
    /// The index of the operation in [`Op::ALL`], or [`WITHDRAWN`].
    pub(super) op: u32,
    /// How dashpot does a sync itself: a [`super::syncs::Way`].
    pub(super) way: u32,
    /// The number of the thread that makes the call.
    pub(super) thread: u32,
    /// The descriptor in the call's first argument.
    pub(super) descriptor: u32,
    /// The call's number in the table of calls that rules can name, or 0.
    pub(super) call: u32,
}

impl Message {
    /// The message which tells the shard that no thread waits for this call any more.
    pub(super) fn withdrawal(id: CallId) -> Message {
        Message {
            id: id.0,
            op: WITHDRAWN,
            ..Message::new_zeroed()
        }
    }

    pub(super) fn op(&self) -> Op {
        let op = Op::ALL.get(self.op as usize);
        op.copied().unwrap_or(Op::Sync)
    }
}

/// The reply to a call.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Reply {
    pub(super) id: u64,
    /// The number of the error with which the call fails, or 0 if the call goes on.
    pub(super) error: u64,
}

/// The value of `op` in a message that says that no thread waits for the call any more.
pub(super) const WITHDRAWN: u32 = u32::MAX;
pub(super) const MESSAGE: usize = size_of::<Message>();
pub(super) const REPLY: usize = size_of::<Reply>();
