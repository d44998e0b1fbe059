//! The names of buffers. The engine decides which bytes go where; the driver holds and moves them.
//!
//! A [`Buf`] always has the size of a block of its volume. Only the engine allocates and frees the
//! names. When a name is first used, or used again after [`Move::Free`], its content is undefined. A driver
//! that only simulates may keep a version number for each sector instead of the bytes, or nothing.

use crate::zio::ZioId;

/// The name of a buffer. Names are small numbers with few gaps, so they can be indices.
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
    /// Copies the payload of a client's write, beginning at its byte `from`, to a buffer.
    CopyIn {
        /// The client's zio.
        zio: ZioId,
        /// The offset in the payload of the first byte to copy.
        from: u32,
        /// The destination.
        to: Span,
    },
    /// Copies a buffer into the reply of a client's read, beginning at byte `to` of the reply.
    CopyOut {
        /// The client's zio.
        zio: ZioId,
        /// The offset in the reply of the first byte to write.
        to: u32,
        /// The source.
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
    /// A number of bytes to read and discard, because one large read is faster than two.
    Gap(u32),
}
