//! Histories of events: written by hand, recorded from a kernel, or made by a naive device.

mod bios;
mod history;
mod losses;
mod naive;
mod requests;
mod traces;
