//! The counters and the state of a pool, in the shapes that reports use.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::histogram::Histogram;
use crate::time::{Duration, Instant};
use crate::zio::{DiskId, Op};

/// The state of a pool, and its counters since the pool was made.
#[derive(Clone, Debug, Default)]
pub struct PoolStats {
    /// The number of acknowledged bytes that are not yet on the disks.
    pub dirty: u64,
    /// The number of dirty bytes of metadata, which the throttle counts, too.
    pub dirty_metadata: u64,
    /// Whether writes of acknowledged data fail on a disk. The pool repeats these writes.
    pub degraded: bool,
    /// The number of writes that wait for admission.
    pub throttled: u32,
    /// The legacy throttle's limit for one txg, in inflated bytes.
    pub write_limit: Option<u64>,
    /// How close the throttle is to holding writes back.
    pub level: ThrottleLevel,
    /// How many writes the throttle has admitted, and how.
    pub admissions: Admissions,
    /// The operations that clients have sent to the volumes.
    pub volumes: Traffic,
    /// The zios that the disks have done without an error, counted before the queues joined adjacent ones.
    pub queued: Traffic,
    /// The zios that the disks have done without an error, as OpenZFS counts them.
    pub disks: Traffic,
    /// The overhead of txgs within `queued` and `disks`: zios without bytes, for which no client asked.
    pub overhead: VolumeTraffic,
    /// The traffic of each volume, in the order of the configuration. Repairs of mirrors and the overhead of
    /// txgs belong to no volume.
    pub by_volume: Vec<VolumeTraffic>,
    /// The regions of the pool's mirrors; `None` if the pool has no mirrors.
    pub mirrors: Option<MirrorStats>,
    /// Transaction groups, the oldest first: the last hundred that are done, and the live txgs.
    pub txgs: Vec<TxgStats>,
    /// The queue of each disk, in the order of the configuration.
    pub queues: Vec<QueueStats>,
}

/// The regions of the mirrors of a pool, and their repair. A region has 1 MiB. On disks above 1 TiB regions
/// are larger; if the driver keeps a durable record of the regions, they are larger on disks above 8 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorStats {
    /// The number of regions with writes that FLUSHes have not yet covered on all sides.
    pub dirty_regions: u32,
    /// The number of regions whose sides may differ: those out of sync, and those being repaired.
    pub nosync_regions: u32,
    /// The total size in bytes of the regions whose sides may differ.
    pub nosync_bytes: u64,
    /// The number of bytes that repairs have copied to other sides since the pool was made.
    pub repaired_bytes: u64,
    /// How many times the repair failed to copy a piece of a region. The pool tries each piece again.
    pub failed_pieces: u64,
    /// The number of sides that may hold old or foreign data and are not yet repaired. The pool does not read
    /// them in regions that are out of sync.
    pub stale_sides: u32,
    /// Whether the driver failed to make the last durable record of the dirty regions. Writes to regions that
    /// the record lacks then wait.
    pub is_unrecorded: bool,
}

/// How close a throttle is to holding writes back, and how long it would delay a write now. The numbers of
/// bytes are those of clients' writes, before the legacy throttle inflates them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleLevel {
    /// The number of bytes that the throttle watches. The legacy throttle watches the bytes that the open txg
    /// has taken. Any other throttle watches the bytes that are dirty in the pool or that admitted writes
    /// will make dirty.
    pub filled: u64,
    /// Writes are delayed above this number of bytes; `None` for a throttle without delays.
    pub delays_above: Option<u64>,
    /// The throttle admits no more writes at this number of bytes.
    pub stops_at: u64,
    /// How long a write would be delayed if it arrived now.
    pub delay: Duration,
}

/// The state of a pool at one moment. Unlike [`PoolStats`], it has no histograms to copy, so a caller can
/// take it in every step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolState {
    /// The number of acknowledged bytes that are not yet on the disks.
    pub dirty: u64,
    /// The number of dirty bytes of metadata, which the throttle counts, too.
    pub dirty_metadata: u64,
    /// The number of writes that wait for admission.
    pub throttled: u32,
    /// Whether the sides of a mirror may differ.
    pub repairs: bool,
    /// The live txgs, the oldest first.
    pub txgs: Vec<(u64, TxgState)>,
    /// The queue of each disk, in the order of the configuration.
    pub queues: Vec<QueueState>,
}

/// The state of the queue of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    pub disk: DiskId,
    /// The number of zios that wait, by class in the order of [`Class::ALL`].
    pub pending: [u32; Class::ALL.len()],
    /// The number of zios at the disk, by class in the same order.
    pub active: [u32; Class::ALL.len()],
}

/// How many writes the throttle has admitted, and how many it has held back (OpenZFS: the `dmu_tx` kstat).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admissions {
    /// Writes that were admitted (`dmu_tx_assigned`).
    pub assigned: u64,
    /// Writes that found more dirty data than the amount above which delays begin (`dmu_tx_dirty_delay`).
    pub dirty_delay: u64,
    /// Writes that found as much dirty data as the pool allows (`dmu_tx_dirty_over_max`).
    pub dirty_over_max: u64,
    /// Writes that waited 10 ms, in the legacy throttle (`dmu_tx_delay`).
    pub delay: u64,
    /// Writes that waited for the next txg to open, in the legacy throttle (`dmu_tx_write_limit`).
    pub write_limit: u64,
}

