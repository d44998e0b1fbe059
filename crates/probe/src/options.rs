//! What a tracer watches.

use crate::device::Device;

/// What a tracer watches.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose I/O; at least one.
    pub devices: Vec<Device>,
    /// Where an I/O begins.
    pub start: Start,
    /// Whether each I/O names its submitter: the process that queued its oldest bio. This needs the
    /// events that [`Start::Queue`] needs. The kernel itself queues I/O that `io.max` has held back.
    pub submitters: bool,
}

/// Where an I/O begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// When the driver is given it.
    Issue,
    /// When it is queued as well: each I/O has both moments. It is queued when its oldest bio is
    /// handed to the disk (`block_bio_queue`), before it waits for a free tag, and earlier than
    /// `/sys/block/DEV/stat` counts from, which is when that wait is over; but not before
    /// `io.max` lets it pass.
    Queue,
}
