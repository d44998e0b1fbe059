//! The engine under a virtual clock: it simulates hours of disk time in seconds, with the same
//! result every time.
//!
//! A [`Scenario`](scenario::Scenario) contains everything that a simulation depends on, and a
//! [`Simulation`] runs it. Nothing here depends on the machine: no clock, no files, no threads, no
//! floats, and no order that does not follow from the seed. Equal scenarios give equal results, on
//! any machine.

#![forbid(unsafe_code)]
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
