//! One event of the block layer, whatever the kernel's layout of it.

use crate::device::Number;
use crate::io::{Comm, Rwbs};

/// An event, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// The disk.
    pub device: Number,
    /// First sector.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// What is done, in the kernel's letters.
    pub rwbs: Rwbs,
    /// The thread that was running, which is not always the one that asked.
    pub pid: i32,
    /// What happened.
    pub what: What,
}

/// What happened to a bio or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// `block_bio_queue`: a bio was handed to the device.
    BioQueue(Comm),
    /// `block_split`: a bio was cut; the rest begins at this sector.
    Split(u64),
    /// `block_rq_issue`: the driver was given a request of so many bytes.
    Issue(u32),
    /// `block_rq_requeue`: the driver gave it back.
    Requeue,
    /// `block_rq_complete`: the driver has finished these sectors of it, with this errno or 0.
    Complete(i32),
    /// `block_bio_complete`: a bio has ended, with this errno or 0.
    BioComplete(i32),
}
