//! The answers that need no shard: the exports, and the time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A disk as it was at the start, and where NBD clients reach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Export {
    /// Its name, which is also its export name.
    pub name: String,
    /// Where NBD clients reach it.
    pub uris: Vec<String>,
    /// The kind of its store.
    #[schema(example = "ram")]
    pub store: String,
    /// The size of the disk.
    pub size_bytes: u64,
    /// The smallest read or write.
    pub block_bytes: u32,
    /// Whether the disk refuses writes.
    pub read_only: bool,
    /// The number of the shard that owns it.
    pub shard: usize,
    /// The reason that the daemon no longer serves it; null if it does.
    pub failed: Option<String>,
}

/// The time of the daemon's monotonic clock. All moments (`at_ns`, `ended_ns`, `start_ns`) are of
/// that clock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Clock {
    /// The time at which the daemon answered.
    pub now_ns: u64,
    /// When the daemon started. If two answers differ in this, their counters cannot be compared.
    pub started_ns: u64,
}

/// The message of a report when its two answers come from different starts of the daemon.
pub const STARTED_AGAIN: &str = "the daemon was started again, and its counters began at 0";
