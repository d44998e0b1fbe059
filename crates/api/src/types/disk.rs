//! A disk at one moment.

use dashpot_engine::Wait;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::rule::Summary;
use super::{ClientMemory, Host, Load, Memory, Promise, Shard, Stops, VersionInfo, Wide};

/// What is served.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    #[serde(flatten)]
    pub version: VersionInfo,
    /// The daemon's process.
    pub pid: u32,
    /// Requests that can wait for the media of `file` disks at once.
    pub store_threads: usize,
    pub host: Host,
    pub shards: Vec<Shard>,
    pub memory: Memory,
    /// Which promises about time can hold on this host, now.
    pub promises: Vec<Promise>,
    /// The disks, in the order of the lab.
    pub disks: Vec<Disk>,
}

/// A disk and what it has counted since the start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Disk {
    /// Its name, which is also its export name.
    pub name: String,
    /// Where NBD clients reach it.
    pub uris: Vec<String>,
    /// What its store is.
    #[schema(example = "ram")]
    pub store: String,
    pub size_bytes: u64,
    /// The smallest read or write.
    pub block_bytes: u32,
    pub read_only: bool,
    /// The shard that owns it.
    pub shard: usize,
    /// The moment of all that follows.
    pub at_ns: u64,
    /// How many rules are armed.
    pub rules: usize,
    /// Whether it is suspended, and since when.
    pub suspended: Option<Suspension>,
    /// Whether it is off since a power cut, so that no client can connect.
    pub off: bool,
    /// Why its store can no longer be trusted, if it cannot.
    pub faulted: Option<String>,
    /// Why it is no longer served, if it is not. All that is counted is nothing then.
    pub failed: Option<String>,
    pub clients: Vec<DiskClient>,
    /// Connections that the bound on memory keeps from being read, now.
    pub stalled: u32,
    /// Times that a connection was kept from being read.
    pub stalls: u64,
    /// How long the disk's shard did not look at its sockets beyond the time for which it meant to
    /// sleep, each time since the start. Lateness cannot show it: a request that was not read yet had
    /// no target.
    pub loop_gap: Summary,
    /// How often the host kept that shard from running.
    pub shard_stops: Stops,
    /// How much of its time that shard works.
    pub shard_load: Load,
    /// What clients make that shard hold.
    pub shard_memory: ClientMemory,
    /// How late the zios of all armed rules were, each since its rule was armed.
    pub rule_lateness: Summary,
    /// Zios not replied to.
    pub in_flight: u32,
    /// The oldest of them, as many as were asked for.
    pub oldest: Vec<InFlightZio>,
    /// What was done, by operation.
    pub ops: Vec<OpCount>,
    /// Zios whose connection was gone before their reply.
    pub aborted: u64,
    /// Time during which at least one zio was in flight.
    pub busy_ns: u64,
    /// The integral of the number of zios in flight.
    pub depth_time_ns: Wide,
}

impl Disk {
    /// How many zios were in flight on average while any was.
    pub fn mean_depth(&self) -> u64 {
        let depth = self.depth_time_ns.0.checked_div(self.busy_ns.into());
        let depth = depth.and_then(|depth| u64::try_from(depth).ok());
        depth.unwrap_or_default().max(1)
    }
}

/// A suspended disk.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Suspension {
    /// How long it has been.
    pub age_ns: u64,
    /// When it resumes by itself, from now.
    pub remaining_ns: Option<u64>,
}

/// A client of a disk. Not `Client`: generators give that name to their own.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DiskClient {
    #[schema(example = "uid=1000 pid=4711")]
    pub name: String,
    pub connections: u32,
}

/// Counters of one operation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpCount {
    #[schema(example = "read")]
    pub op: String,
    /// Zios replied to, failed ones included.
    pub completed: u64,
    pub failed: u64,
    /// Bytes of those that did not fail.
    pub bytes: u64,
}

/// A zio that has not been replied to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InFlightZio {
    #[schema(example = "read")]
    pub op: String,
    pub client: String,
    pub offset_bytes: u64,
    pub length_bytes: u32,
    /// Time since its arrival.
    pub age_ns: u64,
    /// Where it waits: `suspended`, `held-before`, `store`, `held`, `hung`, `reply`.
    pub wait: String,
    /// How long it has been in that wait.
    pub wait_ns: u64,
    /// The rule that holds it.
    pub rule: Option<u32>,
    /// Time until the earliest moment at which it may complete; none if it is not held, or hangs.
    pub remaining_ns: Option<u64>,
}

/// Where a zio waits, in one word.
pub fn wait_word(wait: Wait) -> &'static str {
    match wait {
        Wait::Suspended => "suspended",
        Wait::HeldBefore => "held-before",
        Wait::Store => "store",
        Wait::Held => "held",
        Wait::Hung => "hung",
        Wait::Reply => "reply",
    }
}
