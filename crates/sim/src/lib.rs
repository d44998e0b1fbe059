//! The engine under a virtual clock: what a lab does in hours of disk time, in seconds, and the
//! same every time.
//!
//! A [`Scenario`](scenario::Scenario) says everything that a simulation depends on, and a
//! [`Simulation`] runs it. Nothing here asks the machine anything: no clock, no files, no threads,
//! no floats, no order that is not in the seed. Equal scenarios give equal results, on any machine.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod agenda;
mod calls;
mod checker;
mod device;
mod driver;
mod error;
mod pipe;
mod sample;
pub mod scenario;
mod setup;
pub mod swarm;
mod workload;

pub use calls::{CallWait, Unfinished};
pub use driver::{CALLS_MAX, Simulation};
pub use error::{SetupError, Violation, WorkloadError};
pub use sample::{DiskSample, PoolSample, Sample};
pub use workload::{OpResults, SlowCall, WorkloadResults};
