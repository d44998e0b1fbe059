//! The I/O of each second.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::LatencyHistogram;

/// The seconds that the daemon still remembers, the oldest first. Seconds in which no zio ended are
/// left out.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Seconds {
    /// The name of the bucket boundaries.
    pub layout: String,
    /// The seconds that are over. They no longer change.
    pub seconds: Vec<Second>,
    /// The present second so far.
    pub running: Second,
    /// The daemon remembers every second from this moment on. This is the daemon's start, unless the daemon
    /// has forgotten older seconds.
    pub since_ns: u64,
    /// The moment of this answer.
    pub now_ns: u64,
    /// The cursor to give as `after_ns` in the next request.
    pub next_ns: u64,
    /// Whether the daemon remembers more seconds that are over: the next request has them.
    #[serde(default)]
    pub more: bool,
}

impl Seconds {
    /// The seconds that are over, and then the present one.
    pub fn all(&self) -> impl Iterator<Item = &Second> {
        self.seconds.iter().chain([&self.running])
    }
}

/// The I/O of one second of the daemon's clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Second {
    /// The moment at which the second began.
    pub start_ns: u64,
    /// Number of zios that are missing from the second's histograms, because the collector could not keep up
    /// with the shards.
    pub dropped: u64,
    /// The I/O, by disk or volume, client and operation.
    pub latencies: Vec<SecondLatency>,
}

/// The I/O that one client did with one operation on one disk or volume, in one second.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SecondLatency {
    /// The name of the disk or the volume.
    pub disk: String,
    /// The name of the client.
    #[schema(example = "uid=1000 pid=4711")]
    pub client: String,
    /// The name of the operation.
    #[schema(example = "read")]
    pub op: String,
    /// Number of zios with a reply, including failed zios.
    pub completed: u64,
    /// Total bytes of the zios that did not fail.
    pub bytes: u64,
    /// Time from a zio's issue until the daemon offered its reply to the transport.
    pub latency: LatencyHistogram,
}
