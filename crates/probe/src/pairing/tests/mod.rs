//! Tests of the pairing with histories of events that are written by hand, recorded from a kernel, or made by
//! a naive device.

mod bios;
mod history;
mod losses;
mod naive;
mod requests;
mod traces;
