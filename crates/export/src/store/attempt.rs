//! The result of an attempt to do an operation on a store at once.

use dashpot_engine::Outcome;

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The operation is done.
    Done(Outcome),
    /// The attempt would have to wait. A worker thread has to repeat the whole operation, even if a part of
    /// it was done.
    WouldBlock,
}
