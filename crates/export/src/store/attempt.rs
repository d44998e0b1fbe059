//! The result of an attempt.

use dashpot_engine::Outcome;

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It is done.
    Done(Outcome),
    /// The attempt would have to wait. It had no effect that counts; a thread of the pool repeats
    /// all of it.
    WouldBlock,
}
