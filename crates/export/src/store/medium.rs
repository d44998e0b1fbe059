//! The operations that a volatile cache needs from the store below it. They wait for the medium.

use dashpot_engine::Outcome;

pub(crate) trait Medium {
    /// Fills `into` with the bytes at `offset`.
    fn read(&self, offset: u64, into: &mut [u8]) -> Outcome;

    /// Writes `from` at `offset`.
    fn write(&mut self, offset: u64, from: &[u8]) -> Outcome;

    /// Makes a range read as zeroes.
    fn zero(&mut self, offset: u64, length: u64) -> Outcome;

    /// Makes all earlier writes durable.
    fn flush(&mut self) -> Outcome;

    /// The reason that the medium's durability can no longer be trusted, if there is one.
    fn fault(&self) -> Option<&str>;
}
