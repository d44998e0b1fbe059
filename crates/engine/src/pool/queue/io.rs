//! What goes into the queue of a disk, and what comes out of it.

use crate::pool::stats::Class;
use crate::time::Instant;
use crate::zio::Op;

/// An I/O for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) class: Class,
    pub(crate) op: Op,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// The caller's name for it, of which there is one in the queue at a time. Small and dense: the
    /// queue indexes by it.
    pub(crate) tag: u32,
    /// It was joined with others, and they failed together: it goes by itself this time.
    pub(crate) alone: bool,
}

impl Queued {
    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }
}

/// How much the queue may have at the disk, by class in the order of [`Class::ALL`], and how much
/// of it may become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Over all classes (`zfs_vdev_max_active`).
    pub(crate) max_active: u32,
    pub(crate) min: [u32; Class::ALL.len()],
    /// That of async writes does not count: it follows the dirty data, and is said at each pick.
    pub(crate) max: [u32; Class::ALL.len()],
    /// Bytes of an aggregate; 0: nothing is joined (`zfs_vdev_aggregation_limit`).
    pub(crate) aggregation_limit: u32,
    /// Bytes between two reads that are read along with them (`zfs_vdev_read_gap_limit`).
    pub(crate) read_gap_limit: u32,
}

/// Names what was picked until it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PickedId(pub(crate) u32);

/// What the disk is to do next: one I/O, or several that were joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Picked {
    pub(crate) id: PickedId,
    /// Of the one whose turn it was, which need not be the first.
    pub(crate) class: Class,
    pub(crate) op: Op,
    pub(crate) offset: u64,
    /// From the first member's beginning to the last one's end, gaps included.
    pub(crate) length: u32,
    /// Its members.
    pub(crate) count: u32,
}

/// An I/O that is at the disk, by itself or as a part of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) tag: u32,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// When it came into the queue.
    pub(crate) queued: Instant,
}
