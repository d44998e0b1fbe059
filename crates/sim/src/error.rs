//! Errors for scenarios that cannot be simulated, and violations that were found in a simulation.

use std::error::Error;
use std::fmt;

use dashpot_engine::pool::PoolError;
use dashpot_engine::{CommandError, Instant};

/// The reason that a scenario cannot begin. Numbers are indices in the scenario's lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// The rules of a disk cannot be armed.
    Rules {
        disk: usize,
        /// The reason that the rules cannot be armed.
        error: CommandError,
    },
    /// A pool cannot be made.
    Pool {
        pool: usize,
        /// The reason.
        error: PoolError,
    },
    /// A volume cannot be made.
    Volume {
        volume: usize,
        /// The reason.
        error: PoolError,
    },
    /// A workload cannot be simulated.
    Workload {
        workload: usize,
        /// The reason.
        error: WorkloadError,
    },
}

/// The reason that a workload cannot be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadError {
    /// The target is neither a disk nor a volume, or it is a disk of a pool.
    Target,
    /// The region is not within the target, or is smaller than a block.
    Region,
    /// The rate or the burst is zero.
    Rate,
    /// An entry of a trace is earlier than the entry before it.
    TimeGoesBack {
        /// The index of the entry.
        entry: usize,
    },
    /// An entry of a trace has a target that does not exist, or ends beyond the end of its target.
    Entry {
        /// The index of the entry.
        entry: usize,
    },
    /// An offset or a length is not a whole number of sectors. A scenario with checks requires whole sectors.
    Sectors,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::Rules { disk, error } => write!(f, "the rules of disk {disk}: {error}"),
            SetupError::Pool { pool, error } => write!(f, "pool {pool}: {error}"),
            SetupError::Volume { volume, error } => write!(f, "volume {volume}: {error}"),
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
            WorkloadError::Rate => f.write_str("its rate and its burst must be at least 1"),
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

/// A condition that every simulation must meet, but that this one did not meet, and the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When the violation was found.
    pub at: Instant,
    /// The violation, in words.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ns: {}", self.at.as_nanos(), self.what)
    }
}

impl Error for Violation {}
