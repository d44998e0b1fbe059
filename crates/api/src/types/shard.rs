//! A shard, which is the thread that serves some of the disks, and whether it keeps up.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ClientMemory;
use super::summary::Summary;

/// A shard.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Shard {
    /// The number of the shard, from 0.
    pub shard: usize,
    /// The disks that the shard serves.
    pub disks: Vec<String>,
    /// Whether the shard spins before a deadline instead of sleeping until then.
    pub spins: bool,
    /// How much of its time the shard works.
    pub load: Load,
    /// The memory that NBD clients use in the shard.
    pub memory: ClientMemory,
    /// How much later than planned the shard polled its sockets, for each poll since the start.
    pub loop_gap: Summary,
    /// The times in which the host kept the shard from running.
    pub stops: Stops,
    /// The timing error of the shard, which the daemon measures through a socket.
    pub probe: Probe,
}

/// How much of its time a shard works. dashpot promises the accuracy of rules only while a shard works for
/// at most 50 % of its time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Load {
    /// The share of the last second or two in which the shard worked.
    pub busy_percent: u32,
    /// Whether `busy_percent` is more than 50, and a disk of the shard has rules.
    pub overloaded: bool,
    /// Number of seconds since the start in which the shard was overloaded.
    pub overloaded_seconds: u64,
}

/// How often the host kept a shard from running for more than 1 ms. The cause may be another process on its
/// CPU, SIGSTOP, a frozen container, a paused virtual machine, or a suspended host. Zios that arrived or were
/// due during such a stop ended late. A stop may have been longer than its counted duration: by up to 20 ms if
/// clients sent requests in the second before the stop, and otherwise by up to a second.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Stops {
    /// The stops since the start.
    pub all: StopTotals,
    /// The stops in the last 30 to 60 seconds.
    pub recent: StopTotals,
    /// Time since the last stop ended; null if there was none.
    pub last_age_ns: Option<u64>,
}

/// The number of stops in some period, and their durations.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct StopTotals {
    /// Number of stops.
    pub count: u64,
    /// Sum of the stops' durations.
    pub total_ns: u64,
    /// Duration of the longest stop.
    pub longest_ns: u64,
}

/// The timing error of a shard, as a client on this host sees it. The daemon reads from a disk of its own
/// through a socket, under a rule that delays each read by 1 ms. The error is the time beyond this 1 ms,
/// including the wake-up of the reading thread. The daemon reads once a second while clients send requests.
/// The fields cover the last minute.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Probe {
    /// Number of readings in the last minute; 0 if clients sent the shard no requests.
    pub n: u64,
    /// Time since the last reading; null if there is none.
    pub age_ns: Option<u64>,
    /// The last reading; null if there is none.
    pub last_ns: Option<u64>,
    /// The median of the readings; null without enough of them.
    pub p50_ns: Option<u64>,
    /// The largest reading; null if there is none.
    pub max_ns: Option<u64>,
}
