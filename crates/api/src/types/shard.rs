//! A shard, the thread that serves some of the disks, and whether it keeps up.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ClientMemory;
use super::rule::Summary;

/// A shard.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Shard {
    pub shard: usize,
    /// The disks that it serves.
    pub disks: Vec<String>,
    /// Whether it meets its deadlines by spinning.
    pub spins: bool,
    pub load: Load,
    pub memory: ClientMemory,
    /// How long it did not look at its sockets beyond the time for which it meant to sleep, each time
    /// since the start.
    pub loop_gap: Summary,
    pub stops: Stops,
    pub probe: Probe,
}

/// How much of its time a shard works. The accuracy of its rules is promised up to half of it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Load {
    /// The share of the last second or two.
    pub busy_percent: u32,
    /// Whether that is more, and there are rules.
    pub overloaded: bool,
    /// Seconds since the start in which it was.
    pub overloaded_seconds: u64,
}

/// How often the host kept a shard from running for more than 1 ms: another process had its CPU,
/// SIGSTOP, a frozen container, a paused virtual machine, a suspended host. What was due or arrived
/// in that time is late. While clients ask for something a stop may have been up to 20 ms longer than
/// is counted; up to a second longer, if nothing had been asked for a second before it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Stops {
    /// Since the start.
    pub all: StopTotals,
    /// In the last 30 to 60 seconds.
    pub recent: StopTotals,
    /// How long ago the last one ended.
    pub last_age_ns: Option<u64>,
}

/// Stops, added up.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct StopTotals {
    pub count: u64,
    pub total_ns: u64,
    pub longest_ns: u64,
}

/// What a read through a socket of the daemon's own took beyond the 1 ms of its rule: the error
/// that a client of this host meets, its own wake-up included. Of the last minute; read once a second while clients ask for
/// something, and never otherwise.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Probe {
    /// Readings of the last minute. None if nothing was asked of the shard.
    pub n: u64,
    /// How long ago the last one was.
    pub age_ns: Option<u64>,
    pub last_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub max_ns: Option<u64>,
}
