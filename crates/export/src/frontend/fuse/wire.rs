//! The layout of messages, from the crate `polyfuse-kernel`, and the numbers that the crate lacks.

use polyfuse_kernel::fuse_in_header;
use zerocopy::FromBytes;

use crate::frontend::boundary::SendLimits;
use crate::store::SLICE;

/// A message from the kernel.
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

    /// Reads the arguments at the start of the body, and the bytes after them.
    #[inline]
    pub(super) fn arguments<T: FromBytes>(&self) -> Option<(T, &'a [u8])> {
        T::read_from_prefix(self.body).ok()
    }
}

/// The number of the only node: the file itself.
pub(super) const ROOT: u64 = 1;
/// Allows concurrent writes to a file. Version 7.38 of the protocol introduced this flag.
pub(super) const FOPEN_PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
/// The largest payload of a write, and the most bytes of a read.
pub(super) const DATA_MAX: u32 = 1 << 20;
/// The longest message. The kernel refuses reads with less room than the largest write and its
/// header need.
pub(super) const MESSAGE_MAX: usize = DATA_MAX as usize + 4096;
/// The longest reply.
pub(super) const REPLY_MAX: usize = DATA_MAX as usize + 4096;

// The longest reply fits into one call, with its header and with partial slices of a store at both
// ends.
const _: () = assert!(REPLY_MAX as u64 / SLICE + 3 < 3 * SendLimits::STREAM.replies as u64);
