//! What was done in each second.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::LatencyHistogram;

/// The seconds in which zios ended, the oldest first, as far as they are remembered. Seconds without
/// any are left out.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Seconds {
    /// Names the boundaries of the buckets.
    pub layout: String,
    /// Those that are over. Nothing is added to them any more.
    pub seconds: Vec<Second>,
    /// The one that is not over, so far.
    pub running: Second,
    /// Since when all is remembered: since the daemon's start, if older seconds were not forgotten.
    pub since_ns: u64,
    /// The moment of this answer.
    pub now_ns: u64,
    /// Where to go on: give it as `after_ns`.
    pub next_ns: u64,
}

impl Seconds {
    /// Those that are over, and the one that is not.
    pub fn all(&self) -> impl Iterator<Item = &Second> {
        self.seconds.iter().chain([&self.running])
    }
}

/// What was done in one second of the daemon's clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Second {
    /// When it began.
    pub start_ns: u64,
    /// Zios that are in none of its histograms, because the shards were faster than who listens.
    pub dropped: u64,
    pub latencies: Vec<SecondLatency>,
}

/// What a client did on a disk in one second.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SecondLatency {
    pub disk: String,
    #[schema(example = "uid=1000 pid=4711")]
    pub client: String,
    #[schema(example = "read")]
    pub op: String,
    /// Zios replied to, failed ones included.
    pub completed: u64,
    /// Bytes of those that did not fail.
    pub bytes: u64,
    /// From issue until the transport was offered the reply.
    pub latency: LatencyHistogram,
}
