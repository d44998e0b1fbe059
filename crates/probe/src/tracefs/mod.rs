//! The kernel's tracing file system: an instance of one's own, what its files say, and its buffers.
//!
//! Sources: the kernel's `Documentation/trace/ftrace.rst` and `ring-buffer-design.rst`, and what
//! `events/header_page` and `events/header_event` say of themselves.

pub(crate) mod events;
pub mod format;
pub(crate) mod instance;
pub mod page;
pub(crate) mod ring;

#[cfg(test)]
pub(crate) mod fixtures;
