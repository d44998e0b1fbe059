//! Where the bytes of a disk really are.
//!
//! A [`Store`] belongs to one shard, which must never wait. So every operation is an *attempt*:
//! it is done at once, or it [would block](Attempt::WouldBlock), and then the shard hands it to a
//! thread of the [`Pool`], which does it on the same file.
//!
//! Stores trust their caller with ranges: all of them lie within the size that [`open_all`] gave.

mod any;
mod attempt;
mod error;
mod extent;
mod file;
mod lossy;
mod medium;
mod memory;
mod open;
mod pieces;
mod pool;
mod ram;
mod slabs;
#[cfg(test)]
mod tests;

pub use error::StoreError;
pub use memory::available_memory;

pub(crate) use any::Store;
pub(crate) use attempt::Attempt;
pub(crate) use error::Size;
pub(crate) use extent::Extent;
#[cfg(test)]
pub(crate) use file::FileStore;
pub(crate) use lossy::Asker;
pub(crate) use open::{Adoption, Opened, open_all};
pub(crate) use pool::{FileOperation, Finished, Job, Pool};
pub(crate) use ram::SLICE;
