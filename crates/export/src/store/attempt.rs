//! How an attempt of a store went.

use dashpot_engine::Outcome;

/// How an attempt went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It is done.
    Done(Outcome),
    /// Nothing that counts has happened: the whole of it is for a thread of the
    /// pool.
    WouldBlock,
}
