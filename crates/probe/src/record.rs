//! One event, in a form that does not depend on the kernel's layout of records.

use crate::device::Number;
use crate::follower::TaskEvent;
use crate::io::{Comm, Rwbs};
use crate::sync::SyncEvent;

/// A parsed event of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// An event of the block layer.
    Block(Record),
    /// An event in the life of a task, and the time of the event.
    Task(u64, TaskEvent),
    /// An event of a call that syncs.
    Sync(SyncEvent),
}

impl Entry {
    /// When the event happened, on `CLOCK_MONOTONIC`.
    pub(crate) fn at_ns(&self) -> u64 {
        match self {
            Entry::Block(record) => record.at_ns,
            Entry::Task(at_ns, _) => *at_ns,
            Entry::Sync(event) => event.at_ns,
        }
    }
}

/// A parsed event of the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When the event happened, on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// The disk.
    pub device: Number,
    /// The first sector.
    pub sector: u64,
    /// The number of sectors.
    pub sectors: u32,
    /// The operation, in the kernel's letters.
    pub rwbs: Rwbs,
    /// The running thread, which need not be the thread that asked for the I/O.
    pub pid: i32,
    /// The kind of event.
    pub what: What,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// `block_bio_queue`: the device received a bio from the thread with this name.
    BioQueue(Comm),
    /// `block_split`: a bio was cut. Its remaining part begins at this sector.
    Split(u64),
    /// `block_rq_issue`: the driver received a request of this many bytes.
    Issue(u32),
    /// `block_rq_requeue`: the driver gave a request back.
    Requeue,
    /// `block_rq_complete`: the driver has finished these sectors of a request, with this errno or
    /// 0.
    Complete(i32),
    /// `block_bio_complete`: a bio has ended, with this errno or 0.
    BioComplete(i32),
}
