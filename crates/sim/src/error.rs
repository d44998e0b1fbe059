//! What cannot be simulated, and what must not happen in a simulation.

use std::error::Error;
use std::fmt;

use dashpot_engine::pool::PoolError;
use dashpot_engine::{CommandError, Instant};

/// Why a scenario cannot begin. Numbers are places in its lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// The rules of a disk.
    Rules {
        /// The disk.
        disk: usize,
        /// Why they cannot be armed.
        error: CommandError,
    },
    /// A pool.
    Pool {
        /// Which.
        pool: usize,
        /// Why it cannot be.
        error: PoolError,
    },
    /// A volume.
    Volume {
        /// Which.
        volume: usize,
        /// Why it cannot be.
        error: PoolError,
    },
    /// A workload.
    Workload {
        /// Which.
        workload: usize,
        /// Why it cannot be.
        error: WorkloadError,
    },
}

/// Why a workload cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadError {
    /// There is no such disk or volume, or it is a disk of a pool.
    Target,
    /// The region is not within the target, or has no block in it.
    Region,
    /// No calls per second, or none at a time.
    Rate,
    /// An entry of a trace comes before the one before it.
    TimeGoesBack {
        /// Its place.
        entry: usize,
    },
    /// An entry of a trace is for no disk or volume, or ends beyond it.
    Entry {
        /// Its place.
        entry: usize,
    },
    /// Contents are checked by sectors, and this is no whole number of them.
    Sectors,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::Rules { disk, error } => write!(f, "the rules of disk {disk}: {error}"),
            SetupError::Pool { pool, error } => write!(f, "pool {pool}: {error:?}"),
            SetupError::Volume { volume, error } => write!(f, "volume {volume}: {error:?}"),
            SetupError::Workload { workload, error } => write!(f, "workload {workload}: {error}"),
        }
    }
}

impl Error for SetupError {}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkloadError::Target => {
                f.write_str("its target is neither a volume nor a disk outside of all pools")
            }
            WorkloadError::Region => {
                f.write_str("its region must be within the target, and have room for a block")
            }
            WorkloadError::Rate => f.write_str("rate and burst count from 1"),
            WorkloadError::TimeGoesBack { entry } => {
                write!(
                    f,
                    "entry {entry} of the trace is earlier than the one before it"
                )
            }
            WorkloadError::Entry { entry } => write!(
                f,
                "entry {entry} of the trace is for no disk or volume, or ends beyond it"
            ),
            WorkloadError::Sectors => {
                f.write_str("with checks, offsets and lengths must be multiples of 512 bytes")
            }
        }
    }
}

impl Error for WorkloadError {}

/// Something that must never happen, and when it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it was noticed.
    pub at: Instant,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ns: {}", self.at.as_nanos(), self.what)
    }
}

impl Error for Violation {}
