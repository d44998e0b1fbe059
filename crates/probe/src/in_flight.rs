//! An I/O in flight.

use crate::device::Number;
use crate::io::{Rwbs, Submitter};

/// An I/O that has begun and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// The disk.
    pub device: Number,
    /// The operation.
    pub rwbs: Rwbs,
    /// First sector.
    pub sector: u64,
    /// Number of bytes, as far as events have shown it.
    pub bytes: u64,
    /// The moment at which it began: its queueing if the probe watches queueing, otherwise its issue.
    pub since_ns: u64,
    /// Whether the driver has got it.
    pub issued: bool,
    /// Whether its end may be among the lost events. If an end comes now, it may belong to another I/O, so this I/O is
    /// not reported. A doubtful I/O is given up when its disk is next found to have nothing in flight.
    pub doubtful: bool,
    /// The task that asked for it, if known.
    pub submitter: Option<Submitter>,
}
