//! What was done in each second.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::LatencyHistogram;
use crate::collector::SecondCell;

/// The seconds in which zios ended, the oldest first, as far as they are remembered. Seconds without
/// any are left out.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Seconds {
    /// Names the boundaries of the buckets.
    pub(crate) layout: String,
    /// Those that are over. Nothing is added to them any more.
    pub(crate) seconds: Vec<Second>,
    /// The one that is not over, so far.
    pub(crate) running: Second,
    /// Since when all is remembered: since the daemon's start, if older seconds were not forgotten.
    pub(crate) since_ns: u64,
    /// The moment of this answer.
    pub(crate) now_ns: u64,
    /// Where to go on: give it as `after_ns`.
    pub(crate) next_ns: u64,
}

impl Seconds {
    /// Those that are over, and the one that is not.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Second> {
        self.seconds.iter().chain([&self.running])
    }
}

/// What was done in one second of the daemon's clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Second {
    /// When it began.
    pub(crate) start_ns: u64,
    /// Zios that are in none of its histograms, because the shards were faster than who listens.
    pub(crate) dropped: u64,
    pub(crate) latencies: Vec<SecondLatency>,
}

/// What a client did on a disk in one second.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SecondLatency {
    pub(crate) disk: String,
    #[schema(example = "uid=1000 pid=4711")]
    pub(crate) client: String,
    #[schema(example = "read")]
    pub(crate) op: String,
    /// Zios replied to, failed ones included.
    pub(crate) completed: u64,
    /// Bytes of those that did not fail.
    pub(crate) bytes: u64,
    /// From issue until the transport was offered the reply.
    pub(crate) latency: LatencyHistogram,
}

impl SecondLatency {
    pub(crate) fn of(cell: &SecondCell, disk: &str) -> SecondLatency {
        SecondLatency {
            disk: disk.to_owned(),
            client: cell.client.to_string(),
            op: cell.op.name().to_owned(),
            completed: cell.tally.completed,
            bytes: cell.tally.bytes,
            latency: LatencyHistogram::of_sparse(&cell.tally.disk),
        }
    }
}
