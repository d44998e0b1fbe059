//! Watching devices: from the kernel's buffers to finished I/Os.

use std::io;

use crate::device::{Device, Number};
use crate::io::{Io, Rwbs, Submitter};

/// What is watched.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose I/O; at least one.
    pub devices: Vec<Device>,
    /// Where an I/O begins.
    pub start: Start,
    /// Whether each I/O is to say who asked for it.
    pub submitters: bool,
}

/// Where an I/O begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// When the driver is given it.
    Issue,
    /// When it is queued as well: each I/O has both moments.
    Queue,
}

/// Why devices cannot be watched, or not any longer.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// tracefs is nowhere to be found.
    #[error("tracefs is not mounted: as root, mount -t tracefs nodev /sys/kernel/tracing")]
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
    /// Reading or writing failed.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: String,
        /// What it was.
        error: io::Error,
    },
}

/// How far a reading got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Everything that happened before this moment has been seen, but for what was lost.
    pub until_ns: u64,
    /// Events that the kernel had no room for, since the last reading.
    pub lost: u64,
}

/// An I/O that has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// The disk.
    pub device: Number,
    /// What it does.
    pub rwbs: Rwbs,
    /// First sector.
    pub sector: u64,
    /// When it began: queued if that is watched, else issued.
    pub since_ns: u64,
    /// Whether the driver has been given it.
    pub issued: bool,
    /// Who asked for it, if known.
    pub submitter: Option<Submitter>,
}

/// Devices being watched. Dropping it leaves nothing behind in the kernel.
pub struct Tracer {}

impl Tracer {
    /// Begins to watch.
    pub fn start(options: &Options) -> Result<Tracer, TraceError> {
        let _ = options;
        unimplemented!()
    }

    /// Takes what has happened since the last time; finished I/Os are appended in the order in
    /// which they ended. Does not wait; to be called often enough, 20 times a second.
    pub fn read(&mut self, finished: &mut Vec<Io>) -> Result<Progress, TraceError> {
        let _ = finished;
        unimplemented!()
    }

    /// What is in flight, as of the last reading.
    pub fn in_flight(&self) -> impl Iterator<Item = InFlight> + '_ {
        std::iter::empty()
    }
}
