//! A pool at one moment: its throttle, its traffic, its transaction groups.

use dashpot_engine::pool::{Admissions, MirrorStats, ThrottleLevel, Traffic, TxgState, TxgStats};
use dashpot_engine::{Duration, Instant};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::WriteWord;

/// A pool, the state of its throttle, and its counters since the start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// The pool's name.
    #[schema(example = "tank")]
    pub name: String,
    /// The names of the pool's disks, by top-level member. A member with several disks is a mirror.
    pub members: Vec<Vec<String>>,
    /// The names of the pool's volumes.
    pub volumes: Vec<String>,
    /// The room for volumes.
    pub size_bytes: u64,
    /// The room that volumes have taken.
    pub allocated_bytes: u64,
    /// The number of the shard that owns the pool.
    pub shard: usize,
    /// The reason that the daemon no longer serves the pool; null while the daemon serves it.
    pub failed: Option<String>,
    /// The throttle of those volumes of the pool that acknowledge writes early.
    pub throttle: WriteWord,
    /// The moment at which the fields below were read.
    pub at_ns: u64,
    /// Acknowledged bytes that are not yet on the disks.
    pub dirty_bytes: u64,
    /// Bytes of metadata that are dirty, too: with `write = "openzfs"`, the throttle counts them.
    pub dirty_metadata_bytes: u64,
    /// Whether writes of acknowledged data fail at a disk. The pool repeats these writes.
    pub degraded: bool,
    /// Number of writes that wait for admission.
    pub throttled: u32,
    /// How close the throttle is to holding writes back.
    pub level: Level,
    /// How writes were admitted.
    pub admissions: Admitted,
    /// The operations of clients, and the zios that these operations caused in the queues and at the disks.
    pub traffic: PoolTraffic,
    /// The part of `traffic` that is overhead of txgs: zios without bytes, for which no client asked.
    #[serde(default)]
    pub overhead: PoolTraffic,
    /// The same figures as in `traffic` for each volume, in the order of `volumes`. Repairs of mirrors and
    /// the overhead of txgs belong to no volume.
    pub by_volume: Vec<VolumeTraffic>,
    /// The regions of the pool's mirrors, and the repair of these regions; null if the pool has no mirrors.
    pub mirrors: Option<Mirrors>,
    /// The memory that the pool's shard holds for the blocks of all its pools.
    pub memory_bytes: u64,
}

/// The regions in which the sides of a pool's mirrors may differ. A region is 1 MiB, or
/// more on disks above 1 TiB (above 8 GiB if the regions are recorded).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Mirrors {
    /// Number of regions with writes that no flush of all sides has covered. A power cut would leave these
    /// regions out of sync.
    pub dirty_regions: u32,
    /// Number of regions whose sides may differ, because they are out of sync or being repaired.
    pub nosync_regions: u32,
    /// The total size of the regions in `nosync_regions`, which are still to be repaired.
    pub nosync_bytes: u64,
    /// Bytes that repairs have copied to other sides since the start.
    pub repaired_bytes: u64,
    /// Number of copies from one side to another that failed since the start. The mirrors repeat each of
    /// them.
    pub failed_pieces: u64,
    /// Number of sides that were replaced or were missing for a time, and are not yet repaired. The mirrors
    /// do not read a region from such a side while the region is out of sync.
    pub stale_sides: u32,
    /// Whether the daemon failed to write the durable record of the dirty regions. Writes to regions that the
    /// record lacks then wait.
    pub unrecorded: bool,
}

/// How close a throttle is to holding writes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Level {
    /// The bytes that the throttle watches: those that are dirty in the pool or that admitted writes will make
    /// dirty or, in the legacy throttle, the bytes that the open txg has taken.
    pub filled_bytes: u64,
    /// The number of bytes above which writes are delayed; null for a throttle without delays.
    pub delays_above_bytes: Option<u64>,
    /// The number of bytes at which writes stop.
    pub stops_at_bytes: u64,
    /// The delay that a write would get now.
    pub delay_ns: u64,
}

/// How writes were admitted since the start. OpenZFS has the same counters in its kstat `dmu_tx`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Admitted {
    /// Number of writes that were admitted (`dmu_tx_assigned`).
    pub assigned: u64,
    /// Number of writes that were delayed because of dirty data (`dmu_tx_dirty_delay`).
    pub dirty_delay: u64,
    /// Number of writes that found dirty data at its maximum (`dmu_tx_dirty_over_max`).
    pub dirty_over_max: u64,
    /// Number of writes that waited 10 ms, with the legacy throttle only (`dmu_tx_delay`).
    pub delay: u64,
    /// Number of writes that waited for the next txg, with the legacy throttle only (`dmu_tx_write_limit`).
    pub write_limit: u64,
}

/// Operations and bytes at the volumes, in the queues, and at the disks. Their ratios are the amplification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolTraffic {
    /// The operations that clients requested from the volumes.
    pub volumes: TrafficSum,
    /// The zios that the disks have done without an error, counted before the queues joined adjacent zios.
    pub queues: TrafficSum,
    /// The zios that the disks have done without an error.
    pub disks: TrafficSum,
}

impl From<dashpot_engine::pool::VolumeTraffic> for PoolTraffic {
    fn from(counts: dashpot_engine::pool::VolumeTraffic) -> PoolTraffic {
        PoolTraffic {
            volumes: counts.asked.into(),
            queues: counts.queued.into(),
            disks: counts.disks.into(),
        }
    }
}

