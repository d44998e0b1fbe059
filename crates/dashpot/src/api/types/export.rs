//! What is known without asking a shard: the exports, and the time.

use dashpot_export::DiskInfo;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A disk as it was started, and where NBD clients reach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Export {
    /// Its name, which is also its export name.
    pub(crate) name: String,
    /// Where NBD clients reach it.
    pub(crate) uris: Vec<String>,
    /// What its store is.
    #[schema(example = "ram")]
    pub(crate) store: String,
    pub(crate) size_bytes: u64,
    /// The smallest read or write.
    pub(crate) block_bytes: u32,
    pub(crate) read_only: bool,
    /// The shard that owns it.
    pub(crate) shard: usize,
    /// Why it is no longer served, if it is not.
    pub(crate) failed: Option<String>,
}

/// The daemon's monotonic clock, which all moments (`at_ns`, `ended_ns`, `start_ns`) are of.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Clock {
    pub(crate) now_ns: u64,
    /// When the daemon started. Counters of another start cannot be compared with these.
    pub(crate) started_ns: u64,
}

/// Why nothing follows from two answers of different starts.
pub(crate) const STARTED_AGAIN: &str = "the daemon was started again; so is what it counts";

impl Export {
    pub(crate) fn of(info: &DiskInfo, uris: &[String], failed: Option<String>) -> Export {
        Export {
            name: info.name.clone(),
            uris: uris.to_vec(),
            store: info.store.clone(),
            size_bytes: info.size,
            block_bytes: info.block,
            read_only: info.read_only,
            shard: info.shard,
            failed,
        }
    }
}
