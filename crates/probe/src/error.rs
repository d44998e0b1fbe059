//! The errors of watching devices.

use std::io;

/// The reason that devices cannot be watched, or can no longer be watched.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// tracefs is not mounted anywhere.
    #[error(
        "tracefs is not mounted: 'sudo mount -t tracefs nodev /sys/kernel/tracing' mounts it; then run \
         dashpot as root, or watch dashpot's own disks, which takes no privilege"
    )]
    NoTracefs,
    /// The user has no access to tracefs.
    #[error(
        "{path} may not be used by this user: run dashpot as root, or watch dashpot's own disks, \
         which takes no privilege"
    )]
    NoPrivilege {
        /// The path that was refused.
        path: String,
    },
    /// The kernel lacks a required event.
    #[error("this kernel has no event '{0}': it was built without block tracing")]
    NoEvent(String),
    /// The kernel's description of its records cannot be parsed.
    #[error("the kernel's {what} is not understood: {why}")]
    Format {
        /// The name of the description.
        what: String,
        /// The fault in the description.
        why: String,
    },
    /// Another program has switched off the recording of events, so later events are missing.
    #[error("another program has set {path} to 0, and events are missing since then: watch again")]
    SwitchedOff {
        /// The file that switches the recording of events on and off.
        path: String,
    },
    /// Reading or writing failed.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// The system's error.
        error: io::Error,
    },
}
