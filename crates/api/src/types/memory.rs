//! The memory that clients and callers use in the daemon, and its bounds.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The memory that callers of the API use in the daemon, and the most that they may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Memory {
    /// Bytes of answers that the daemon is making or that callers have not read yet. Answers of at most 64
    /// KiB are not counted.
    pub answers_bytes: u64,
    /// The most bytes that answers of more than 64 KiB may hold together.
    pub answers_max_bytes: u64,
    /// Number of rules of all disks.
    pub rules: u64,
    /// The most rules that may be armed at a time.
    pub rules_max: u64,
    /// Number of cleared rules that the daemon has forgotten since its start, because it remembers only those
    /// that were cleared last.
    pub rules_forgotten: u64,
    /// Number of lanes of all rules.
    pub lanes: u64,
    /// The most lanes that the rules of all disks may have together.
    pub lanes_max: u64,
}

/// The memory that NBD clients use in a shard, and the most that they may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientMemory {
    /// Number of zios in flight.
    pub zios: u32,
    /// The most zios that may be in flight.
    pub zios_max: u32,
    /// Bytes of the payloads of replies, and of writes that the shard receives or holds.
    pub payload_bytes: u64,
    /// The most bytes that payloads may hold.
    pub payload_max_bytes: u64,
    /// Bytes that connections hold in addition to their requests: input that the shard has not parsed yet,
    /// and replies that the clients have not read yet.
    pub buffered_bytes: u64,
    /// The most bytes that connections may hold before the shard reads them more slowly.
    pub buffered_max_bytes: u64,
    /// Open connections of NBD clients.
    pub connections: u32,
}
