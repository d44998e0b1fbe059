//! The report of a load.

use std::io;

use dashpot_engine::{Duration, Instant, Op};
use dashpot_export::frontend::nbd::client::ConnectError;
use hdrhistogram::Histogram;

/// The report of a load.
#[derive(Debug)]
pub struct LoadReport {
    /// From the first request to the last reply.
    pub elapsed: Duration,
    /// Reads, writes and flushes, as in [`Op`].
    pub ops: [OpReport; 3],
    /// Requests without a reply when it had ended and [`super::DRAIN_MAX`] had passed. They are in no
    /// latency.
    pub unanswered: u32,
    /// Why it ended early, if it did. The rest of the report is of the time before.
    pub broken: Option<LoadError>,
    /// When the last reply came.
    pub(super) heard: Instant,
}

/// The figures of one operation.
#[derive(Clone, Debug)]
pub struct OpReport {
    /// Bytes of those that succeeded.
    pub bytes: u64,
    /// Answered with an error.
    pub errors: u64,
    /// Reads that gave something else than was written.
    pub wrong: u64,
    /// Latencies in nanoseconds, errors included.
    pub latency: Histogram<u64>,
    /// The least of them, exactly: whether a reply was early must not depend on digits.
    pub least: Option<Duration>,
}

impl OpReport {
    pub(super) fn record(&mut self, latency: Duration) {
        // Grows as it needs to; nothing that a u64 holds is too large for it.
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

    /// The figures of one operation, if loads ask for it.
    pub fn op(&self, op: Op) -> Option<&OpReport> {
        self.ops.get(op as usize)
    }
}

/// Why a load ended early.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There was no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The export has room for no block.
    #[error("the export has {size} bytes: less than one block of {block}")]
    TooSmall {
        /// The export's size.
        size: u64,
        /// The block.
        block: u32,
    },
    /// The server went away.
    #[error("the server closed the connection")]
    Closed,
    /// A connection broke.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    /// The server said something that is no reply to a request.
    #[error("the server sent something that is no reply; the connection cannot go on")]
    OutOfStep,
    /// No histogram has so many digits.
    #[error("latencies cannot be kept to {DIGITS} digits")]
    Digits,
}

impl LoadError {
    /// The error of a connection, by the system's name for it.
    pub(super) fn of(error: io::Error) -> LoadError {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => LoadError::Closed,
            _ => LoadError::Broken(error),
        }
    }
}

/// Significant digits of latencies.
const DIGITS: u8 = 4;
