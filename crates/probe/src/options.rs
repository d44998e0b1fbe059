//! The options of a tracer.

use crate::device::Device;

/// The options of a tracer.
#[derive(Clone, Debug)]
pub struct Options {
    /// The devices to watch; at least one.
    pub devices: Vec<Device>,
    /// Where an I/O begins.
    pub start: Start,
    /// Whether each I/O names its submitter: the process that queued its oldest bio. This needs the
    /// events of [`Start::Queue`]. I/O that `io.max` has held back is queued by the kernel itself.
    pub submitters: bool,
    /// Whether each submitter has the cgroup that governed its I/O then. This takes an event for each task of the
    /// host that is made, moved or ends, and a look at all tasks when the watch begins.
    pub cgroups: bool,
}

/// Where an I/O begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// An I/O begins when the driver gets it.
    Issue,
    /// An I/O begins when it is queued, and has both moments. It is queued when its oldest bio is
    /// handed to the disk (`block_bio_queue`), before it waits for a free tag.
    /// `/sys/block/DEV/stat` counts from the end of that wait. But if `io.max` holds an I/O back,
    /// it is queued only afterwards.
    Queue,
}
