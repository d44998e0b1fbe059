//! The report of a load.

use std::io;

use dashpot_engine::{Duration, Instant, Op};
use dashpot_export::frontend::nbd::client::ConnectError;
use hdrhistogram::Histogram;

#[derive(Debug)]
pub struct LoadReport {
    /// The time from the start of the load to the last reply or, if this is later, to the last moment at
    /// which the load could start a request.
    pub elapsed: Duration,
    /// The figures of reads, writes and flushes, in the order of [`Op`].
    pub ops: [OpReport; 3],
    /// Requests that had no reply even [`super::DRAIN_MAX`] after the load ended. No latency includes these
    /// requests.
    pub unanswered: u32,
    /// The error that ended the load early, if there was one. The rest of the report covers the time
    /// before the error.
    pub broken: Option<LoadError>,
    /// When the last reply came.
    pub(super) heard: Instant,
}

/// The figures of one operation.
#[derive(Clone, Debug)]
pub struct OpReport {
    /// The total size of the requests that succeeded, in bytes.
    pub bytes: u64,
    /// Requests that were answered with an error.
    pub errors: u64,
    /// Reads that returned wrong data.
    pub wrong: u64,
    /// Latencies in nanoseconds, including those of requests that failed.
    pub latency: Histogram<u64>,
    /// The least latency. It is not rounded, because rounding must not make a reply look early.
    pub least: Option<Duration>,
}

impl OpReport {
    pub(super) fn record(&mut self, latency: Duration) {
        // The histogram grows as needed, and no u64 is too large for it.
        let _ = self.latency.record(latency.as_nanos());
        self.least = Some(self.least.map_or(latency, |least| least.min(latency)));
    }
}

impl LoadReport {
    pub(super) fn new() -> Result<LoadReport, LoadError> {
        let op = || -> Result<OpReport, LoadError> {
            let latency = Histogram::new(DIGITS).map_err(|_| LoadError::Digits)?;
            Ok(OpReport {
                bytes: 0,
                errors: 0,
                wrong: 0,
                latency,
                least: None,
            })
        };
        Ok(LoadReport {
            elapsed: Duration::ZERO,
            unanswered: 0,
            ops: [op()?, op()?, op()?],
            broken: None,
            heard: Instant::ZERO,
        })
    }

    /// The figures of an operation; `None` for an operation other than read, write and flush.
    pub fn op(&self, op: Op) -> Option<&OpReport> {
        self.ops.get(op as usize)
    }
}

/// The error that ended a load early.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The client could not connect.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The export is smaller than one block.
    #[error("the export has {size} bytes: less than one block of {block}")]
    TooSmall {
        /// The export's size.
        size: u64,
        /// The size of a block.
        block: u32,
    },
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// A connection broke.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    /// The server sent bytes that are not a reply.
    #[error("the server sent something that is not a reply; the connection cannot go on")]
    OutOfStep,
    /// A histogram cannot keep `DIGITS` digits.
    #[error("latencies cannot be kept to {DIGITS} digits")]
    Digits,
}

impl LoadError {
    /// Turns an I/O error of a connection into a load error: [`LoadError::Closed`] if the server has closed
    /// the connection.
    pub(super) fn of(error: io::Error) -> LoadError {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => LoadError::Closed,
            _ => LoadError::Broken(error),
        }
    }
}

/// Significant digits of latencies.
const DIGITS: u8 = 4;
