//! What a pool counts, and how it stands: the shapes that reports are made of.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::histogram::Histogram;
use crate::time::{Duration, Instant};
use crate::zio::{DiskId, Op};

/// A pool as it stands, and what it has counted since it was made.
#[derive(Clone, Debug, Default)]
pub struct PoolStats {
    /// Acknowledged bytes that are not yet on the disks.
    pub dirty: u64,
    /// Writes that wait for admission.
    pub throttled: u32,
    /// What one txg takes in the legacy throttle, in inflated bytes.
    pub write_limit: Option<u64>,
    /// How near the throttle is to holding writes back.
    pub level: ThrottleLevel,
    /// How writes were admitted.
    pub admissions: Admissions,
    /// What clients asked of the volumes.
    pub volumes: Traffic,
    /// What that became in the queues of the disks, before adjacent zios were joined.
    pub queued: Traffic,
    /// What reached the disks.
    pub disks: Traffic,
    /// Transaction groups, the oldest first: the last hundred that are done, and those that live.
    pub txgs: Vec<TxgStats>,
    /// The queue of each disk, in the order of the configuration.
    pub queues: Vec<QueueStats>,
}

/// How near a throttle is to holding writes back, and what it does to one that comes now. Bytes are
/// those of clients: the legacy throttle, which inflates them, is asked in its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleLevel {
    /// What it looks at: the dirty bytes of the pool or, in the legacy throttle, what the open txg
    /// has taken.
    pub filled: u64,
    /// Writes are delayed above this; none are by a throttle without delays.
    pub delays_above: Option<u64>,
    /// Writes stop here.
    pub stops_at: u64,
    /// The delay of a write that comes now.
    pub delay: Duration,
}

/// How a pool stands at a moment. Unlike [`PoolStats`] it copies no histogram, so that it can be
/// looked at in every step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolState {
    /// Acknowledged bytes that are not yet on the disks.
    pub dirty: u64,
    /// Writes that wait for admission.
    pub throttled: u32,
    /// The txgs that live, the oldest first.
    pub txgs: Vec<(u64, TxgState)>,
    /// By disk, in the order of the configuration.
    pub queues: Vec<QueueState>,
}

/// How the queue of one disk of a pool stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// The disk.
    pub disk: DiskId,
    /// Zios that wait, by class in the order of [`Class::ALL`].
    pub pending: [u32; Class::ALL.len()],
    /// Zios at the disk, by class.
    pub active: [u32; Class::ALL.len()],
}

/// How writes were admitted (OpenZFS: the `dmu_tx` kstat).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admissions {
    /// Admitted (`dmu_tx_assigned`).
    pub assigned: u64,
    /// Found dirty data above the delay's beginning (`dmu_tx_dirty_delay`).
    pub dirty_delay: u64,
    /// Found it at the maximum (`dmu_tx_dirty_over_max`).
    pub dirty_over_max: u64,
    /// Waited 10 ms, in the legacy throttle (`dmu_tx_delay`).
    pub delay: u64,
    /// Waited for the next txg to open, in the legacy throttle (`dmu_tx_write_limit`).
    pub write_limit: u64,
}

/// Operations and bytes in each direction. Flushes are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Writes, zeroes and trims.
    pub writes: u64,
    /// Bytes written, zeroed and trimmed.
    pub bytes_written: u64,
}

impl Traffic {
    /// Counts one operation, unless it is a flush.
    pub(crate) fn count(&mut self, op: Op, bytes: u64) {
        let (operations, sum) = match op {
            Op::Read | Op::Cache => (&mut self.reads, &mut self.bytes_read),
            Op::Write | Op::Zero | Op::Trim => (&mut self.writes, &mut self.bytes_written),
            Op::Flush => return,
        };
        *operations += 1;
        *sum += bytes;
    }

    /// Counts what another has counted.
    pub(crate) fn add(&mut self, other: Traffic) {
        self.reads += other.reads;
        self.bytes_read += other.bytes_read;
        self.writes += other.writes;
        self.bytes_written += other.bytes_written;
    }

    /// What has been counted since it stood at `before`.
    pub fn since(self, before: Traffic) -> Traffic {
        Traffic {
            reads: self.reads - before.reads,
            bytes_read: self.bytes_read - before.bytes_read,
            writes: self.writes - before.writes,
            bytes_written: self.bytes_written - before.bytes_written,
        }
    }
}

/// Where a txg is; the letters are those of OpenZFS's `txgs` kstat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxgState {
    /// Takes writes.
    Open,
    /// Takes none, and waits for the one before it. ZFS's `Q` does not occur: a write joins its txg
    /// and is dirty in one step, so a closed txg is quiesced.
    Quiesced,
    /// Goes to the disks.
    Syncing,
    /// Is on the disks.
    Committed,
}

/// A transaction group (OpenZFS: one line of the `txgs` kstat).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxgStats {
    /// Its number; the first is 4, as in ZFS.
    pub txg: u64,
    /// When it opened.
    pub birth: Instant,
    /// Where it is.
    pub state: TxgState,
    /// Dirty bytes when its sync began.
    pub dirty: u64,
    /// Dirty bytes that it has now.
    pub left: u64,
    /// What reached the disks of the pool while it synced.
    pub disks: Traffic,
    /// How long it was open.
    pub open: Duration,
    /// How long it waited for the one before it.
    pub wait: Duration,
    /// How long it synced.
    pub sync: Duration,
}

/// The classes of a disk's queue, in the order of their priority (OpenZFS: `zio_priority_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A client waits for it.
    SyncRead,
    /// A client waits for it.
    SyncWrite,
    /// Nobody waits for it.
    AsyncRead,
    /// A txg's dirty data.
    AsyncWrite,
    /// Gives space back.
    Trim,
}

impl Class {
    /// Every class, in the order of priority.
    pub const ALL: [Class; 5] = [
        Class::SyncRead,
        Class::SyncWrite,
        Class::AsyncRead,
        Class::AsyncWrite,
        Class::Trim,
    ];

    /// The class's name as in ZFS's tunables.
    pub const fn name(self) -> &'static str {
        match self {
            Class::SyncRead => "sync_read",
            Class::SyncWrite => "sync_write",
            Class::AsyncRead => "async_read",
            Class::AsyncWrite => "async_write",
            Class::Trim => "trim",
        }
    }
}

/// The queue of one disk of a pool.
#[derive(Clone, Debug)]
pub struct QueueStats {
    /// The disk.
    pub disk: DiskId,
    /// By class, in the order of [`Class::ALL`].
    pub classes: [ClassStats; Class::ALL.len()],
}

/// One class of a disk's queue. Latencies are of zios as they reached the disk: of those that were
/// joined, the one with the lowest offset stands for all (OpenZFS: `vdev_stat_update`).
#[derive(Clone, Debug, Default)]
pub struct ClassStats {
    /// Waiting in the queue now.
    pub pending: u32,
    /// At the disk now, after joining.
    pub active: u32,
    /// From the queue's beginning to the end (`total_wait`).
    pub total_wait: Option<Box<Histogram>>,
    /// At the disk (`disk_wait`).
    pub disk_wait: Option<Box<Histogram>>,
    /// In the queue (`syncq_wait`, `asyncq_wait`, `trim`).
    pub queue_wait: Option<Box<Histogram>>,
    /// Sizes in bytes of those that went alone (`ind`).
    pub alone: Option<Box<Histogram>>,
    /// Sizes in bytes of those that were joined (`agg`).
    pub joined: Option<Box<Histogram>>,
}
