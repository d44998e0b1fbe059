//! The operations that a volatile cache needs from the store below it. They may wait for the medium.

use dashpot_engine::Outcome;

use super::blocking::Blocking;

pub(crate) trait Medium {
    /// Whether the operations may wait, so that a shard must not call them.
    fn waits(&self) -> bool;

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

/// The medium, for a worker thread.
impl Medium for &dyn Blocking {
    fn waits(&self) -> bool {
        true
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Outcome {
        (**self).read(offset, into)
    }

    fn write(&mut self, offset: u64, from: &[u8]) -> Outcome {
        (**self).write(offset, from, false)
    }

    fn zero(&mut self, offset: u64, length: u64) -> Outcome {
        (**self).zero(offset, length, false, false)
    }

    fn flush(&mut self) -> Outcome {
        self.sync()
    }

    fn fault(&self) -> Option<&str> {
        (**self).fault()
    }
}
