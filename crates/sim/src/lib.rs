//! The engine under a virtual clock: what a lab does in hours of disk time, in seconds, and the
//! same every time.
//!
//! A [`scenario::Scenario`] says everything that a simulation depends on. Nothing here asks the
//! machine anything: no clock, no files, no threads, no floats, no order that is not in the seed.
//! Equal scenarios give equal results, on any machine.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod scenario;
