//! A disk at one moment.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::summary::Summary;
use super::{
    ClientMemory, DeviceIo, Host, Load, Memory, Pool, Promise, Reclaim, Shard, Stops, Unheld,
    VersionInfo, Volume,
};

/// The daemon, its shards and its disks, at one moment.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The versions of the daemon and of its API.
    #[serde(flatten)]
    pub version: VersionInfo,
    /// The id of the daemon's process.
    pub pid: u32,
    /// The number of threads that do the I/O of `file` disks. At most this many requests wait for the media
    /// of these disks at once.
    pub store_threads: usize,
    /// The CPU time that the host gives the daemon.
    pub host: Host,
    /// The threads that serve the disks, by number.
    pub shards: Vec<Shard>,
    /// The memory that callers of the API use in the daemon.
    pub memory: Memory,
    /// Whether the daemon can serve block devices of its own host when memory is short.
    pub reclaim: Reclaim,
    /// The promises about time, and whether the daemon can keep each of them on this host now.
    pub promises: Vec<Promise>,
    /// The disks, in the order of the lab.
    pub disks: Vec<Disk>,
    /// The pools, in the order of the lab.
    pub pools: Vec<Pool>,
    /// The volumes, in the order of the lab.
    pub volumes: Vec<Volume>,
}

/// A disk and its counters since the start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Disk {
    /// The disk's name, which is also its export name.
    pub name: String,
    /// The pool that the disk belongs to; null for a disk outside of pools.
    pub pool: Option<String>,
    /// Where NBD clients reach the disk; empty for the disk of a pool.
    pub uris: Vec<String>,
    /// The kind of the disk's store.
    #[schema(example = "ram")]
    pub store: String,
    /// An id of the bytes in the disk's store, which stays the same when the daemon restarts; null if the
    /// bytes are lost when the daemon ends.
    pub store_id: Option<String>,
    /// The size of the disk.
    pub size_bytes: u64,
    /// The smallest read or write.
    pub block_bytes: u32,
    /// Whether the disk refuses writes.
    pub read_only: bool,
    /// The number of the shard that owns the disk.
    pub shard: usize,
    /// How many rules are armed on the disk.
    pub rules: usize,
    /// The suspension; null if the disk is not suspended.
    pub suspended: Option<Suspension>,
    /// Whether the disk has been off since a power cut, so that no client can connect.
    pub off: bool,
    /// The reason that the disk's store can no longer be trusted; null if it can.
    pub faulted: Option<String>,
    /// How many I/Os rules have damaged since the disk is served.
    #[serde(default)]
    pub damaged: u64,
    /// How many of the disk's bytes are wrong now, because rules damaged them and no client has written them
    /// again.
    #[serde(default)]
    pub wrong_bytes: u64,
    /// The reason that the daemon no longer serves the disk; null while the daemon serves it. If the disk is
    /// not served, all counters are 0.
    pub failed: Option<String>,
    /// How much later than planned the disk's shard polled its sockets, for each poll since the start.
    /// Lateness cannot show this, because a request that the shard has not read yet has no target.
    pub loop_gap: Summary,
    /// The times in which the host kept the disk's shard from running.
    pub shard_stops: Stops,
    /// How much of its time the disk's shard works.
    pub shard_load: Load,
    /// The memory that clients use in the disk's shard.
    pub shard_memory: ClientMemory,
    /// The lateness of the zios that the armed rules have held, since each rule was armed.
    pub rule_lateness: Summary,
    /// The accesses to the files of a path disk that no rule could hold; null if the disk is not a path disk.
    pub unheld: Option<Unheld>,
    /// How many calls of the path disk's programs, since the start, a signal ended before dashpot received them
    /// or before their hold was over. Such a call begins again, fails with `EINTR`, or its thread was killed.
    /// dashpot does not know the files of these calls, so each counts on every path disk. Null if the disk is
    /// not a path disk, or if Linux is older than 5.19, where dashpot misses some.
    pub interrupted: Option<u64>,
    /// The disk's clients, and their I/O.
    #[serde(flatten)]
    pub io: DeviceIo,
}

/// The suspension of a disk.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Suspension {
    /// Time since the suspension began.
    pub age_ns: u64,
    /// Time until the disk resumes by itself; null if it resumes only on request.
    pub remaining_ns: Option<u64>,
}
