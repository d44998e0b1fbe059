//! The write throttle: three policies behind one interface.
//!
//! The pool asks the throttle about each write, reports data that became dirty or reached the disks, and
//! takes out the writers that may continue. The throttle knows nothing of blocks, disks or the content of
//! writes.

mod admission;
mod dirty;
mod legacy;
mod openzfs;
#[cfg(test)]
mod tests;

pub(crate) use admission::{Throttle, Tx, Verdict};
