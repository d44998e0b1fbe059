//! Why devices cannot be watched, or not any longer.

use std::io;

/// Why devices cannot be watched, or not any longer.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// tracefs is nowhere to be found.
    #[error(
        "tracefs is not mounted: 'sudo mount -t tracefs nodev /sys/kernel/tracing' mounts it, and \
         root watches the kernel's disks; watching dashpot's own disks takes no privilege"
    )]
    NoTracefs,
    /// The user may not use it.
    #[error(
        "{path} may not be used by this user: run it as root, or watch dashpot's own disks, which \
         takes no privilege"
    )]
    NoPrivilege {
        /// What was refused.
        path: String,
    },
    /// The kernel has not the events that it takes.
    #[error("this kernel has no event '{0}': it was built without block tracing")]
    NoEvent(String),
    /// The kernel describes its records in a way that is not understood.
    #[error("the kernel's {what} is not understood: {why}")]
    Format {
        /// Which description.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Somebody else has ended the recording: what follows is unknown.
    #[error("{path} was set to 0 by somebody else, so that events are missing since: watch again")]
    SwitchedOff {
        /// The switch.
        path: String,
    },
    /// Reading or writing failed.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: String,
        /// What it was.
        error: io::Error,
    },
}