/// Operations and bytes in each direction. Flushes are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub reads: u64,
    pub bytes_read: u64,
    /// Writes, zeroes and trims.
    pub writes: u64,
    /// Bytes written, zeroed and trimmed.
    pub bytes_written: u64,
}

/// The operations that clients requested from a volume, and the zios that the operations caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeTraffic {
    /// The operations that clients requested from the volume.
    pub asked: Traffic,
    /// The zios that the disks have done without an error, counted before the queues joined adjacent ones.
    pub queued: Traffic,
    /// The zios that the disks have done without an error. A zio that the queue joined from blocks of several volumes counts for
    /// the volume of its first block.
    pub disks: Traffic,
}

impl Traffic {
    /// Counts one operation, unless it is a flush.
    pub(crate) fn count(&mut self, op: Op, bytes: u64) {
        let (operations, sum) = match op {
            Op::Read | Op::Cache => (&mut self.reads, &mut self.bytes_read),
            Op::Write | Op::Zero | Op::Trim => (&mut self.writes, &mut self.bytes_written),
            // A flush moves no bytes, and a pool has no files.
            _ => return,
        };
        *operations += 1;
        *sum += bytes;
    }

    /// Adds another count to this count.
    pub(crate) fn add(&mut self, other: Traffic) {
        self.reads += other.reads;
        self.bytes_read += other.bytes_read;
        self.writes += other.writes;
        self.bytes_written += other.bytes_written;
    }

    /// The difference from an earlier count.
    pub fn since(self, before: Traffic) -> Traffic {
        Traffic {
            reads: self.reads - before.reads,
            bytes_read: self.bytes_read - before.bytes_read,
            writes: self.writes - before.writes,
            bytes_written: self.bytes_written - before.bytes_written,
        }
    }
}

impl VolumeTraffic {
    /// The difference from an earlier count.
    pub fn since(self, before: VolumeTraffic) -> VolumeTraffic {
        VolumeTraffic {
            asked: self.asked.since(before.asked),
            queued: self.queued.since(before.queued),
            disks: self.disks.since(before.disks),
        }
    }
}

/// The state of a txg. OpenZFS's `txgs` kstat shows each state as a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxgState {
    /// The txg takes writes.
    Open,
    /// The txg takes no more writes, and waits for the txg before it (ZFS: `W`). No txg is in the state that
    /// precedes this one in ZFS (`Q`, quiescing): a write joins its txg and becomes dirty in one step, so a
    /// closed txg is quiesced at once.
    Quiesced,
    /// The blocks of the txg go to the disks.
    Syncing,
    /// The txg is on the disks.
    Committed,
}

/// A transaction group (OpenZFS: one line of the `txgs` kstat).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxgStats {
    /// The number of the txg; the first number is 4, as in ZFS.
    pub txg: u64,
    /// When the txg opened.
    pub birth: Instant,
    pub state: TxgState,
    /// The number of dirty bytes in the txg when its sync began.
    pub dirty: u64,
    /// The number of dirty bytes in the txg now.
    pub left: u64,
    /// The zios that the disks of the pool have done without an error while the txg synced.
    pub disks: Traffic,
    /// How long the txg was open.
    pub open: Duration,
    /// How long the txg waited for the txg before it.
    pub wait: Duration,
    /// How long the txg synced.
    pub sync: Duration,
}

/// The classes of a disk's queue, in the order of their priority (OpenZFS: `zio_priority_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Reads that a client waits for.
    SyncRead,
    /// Writes that a client waits for.
    SyncWrite,
    /// Reads that no client waits for, which are those of a repair.
    AsyncRead,
    /// The dirty data of a txg, and the writes of a repair.
    AsyncWrite,
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

    /// The class's name in ZFS's tunables.
    pub const fn name(self) -> &'static str {
        match self {
            Class::SyncRead => "sync_read",
            Class::SyncWrite => "sync_write",
            Class::AsyncRead => "async_read",
            Class::AsyncWrite => "async_write",
            Class::Trim => "trim",
        }
    }

    pub fn named(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// The queue of one disk of a pool.
#[derive(Clone, Debug)]
pub struct QueueStats {
    pub disk: DiskId,
    /// The counters of each class, in the order of [`Class::ALL`].
    pub classes: [ClassStats; Class::ALL.len()],
}

/// One class of a disk's queue. Latencies are counted after joining: joined zios count once, with the times
/// of the zio at the lowest offset (OpenZFS: `vdev_stat_update`).
#[derive(Clone, Debug, Default)]
pub struct ClassStats {
    /// The number of zios that wait in the queue now.
    pub pending: u32,
    /// The number of zios at the disk now, counted after joining.
    pub active: u32,
    /// The time from a zio's entry into the queue until the disk was done with the zio (`total_wait`).
    pub total_wait: Option<Box<Histogram>>,
    /// The time that zios spent at the disk (`disk_wait`).
    pub disk_wait: Option<Box<Histogram>>,
    /// The time that zios spent in the queue (`syncq_wait`, `asyncq_wait`, `trim`).
    pub queue_wait: Option<Box<Histogram>>,
    /// The sizes, in bytes, of zios that went to the disk alone (`ind`).
    pub alone: Option<Box<Histogram>>,
    /// The sizes, in bytes, of joined zios (`agg`).
    pub joined: Option<Box<Histogram>>,
}
