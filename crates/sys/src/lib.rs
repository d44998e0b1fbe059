//! Safe interfaces to those system calls that need `unsafe`.
//!
//! Each `unsafe` block has a comment that says why it is sound. No other crate has `unsafe` blocks.

mod bell_ring;
mod buffer;
mod device;
mod inherited;
mod mounts;
mod pages;
mod priority;
mod rights;
mod ring;
pub mod seccomp;
mod shared;
mod switches;
mod trust;
#[cfg(feature = "ublk")]
pub mod ublk;
mod wait;

pub use buffer::Buffer;
pub use device::discard;
pub use inherited::duplicate_inherited;
pub use mounts::Mount;
pub use pages::{PageSize, Pages, Provision};
pub use priority::run_before_others;
pub use rights::{User, with_rights_of};
pub use ring::{Completion, Ring, Work, why_no_ring};
pub use shared::SharedWords;
pub use switches::voluntary_switches;
pub use trust::Trusted;
pub use wait::wait_for_events;
