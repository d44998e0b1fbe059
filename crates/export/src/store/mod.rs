//! Stores hold the actual bytes of disks.
//!
//! A [`Store`] belongs to one shard, which must never wait. So every operation is an *attempt*: it is done at
//! once, or it [would block](Attempt::WouldBlock). In that case the shard hands the operation to a worker
//! thread of [`Workers`], which repeats the operation on the same file or device.
//!
//! Stores do not check the ranges that callers give. All ranges must lie within the size that [`open_all`]
//! returned.

mod any;
mod attempt;
mod blocking;
mod device;
mod durability;
mod error;
mod extent;
mod file;
mod filler;
mod lossy;
mod medium;
mod memory;
mod mirror;
mod open;
mod pieces;
mod ram;
mod slabs;
mod sparse;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod tests;
mod workers;

pub use device::{
    OpenDevices, device_file_users, device_is_on_top, device_mounts, device_numbers, device_users,
    device_users_beside,
};
pub use error::StoreError;
pub use memory::available_memory;

pub(crate) use any::Store;
pub(crate) use attempt::Attempt;
#[cfg(test)]
pub(crate) use blocking::Blocking;
pub(crate) use error::Size;
pub(crate) use extent::Extent;
#[cfg(test)]
pub(crate) use file::FileStore;
pub(crate) use lossy::{Asker, Change, ChangeAnswer, Ended, Going, Lossy, Settled};
pub(crate) use mirror::{Keeper, Side, Start, assemble, data_of};
pub(crate) use open::{Adoption, Opened, open_all};
pub(crate) use ram::SLICE;
pub(crate) use workers::{Finished, Job, PoolOperation, Workers};
