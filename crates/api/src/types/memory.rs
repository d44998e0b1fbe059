//! What clients and callers make the daemon hold, beside the most that they may.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What callers of the API make the daemon hold, and the most that they may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Memory {
    /// Answers that are being made, or that callers have not taken yet. Those of at most 64 KiB are
    /// not counted.
    pub answers_bytes: u64,
    pub answers_max_bytes: u64,
    /// Rules of all disks.
    pub rules: u64,
    pub rules_max: u64,
    /// Lanes of all rules.
    pub lanes: u64,
    pub lanes_max: u64,
}

/// What NBD clients make a shard hold, and the most that they may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientMemory {
    /// Zios in flight.
    pub zios: u32,
    pub zios_max: u32,
    /// Payloads of writes that are held or received, and of replies.
    pub payload_bytes: u64,
    pub payload_max_bytes: u64,
    /// What connections keep beside their requests: bytes received and not looked at, and replies
    /// that their clients do not take. Above the most, connections are read a little at a time.
    pub buffered_bytes: u64,
    pub buffered_max_bytes: u64,
    pub connections: u32,
}
