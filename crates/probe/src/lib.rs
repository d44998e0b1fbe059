//! The kernel's block devices: every I/O that they finish, with the times of its queueing, issue and end,
//! read through a private instance of tracefs.
//!
//! A [`Tracer`] makes the instance, reads the kernel's binary records at the offsets that the kernel
//! describes, and pairs the records into finished I/Os ([`Io`]). Dropping the tracer removes the instance.
//! If a tracer was killed, the next tracer removes its instance.

mod cgroup;
mod device;
mod earlier;
mod error;
mod follower;
mod in_flight;
mod io;
mod options;
mod pairing;
mod proc;
mod record;
mod roster;
mod stack;
mod sync;
mod tasks;
pub mod tracefs;
mod tracer;

pub use cgroup::GONE;
pub use device::{Device, DeviceError, Layer, Number};
pub use error::TraceError;
pub use follower::INHERITED;
pub use in_flight::InFlight;
pub use io::{Comm, Io, Owner, Process, Rwbs, Submitter};
pub use options::{Options, Start};
pub use record::{Record, What};
pub use roster::{Changes, Gone, Known, Roster};
pub use stack::{UNKNOWN as UNKNOWN_DISK, all_beneath, devices_beneath};
pub use sync::{FileId, Storage, Sync, SyncCall, SyncTracer};
pub use tracer::{Progress, Tracer};
