//! The names of buffers. The engine decides which bytes go where; the driver holds and moves them.
//!
//! Each [`Buf`] names a buffer that is as large as one block of its volume. Only the engine allocates and
//! frees the names. When a name is first used, or used again after [`Move::Free`], the content of its buffer
//! is undefined. A driver that only simulates may keep a version number for each sector instead of the bytes,
//! or keep nothing.

use crate::zio::ZioId;

/// The name of a buffer. Names are small numbers with few gaps, so a driver can use them as indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buf(pub u32);

/// A part of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The buffer.
    pub buf: Buf,
    /// The offset of the part in the buffer, in bytes.
    pub at: u32,
    /// Number of bytes.
    pub length: u32,
}

/// A move of bytes in memory. The driver executes moves at once, in the order of the actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Copies part of the payload of a client's write, starting at byte `from`, into a buffer.
    CopyIn {
        /// The client's zio.
        zio: ZioId,
        /// The offset in the payload of the first byte to copy.
        from: u32,
        /// The destination.
        to: Span,
    },
    /// Copies part of a buffer into the reply of a client's read, starting at byte `to` of the reply.
    CopyOut {
        /// The client's zio.
        zio: ZioId,
        /// The offset in the reply of the first byte to write.
        to: u32,
        /// The source.
        from: Span,
    },
    /// Lends a part of a buffer, at least half of it, to a client's read, as the whole data of its reply. The
    /// driver takes the bytes from the buffer when it sends the reply. It may take them from the disk instead
    /// if the child that fetched them [reads only for replies](crate::Engine::reads_only_for_replies). The
    /// engine frees the buffer when the zio has ended.
    Lend {
        /// The client's zio.
        zio: ZioId,
        /// The data.
        from: Span,
    },
    /// Writes zeroes into the reply of a client's read.
    ZeroOut {
        /// The client's zio.
        zio: ZioId,
        /// The offset in the reply of the first byte to write.
        to: u32,
        /// Number of bytes.
        length: u32,
    },
    /// Writes zeroes into a buffer.
    Zero(Span),
    /// Copies a whole buffer to another buffer.
    Clone {
        /// The source.
        from: Buf,
        /// The destination.
        to: Buf,
    },
    /// Forgets the content of a buffer, and frees the buffer's name.
    Free(Buf),
}

/// A part of the bytes that a child zio moves between its disk and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A whole buffer, and its length in bytes.
    Buf(Buf, u32),
    /// A gap of this many bytes between two buffers. The driver reads and discards these bytes, because one
    /// large read is faster than two small ones.
    Gap(u32),
}