impl From<PoolTraffic> for dashpot_engine::pool::VolumeTraffic {
    fn from(traffic: PoolTraffic) -> dashpot_engine::pool::VolumeTraffic {
        dashpot_engine::pool::VolumeTraffic {
            asked: traffic.volumes.into(),
            queued: traffic.queues.into(),
            disks: traffic.disks.into(),
        }
    }
}

/// The operations that clients requested from a volume, and the zios that these operations caused. A zio that
/// the queue joined from blocks of several volumes counts for the volume of its first block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeTraffic {
    /// The name of the volume.
    #[schema(example = "tank/db")]
    pub volume: String,
    /// Its counts.
    pub traffic: PoolTraffic,
}

/// Operations and bytes in each direction, without flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrafficSum {
    /// Number of reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Number of writes, zeroes and trims.
    pub writes: u64,
    /// Bytes written, zeroed and trimmed.
    pub written_bytes: u64,
}

/// A transaction group, with the figures that OpenZFS shows in its kstat `txgs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Txg {
    /// The txg's number; the first is 4, as in ZFS.
    pub txg: u64,
    /// When the txg opened.
    pub birth_ns: u64,
    /// The state of the txg.
    pub state: TxgWord,
    /// The dirty bytes of the txg when its sync began.
    pub dirty_bytes: u64,
    /// The dirty bytes of the txg now.
    pub left_bytes: u64,
    /// The zios that the disks of the pool have done without an error while the txg synced.
    pub disks: TrafficSum,
    /// How long the txg was open.
    pub open_ns: u64,
    /// How long the txg waited for the txg before it.
    pub wait_ns: u64,
    /// How long the sync of the txg took.
    pub sync_ns: u64,
}

/// The state of a txg: it takes writes (`open`), it waits for the txg before it (`quiesced`), its blocks go
/// to the disks (`syncing`), or they are on the disks (`committed`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TxgWord {
    /// The txg takes writes.
    Open,
    /// The txg takes no more writes, and waits for the txg before it.
    Quiesced,
    /// The blocks of the txg go to the disks.
    Syncing,
    /// The txg is on the disks.
    Committed,
}

impl From<MirrorStats> for Mirrors {
    fn from(stats: MirrorStats) -> Mirrors {
        Mirrors {
            dirty_regions: stats.dirty_regions,
            nosync_regions: stats.nosync_regions,
            nosync_bytes: stats.nosync_bytes,
            repaired_bytes: stats.repaired_bytes,
            failed_pieces: stats.failed_pieces,
            stale_sides: stats.stale_sides,
            unrecorded: stats.is_unrecorded,
        }
    }
}

impl From<ThrottleLevel> for Level {
    fn from(level: ThrottleLevel) -> Level {
        Level {
            filled_bytes: level.filled,
            delays_above_bytes: level.delays_above,
            stops_at_bytes: level.stops_at,
            delay_ns: level.delay.as_nanos(),
        }
    }
}

impl From<Level> for ThrottleLevel {
    fn from(level: Level) -> ThrottleLevel {
        ThrottleLevel {
            filled: level.filled_bytes,
            delays_above: level.delays_above_bytes,
            stops_at: level.stops_at_bytes,
            delay: Duration::from_nanos(level.delay_ns),
        }
    }
}

impl From<Admissions> for Admitted {
    fn from(admissions: Admissions) -> Admitted {
        Admitted {
            assigned: admissions.assigned,
            dirty_delay: admissions.dirty_delay,
            dirty_over_max: admissions.dirty_over_max,
            delay: admissions.delay,
            write_limit: admissions.write_limit,
        }
    }
}

impl From<Traffic> for TrafficSum {
    fn from(traffic: Traffic) -> TrafficSum {
        TrafficSum {
            reads: traffic.reads,
            read_bytes: traffic.bytes_read,
            writes: traffic.writes,
            written_bytes: traffic.bytes_written,
        }
    }
}

impl From<TrafficSum> for Traffic {
    fn from(sum: TrafficSum) -> Traffic {
        Traffic {
            reads: sum.reads,
            bytes_read: sum.read_bytes,
            writes: sum.writes,
            bytes_written: sum.written_bytes,
        }
    }
}

impl From<&TxgStats> for Txg {
    fn from(txg: &TxgStats) -> Txg {
        Txg {
            txg: txg.txg,
            birth_ns: txg.birth.as_nanos(),
            state: match txg.state {
                TxgState::Open => TxgWord::Open,
                TxgState::Quiesced => TxgWord::Quiesced,
                TxgState::Syncing => TxgWord::Syncing,
                TxgState::Committed => TxgWord::Committed,
            },
            dirty_bytes: txg.dirty,
            left_bytes: txg.left,
            disks: txg.disks.into(),
            open_ns: txg.open.as_nanos(),
            wait_ns: txg.wait.as_nanos(),
            sync_ns: txg.sync.as_nanos(),
        }
    }
}

impl From<&Txg> for TxgStats {
    fn from(txg: &Txg) -> TxgStats {
        TxgStats {
            txg: txg.txg,
            birth: Instant::from_nanos(txg.birth_ns),
            state: match txg.state {
                TxgWord::Open => TxgState::Open,
                TxgWord::Quiesced => TxgState::Quiesced,
                TxgWord::Syncing => TxgState::Syncing,
                TxgWord::Committed => TxgState::Committed,
            },
            dirty: txg.dirty_bytes,
            left: txg.left_bytes,
            disks: txg.disks.into(),
            open: Duration::from_nanos(txg.open_ns),
            wait: Duration::from_nanos(txg.wait_ns),
            sync: Duration::from_nanos(txg.sync_ns),
        }
    }
}
