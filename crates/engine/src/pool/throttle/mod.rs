//! The write throttle: three policies behind one interface.
//!
//! The pool asks about each write, reports dirty data and data that reached the disks, and takes
//! out the writers that may go. The throttle knows nothing of blocks, disks and bytes.

mod admission;
mod dirty;
mod legacy;
mod openzfs;
#[cfg(test)]
mod tests;

pub(crate) use admission::{Throttle, Tx, Verdict};
