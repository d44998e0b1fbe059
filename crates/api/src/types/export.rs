//! What is known without asking a shard: the exports, and the time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A disk as it was started, and where NBD clients reach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Export {
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
    /// Why it is no longer served, if it is not.
    pub failed: Option<String>,
}

/// The daemon's monotonic clock, which all moments (`at_ns`, `ended_ns`, `start_ns`) are of.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Clock {
    pub now_ns: u64,
    /// When the daemon started. Counters of another start cannot be compared with these.
    pub started_ns: u64,
}

/// Why nothing follows from two answers of different starts.
pub const STARTED_AGAIN: &str = "the daemon was started again; so is what it counts";
