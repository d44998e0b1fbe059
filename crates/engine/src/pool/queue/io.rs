//! The I/O that goes into the queue of a disk, and the I/O that comes out.

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
    /// The caller's id of the I/O, unique within the queue. The ids are small numbers with few gaps, because
    /// the queue uses them as indices.
    pub(crate) tag: u32,
    /// Whether the queue must not join the I/O, because it was joined before and the joined I/O
    /// failed.
    pub(crate) alone: bool,
    /// Whether the I/O carries no bytes. The queue joins such I/O only with its like.
    pub(crate) beside: bool,
}

impl Queued {
    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }
}

/// How many I/Os the disk may have at once, in total and for each class in the order of [`Class::ALL`], and
/// which I/Os the queue may join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The maximum number of I/Os of all classes together (`zfs_vdev_max_active`).
    pub(crate) max_active: u32,
    /// The minimum number of I/Os of each class at the disk. A class below its minimum goes before all
    /// classes that have reached theirs.
    pub(crate) min: [u32; Class::ALL.len()],
    /// The maximum number of I/Os of each class. The entry for async writes is not used, because at each pick
    /// the caller gives a limit that depends on the dirty data.
    pub(crate) max: [u32; Class::ALL.len()],
    /// The maximum size of joined I/O in bytes; with 0 nothing is joined (`zfs_vdev_aggregation_limit`).
    pub(crate) aggregation_limit: u32,
    /// The queue joins two reads across a gap of at most this many bytes, which the disk then reads, too
    /// (`zfs_vdev_read_gap_limit`).
    pub(crate) read_gap_limit: u32,
}

/// The id of a picked I/O until it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PickedId(pub(crate) u32);

/// The I/O that the disk is to do next: one I/O, or several joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Picked {
    pub(crate) id: PickedId,
    /// The class whose turn it was. The first member may be of another class.
    pub(crate) class: Class,
    pub(crate) op: Op,
    pub(crate) offset: u64,
    /// The number of bytes from the beginning of the first member to the end of the last one, gaps included.
    pub(crate) length: u32,
    /// How many members the picked I/O has.
    pub(crate) count: u32,
}

/// An I/O at the disk, by itself or as a part of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) tag: u32,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// When the I/O was queued.
    pub(crate) queued: Instant,
}
