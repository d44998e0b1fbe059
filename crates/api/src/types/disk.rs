//! A disk at one moment.

use dashpot_engine::Wait;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::summary::Summary;
use super::{
    Attachment, ClientMemory, Depth, DepthTime, Host, Load, Memory, Promise, Reclaim, Shard, Stops,
    VersionInfo, Wide,
};

/// The daemon, its shards and its disks, at one moment.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The versions of the daemon and of its API.
    #[serde(flatten)]
    pub version: VersionInfo,
    /// The id of the daemon's process.
    pub pid: u32,
    /// The number of threads that work on `file` disks. At most that many requests wait for their
    /// media at once.
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
}

/// A disk and its counters since the start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Disk {
    /// Its name, which is also its export name.
    pub name: String,
    /// Where NBD clients reach it.
    pub uris: Vec<String>,
    /// The kind of its store.
    #[schema(example = "ram")]
    pub store: String,
    /// Identifies the bytes of its store, also after a restart of the daemon; null if the bytes are
    /// lost when the daemon ends.
    pub store_id: Option<String>,
    /// The size of the disk.
    pub size_bytes: u64,
    /// The smallest read or write.
    pub block_bytes: u32,
    /// Whether the disk refuses writes.
    pub read_only: bool,
    /// The number of the shard that owns it.
    pub shard: usize,
    /// The moment at which the fields below were read.
    pub at_ns: u64,
    /// How many rules are armed.
    pub rules: usize,
    /// The suspension; null if the disk is not suspended.
    pub suspended: Option<Suspension>,
    /// Whether it is off since a power cut, so that no client can connect.
    pub off: bool,
    /// The reason that its store can no longer be trusted; null if it can.
    pub faulted: Option<String>,
    /// The reason that the daemon no longer serves it; null if it does. If it does not, all
    /// counters are 0.
    pub failed: Option<String>,
    /// The clients that are connected now.
    pub clients: Vec<DiskClient>,
    /// The block devices of the host through which programs reach this disk.
    pub attachments: Vec<Attachment>,
    /// Number of connections that the shard does not read now, because requests use as much memory
    /// as they may.
    pub stalled: u32,
    /// How often the shard has stopped reading a connection for that reason.
    pub stalls: u64,
    /// How much later than planned the disk's shard looked at its sockets, each time since the start.
    /// Lateness cannot show this: a request that the shard has not read yet has no target.
    pub loop_gap: Summary,
    /// The times in which the host kept that shard from running.
    pub shard_stops: Stops,
    /// How much of its time that shard works.
    pub shard_load: Load,
    /// The memory that clients use in that shard.
    pub shard_memory: ClientMemory,
    /// The lateness of the zios of all armed rules, each since its rule was armed.
    pub rule_lateness: Summary,
    /// Number of zios that have arrived and have no reply yet.
    pub in_flight: u32,
    /// The oldest of them, at most as many as the request asked for.
    pub oldest: Vec<InFlightZio>,
    /// The counters of each operation.
    pub ops: Vec<OpCount>,
    /// Number of zios whose connection ended before their reply.
    pub aborted: u64,
    /// Time during which at least one zio was in flight.
    pub busy_ns: u64,
    /// The number of zios in flight, integrated over time. Divided by `busy_ns`, it is the mean depth
    /// while any zio was in flight.
    pub depth_time_ns: Wide,
    /// The time spent with each number of zios in flight.
    pub depth_times: Vec<DepthTime>,
    /// A summary of `depth_times` since the start.
    pub depth: Depth,
}

impl Disk {
    /// The mean number of zios in flight while any was.
    pub fn mean_depth(&self) -> u64 {
        let depth = self.depth_time_ns.0.checked_div(self.busy_ns.into());
        let depth = depth.and_then(|depth| u64::try_from(depth).ok());
        depth.unwrap_or_default().max(1)
    }
}

/// The suspension of a disk.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Suspension {
    /// Time since the suspension began.
    pub age_ns: u64,
    /// Time until it resumes automatically; null if it does not.
    pub remaining_ns: Option<u64>,
}

/// A client of a disk. Not `Client`: generators give that name to their own.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DiskClient {
    /// The name, from the peer's credentials or address.
    #[schema(example = "uid=1000 pid=4711")]
    pub name: String,
    /// Its open connections to this disk.
    pub connections: u32,
}

/// Counters of one operation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpCount {
    /// The name of the operation.
    #[schema(example = "read")]
    pub op: String,
    /// Number of zios with a reply, failed ones included.
    pub completed: u64,
    /// Number of these zios that ended with an error.
    pub failed: u64,
    /// Bytes of the zios that did not fail.
    pub bytes: u64,
}

/// A zio that has not been replied to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InFlightZio {
    /// The name of its operation.
    #[schema(example = "read")]
    pub op: String,
    /// The name of the client that sent it; `other` for clients that the daemon does not tell
    /// apart.
    pub client: String,
    /// Its first byte on the disk.
    pub offset_bytes: u64,
    /// Its length.
    pub length_bytes: u32,
    /// Time since its arrival.
    pub age_ns: u64,
    /// The reason that it waits. At a disk: `suspended`, `held-before`, `store`, `held`, `hung`, `reply`; at
    /// a volume: `block-lock`, `reading`, `pool-stalled`, `throttled`, `writing`, `syncing`, `reply`.
    pub wait: String,
    /// Time since that wait began.
    pub wait_ns: u64,
    /// The id of the rule that holds it; null if none does.
    pub rule: Option<u32>,
    /// Time until the rule allows it to complete; null if no rule holds it, or if it hangs.
    pub remaining_ns: Option<u64>,
}

/// The word for the reason that a zio waits.
pub fn wait_word(wait: Wait) -> &'static str {
    match wait {
        Wait::Lock => "block-lock",
        Wait::Read => "reading",
        Wait::Stalled => "pool-stalled",
        Wait::Throttle => "throttled",
        Wait::Write => "writing",
        Wait::Sync => "syncing",
        Wait::Suspended => "suspended",
        Wait::HeldBefore => "held-before",
        Wait::Store => "store",
        Wait::Held => "held",
        Wait::Hung => "hung",
        Wait::Reply => "reply",
    }
}
