//! The layout of messages and replies between `transport` and the shard. These messages and replies never
//! leave the process.

use dashpot_sys::ublk::Descriptor;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::frontend::boundary::SendLimits;
use crate::store::SLICE;

/// The beginning of a message. If the request is a write, its data follows.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Head {
    /// The driver's tag of the request.
    pub(super) tag: u32,
    /// How many bytes of data follow.
    pub(super) data: u32,
    pub(super) descriptor: Descriptor,
}

#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) head: Head,
    data: &'a [u8],
}

impl<'a> Message<'a> {
    /// The first message of `received`. `None` if it is not complete.
    #[inline]
    pub(super) fn first(received: &'a [u8]) -> Option<Message<'a>> {
        let (head, rest) = Head::read_from_prefix(received).ok()?;
        let data = rest.get(..head.data as usize)?;
        Some(Message { head, data })
    }

    /// The length of the message.
    #[inline]
    pub(super) fn len(&self) -> usize {
        HEAD + self.data.len()
    }
}

/// The beginning of a reply. If the request was a read, its data follows.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Reply {
    pub(super) tag: u32,
    /// The number of bytes that were read or written, or the negative number of an error.
    pub(super) result: i32,
}

/// Encodes a message.
#[cfg(test)]
pub(super) fn message(tag: u16, descriptor: Descriptor, data: &[u8]) -> Vec<u8> {
    let head = Head {
        tag: tag.into(),
        data: data.len() as u32,
        descriptor,
    };
    [head.as_bytes(), data].concat()
}

/// The length of the head of a message.
pub(super) const HEAD: usize = size_of::<Head>();
/// The length of the largest read or write, in bytes.
pub const DATA_MAX: u32 = 1 << 20;
/// The length of the longest message.
pub(super) const MESSAGE_MAX: usize = DATA_MAX as usize + HEAD;
/// The length of the longest reply.
pub(super) const REPLY_MAX: usize = DATA_MAX as usize + size_of::<Reply>();
/// The unit of offsets and lengths in the driver's description of a request, in bytes.
pub(super) const SECTOR: u64 = 512;

// The longest reply must fit into one call of `send`, even if its data begins in the middle of one slice of a
// store and ends in the middle of another.
const _: () = assert!(REPLY_MAX as u64 / SLICE + 3 < 3 * SendLimits::STREAM.replies as u64);
