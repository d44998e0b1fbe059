//! The operations of a store that wait for its medium. Worker threads call these operations, and
//! so do other callers that may wait.

use std::fmt;

use dashpot_engine::Outcome;

/// A store with a medium that can make its callers wait.
pub(crate) trait Blocking: fmt::Debug + Send + Sync {
    /// Fills `into` with the bytes at `offset`.
    fn read(&self, offset: u64, into: &mut [u8]) -> Outcome;

    /// Writes `from` at `offset`. With `fua`, the data is durable once the write is done.
    fn write(&self, offset: u64, from: &[u8], fua: bool) -> Outcome;

    /// Makes a range read as zeroes. With `no_hole`, the range keeps its space.
    fn zero(&self, offset: u64, length: u64, no_hole: bool, fua: bool) -> Outcome;

    /// Gives the space of a range back. A trim is advice: a medium that cannot follow the advice
    /// has not failed.
    fn trim(&self, offset: u64, length: u64, fua: bool) -> Outcome;

    /// Makes all earlier writes durable.
    fn sync(&self) -> Outcome;

    /// The reason that every flush fails, once a flush has failed.
    fn fault(&self) -> Option<&str>;
}
