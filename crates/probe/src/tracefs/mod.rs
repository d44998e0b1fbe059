//! The kernel's tracing file system: a private instance, the content of its files, and its buffers.
//!
//! Sources: the kernel's `Documentation/trace/ftrace.rst` and `ring-buffer-design.rst`, and the
//! descriptions in `events/header_page` and `events/header_event`.

pub(crate) mod decoder;
pub(crate) mod events;
pub mod format;
pub(crate) mod instance;
pub mod page;
pub(crate) mod ring;
pub(crate) mod setup;
pub(crate) mod syncs;
pub(crate) mod tasks;

#[cfg(test)]
pub(crate) mod fixtures;
