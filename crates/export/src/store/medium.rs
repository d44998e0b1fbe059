//! What a volatile cache asks of the store below it, which it waits for.

use dashpot_engine::Outcome;

pub(crate) trait Medium {
    /// Fills `into` from `offset`.
    fn read(&self, offset: u64, into: &mut [u8]) -> Outcome;

    /// Writes `from` at `offset`.
    fn write(&mut self, offset: u64, from: &[u8]) -> Outcome;

    /// Makes a range read as zeroes.
    fn zero(&mut self, offset: u64, length: u64) -> Outcome;

    /// Makes durable whatever was done before.
    fn flush(&mut self) -> Outcome;

    /// Why what it says of durability can no longer be trusted, if it cannot.
    fn fault(&self) -> Option<&str>;
}
