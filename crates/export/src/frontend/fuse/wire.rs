//! The layout of messages, from the crate `polyfuse-kernel`, and constants that the crate lacks.

use polyfuse_kernel::fuse_in_header;
use zerocopy::FromBytes;

use crate::frontend::boundary::SendLimits;
use crate::store::SLICE;

/// One message from the kernel.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) header: fuse_in_header,
    /// The bytes after the header.
    pub(super) body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The first message of `received`; `None` if the length in the header does not fit the received
    /// bytes.
    #[inline]
    pub(super) fn first(received: &'a [u8]) -> Option<Message<'a>> {
        let (header, _) = fuse_in_header::read_from_prefix(received).ok()?;
        let body = received.get(size_of::<fuse_in_header>()..header.len as usize)?;
        Some(Message { header, body })
    }

    /// The length of the message.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.header.len as usize
    }

    /// The arguments at the start of the body, and the bytes after them.
    #[inline]
    pub(super) fn arguments<T: FromBytes>(&self) -> Option<(T, &'a [u8])> {
        T::read_from_prefix(self.body).ok()
    }
}

/// The number of the file system's only node, which is the file.
pub(super) const ROOT: u64 = 1;
/// Allows concurrent writes to a file. Version 7.38 of the protocol introduced this flag.
pub(super) const FOPEN_PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
/// The largest payload of a write or a read, in bytes.
pub(super) const DATA_MAX: u32 = 1 << 20;
/// The length of the longest message. The kernel refuses a read whose buffer has no room for the largest
/// write with its header.
pub(super) const MESSAGE_MAX: usize = DATA_MAX as usize + 4096;
/// The length of the longest reply.
pub(super) const REPLY_MAX: usize = DATA_MAX as usize + 4096;

// The longest reply must fit into one call of `send`, even if its data begins in the middle of one slice of a
// store and ends in the middle of another.
const _: () = assert!(REPLY_MAX as u64 / SLICE + 3 < 3 * SendLimits::STREAM.replies as u64);
