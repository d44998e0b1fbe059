//! The result of an attempt to do an operation of a store at once.

use dashpot_engine::Outcome;

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The operation is done.
    Done(Outcome),
    /// The attempt would have to wait. The attempt had no effect that counts, and a worker thread repeats the
    /// whole operation.
    WouldBlock,
}
