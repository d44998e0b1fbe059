//! The calls of the kernel that need `unsafe`, behind interfaces that do not.
//!
//! Each `unsafe` block has a comment that says why it is sound. No other crate has any.

#![warn(missing_docs)]

mod buffer;
mod device;
mod pages;
mod ring;

pub use buffer::Buffer;
pub use device::discard;
pub use pages::Pages;
pub use ring::{Completion, Ring, Work, why_no_ring};
