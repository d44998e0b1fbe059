//! An I/O in flight.

use crate::device::Number;
use crate::io::{Rwbs, Submitter};

/// An I/O that has begun and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// The disk.
    pub device: Number,
    /// The operation, in the kernel's letters.
    pub rwbs: Rwbs,
    /// The first sector.
    pub sector: u64,
    /// The number of bytes that events have shown so far.
    pub bytes: u64,
    /// The time at which the I/O began: its queueing if the probe watches queueing, otherwise its issue.
    pub since_ns: u64,
    /// When the driver received the I/O; `None` if it has not.
    pub issued_ns: Option<u64>,
    /// Whether the I/O's end may be among the lost events. An end that arrives now may belong to another I/O,
    /// so the probe does not report this I/O as finished. The probe gives up a doubtful I/O at the latest
    /// when it next finds that the kernel has nothing in flight on the disk.
    pub doubtful: bool,
    /// The thread that asked for the I/O, if known.
    pub submitter: Option<Submitter>,
}
