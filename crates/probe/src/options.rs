//! The options of a tracer.

use crate::device::Device;

/// The options of a tracer.
#[derive(Clone, Debug)]
pub struct Options {
    /// The devices to watch; at least one, unless `later`.
    pub devices: Vec<Device>,
    /// Whether each whole disk that appears later is watched, too.
    pub later: bool,
    /// The event at which an I/O begins.
    pub start: Start,
    /// Whether each I/O names its submitter: the thread that queued its oldest bio. To know submitters, the
    /// probe needs the events of [`Start::Queue`]. If `io.max` has held an I/O back, a kernel thread queues
    /// the I/O, and counts as its submitter.
    pub submitters: bool,
    /// Whether each submitter comes with its process. For this, the probe needs an event whenever a task of
    /// the host is made, is renamed or ends, and lists all tasks when the watch begins.
    pub processes: bool,
    /// Whether each submitter comes with the cgroup that governed its I/O when it asked for the I/O. For
    /// this, the probe needs an event whenever a task of the host is made, is moved or ends, and looks at all
    /// tasks when the watch begins.
    pub cgroups: bool,
}

/// The event at which an I/O begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// An I/O begins when the driver receives it.
    Issue,
    /// An I/O begins when it is queued, and the probe reports the times of its queueing and of its issue. An
    /// I/O is queued when its oldest bio is handed to the disk (`block_bio_queue`), before it waits for a
    /// free tag. An exception is an I/O that `io.max` holds back: it is queued only when `io.max` lets it go.
    /// `/sys/block/DEV/stat` counts from the end of the wait for a tag.
    Queue,
}
