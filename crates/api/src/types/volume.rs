//! A volume at one moment.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::DeviceIo;

/// A volume of a pool, and its counters since the start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Volume {
    /// The volume's name, `POOL/NAME`, which is also its export name.
    #[schema(example = "tank/foo")]
    pub name: String,
    /// The name of the volume's pool.
    pub pool: String,
    /// Where NBD clients reach the volume.
    pub uris: Vec<String>,
    /// The size of the volume.
    pub size_bytes: u64,
    /// The size of the volume's blocks. For a smaller write, the pool first reads the rest of the block.
    pub block_bytes: u32,
    /// An id of the volume's bytes, which stays the same when the daemon restarts; null if some may be lost
    /// when the daemon ends.
    pub store_id: Option<String>,
    /// The moment at which the volume acknowledges writes.
    pub write: WriteWord,
    /// The number of the shard that owns the volume's pool.
    pub shard: usize,
    /// Whether the volume has been off since a power cut, so that no client can connect.
    pub off: bool,
    /// The reason that the daemon no longer serves the volume; null while the daemon serves it.
    pub failed: Option<String>,
    /// The volume's clients, and their I/O.
    #[serde(flatten)]
    pub io: DeviceIo,
}

/// The moment at which a volume acknowledges a write: after the disks have it (`through`), or when it is in
/// memory. In the latter case, only a full memory (`none`), OpenZFS's write throttle (`openzfs`) or the
/// throttle of ZFS before 2013 (`legacy`) holds writes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WriteWord {
    /// The volume acknowledges a write after the disks have it.
    Through,
    /// The volume acknowledges a write that is in memory; a full memory holds writes back.
    None,
    /// The volume acknowledges a write that is in memory; OpenZFS's write throttle holds writes back.
    Openzfs,
    /// The volume acknowledges a write that is in memory; the throttle of ZFS before 2013 holds writes back.
    Legacy,
}

impl WriteWord {
    /// The word that a lab file uses for this choice.
    pub fn word(self) -> &'static str {
        match self {
            WriteWord::Through => "through",
            WriteWord::None => "none",
            WriteWord::Openzfs => "openzfs",
            WriteWord::Legacy => "legacy",
        }
    }
}
