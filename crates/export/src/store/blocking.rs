//! The blocking operations of a store, each of which waits until the store's medium has done it. Worker
//! threads call them, and so do other callers that may block.

use std::fmt;

use dashpot_engine::Outcome;

/// A store whose medium can make callers wait.
pub(crate) trait Blocking: fmt::Debug + Send + Sync {
    /// Fills `into` with the bytes at `offset`.
    fn read(&self, offset: u64, into: &mut [u8]) -> Outcome;

    /// Writes `from` at `offset`. With `fua`, the data is durable once the write is done.
    fn write(&self, offset: u64, from: &[u8], fua: bool) -> Outcome;

    /// Makes a range read as zeroes. With `no_hole`, the range keeps its space.
    fn zero(&self, offset: u64, length: u64, no_hole: bool, fua: bool) -> Outcome;

    /// Frees the space of a range. A trim is only advice, so a medium that cannot free space has not failed.
    fn trim(&self, offset: u64, length: u64, fua: bool) -> Outcome;

    /// Makes all earlier writes durable.
    fn sync(&self) -> Outcome;

    /// If a flush has failed, the reason. From then on, all flushes fail.
    fn fault(&self) -> Option<&str>;
}
