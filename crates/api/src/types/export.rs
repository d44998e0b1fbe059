//! The answers that need no shard: the served devices, and the time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A disk or a volume as it was when the daemon started, and where NBD clients reach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Export {
    /// The name of the disk or volume, which is also its export name.
    pub name: String,
    /// Whether the export is a disk or a volume.
    pub layer: LayerWord,
    /// The pool that the disk or volume belongs to; null for a disk outside of pools.
    pub pool: Option<String>,
    /// Where NBD clients reach the disk or volume; empty for the disk of a pool.
    pub uris: Vec<String>,
    /// The kind of the disk's store; null for a volume.
    #[schema(example = "ram")]
    pub store: Option<String>,
    /// The size of the disk or volume.
    pub size_bytes: u64,
    /// The smallest read or write.
    pub block_bytes: u32,
    /// Whether the disk or volume refuses writes.
    pub read_only: bool,
    /// The number of the shard that owns the disk or volume.
    pub shard: usize,
    /// The reason that the daemon no longer serves the disk or volume; null while the daemon serves it.
    pub failed: Option<String>,
}

/// The layer of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LayerWord {
    /// A disk, which has rules, and a store below them.
    Disk,
    /// A volume of a pool, above the throttle and the queues of the pool's disks.
    Volume,
}

/// The time of the daemon's monotonic clock. All moments (`at_ns`, `ended_ns`, `start_ns`) are of
/// that clock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Clock {
    /// The time at which the daemon answered.
    pub now_ns: u64,
    /// When the daemon started. If this moment differs between two answers, their counters cannot be
    /// compared.
    pub started_ns: u64,
    /// The same moment as `now_ns` by the wall clock of the daemon's host, in nanoseconds since 1970. It may
    /// jump; the daemon's clock does not.
    pub unix_ns: u64,
}

/// The error of a report that compares two answers, if the daemon was started again between them.
pub const STARTED_AGAIN: &str = "the daemon was started again, and its counters began at 0";
