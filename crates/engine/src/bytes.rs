//! Bytes by name: the engine decides which bytes go where, its driver holds and moves them.
//!
//! A [`Buf`] is as large as a block of the volume that it belongs to. The engine alone allocates
//! and frees the names; one that is named for the first time, or again after [`Move::Free`], holds
//! anything. A driver that only simulates may keep one version number per sector instead of
//! bytes, or nothing at all.

use crate::zio::ZioId;

/// Names a buffer: small and dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buf(pub u32);

/// A part of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The buffer.
    pub buf: Buf,
    /// First byte in it.
    pub at: u32,
    /// Number of bytes.
    pub length: u32,
}

/// Bytes that move in memory: at once, and in the order in which they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// From the payload of a client's write, from its byte `from` on, to a buffer.
    CopyIn {
        /// The client's zio.
        zio: ZioId,
        /// First byte of the payload.
        from: u32,
        /// Where to.
        to: Span,
    },
    /// From a buffer to the reply of a client's read, from its byte `to` on.
    CopyOut {
        /// The client's zio.
        zio: ZioId,
        /// First byte of the reply.
        to: u32,
        /// Where from.
        from: Span,
    },
    /// Zeroes to the reply of a client's read.
    ZeroOut {
        /// The client's zio.
        zio: ZioId,
        /// First byte of the reply.
        to: u32,
        /// Number of bytes.
        length: u32,
    },
    /// Zeroes to a buffer.
    Zero(Span),
    /// The whole of a buffer to another.
    Clone {
        /// Where from.
        from: Buf,
        /// Where to.
        to: Buf,
    },
    /// The name is not in use any more.
    Free(Buf),
}

/// A part of what a child zio moves between its disk and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// From or to a whole buffer, of so many bytes.
    Buf(Buf, u32),
    /// So many bytes that are read and thrown away, because one large read is faster than two.
    Gap(u32),
}
