//! The jobs that the caller's thread hands to the writer.

use dashpot_observe::FinishedIo;

use crate::batch::Batch;
use crate::clock::Moment;
use crate::marks::Mark;
use crate::seconds::Second;
use crate::table::GROUP_ROWS;

/// How a recording is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// The maximum total size of all files, in bytes.
    pub keep_bytes: u64,
    /// The name of the host.
    pub host: String,
    /// If the writer takes more than this share of one CPU, in percent, it leaves out single I/Os for a
    /// minute.
    pub cpu_percent: u64,
}

/// A file is sealed after this time, or earlier if it has [`SEAL_IOS`] I/Os.
pub const SEAL_NS: u64 = 10_000_000_000;
/// A file is sealed after this many I/Os, or earlier if [`SEAL_NS`] has passed.
pub const SEAL_IOS: usize = 8 * GROUP_ROWS;

/// Work for the writer.
pub(super) enum Job {
    /// Rows of the file that is being made.
    Rows(Batch),
    /// The end of the file that is being made.
    Seal(Box<Seal>),
    /// There is no more work.
    End,
}

impl Job {
    /// How many finished I/Os the writer gets with this job.
    pub(super) fn ios(&self) -> u64 {
        match self {
            Job::Rows(batch) => batch.rows() as u64,
            Job::Seal(seal) => seal.batch.rows() as u64,
            Job::End => 0,
        }
    }
}

/// The end of a file of I/Os.
pub(super) struct Seal {
    pub(super) now: Moment,
    /// The last rows of the file.
    pub(super) batch: Batch,
    /// The I/Os in flight, which are recorded as if they ended now.
    pub(super) in_flight: Vec<FinishedIo>,
    pub(super) seconds: Vec<Second>,
    pub(super) marks: Vec<Mark>,
    pub(super) is_slow: bool,
}
