//! What holds writers back: three policies behind one face.
//!
//! The pool asks for each write, tells what became dirty and what reached the disks, and takes out
//! those that are let go. Blocks, disks and bytes are unknown here.

mod admission;
mod dirty;
mod legacy;
mod openzfs;
#[cfg(test)]
mod tests;

pub(crate) use admission::{Throttle, Tx, Verdict};
