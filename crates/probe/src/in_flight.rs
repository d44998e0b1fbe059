//! An I/O that has begun and not ended.

use crate::device::Number;
use crate::io::{Rwbs, Submitter};

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
    /// Whether its end may have been among the events that were lost: if it comes now, it may be
    /// another's, and there will be no I/O of it. Those that the disk has no longer are given up
    /// when it is next found to have none in flight.
    pub doubtful: bool,
    /// Who asked for it, if known.
    pub submitter: Option<Submitter>,
}
