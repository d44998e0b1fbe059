//! The configuration of a load.

use dashpot_engine::Duration;
use dashpot_rules::Address;

use super::arrivals::Pace;

/// What a load asks of a server, and how.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Where the server is.
    pub address: Address,
    /// The export's name.
    pub export: String,
    /// Connections, all to the same export.
    pub connections: u32,
    /// Requests in flight at most, on all connections together.
    pub depth: u32,
    /// Bytes of a read or a write.
    pub block: u32,
    /// Parts per million of the requests that are writes, and that are flushes.
    pub writes_ppm: u32,
    /// See `writes_ppm`.
    pub flushes_ppm: u32,
    /// Whether offsets follow one another, instead of being random.
    pub sequential: bool,
    /// When requests start.
    pub pace: Pace,
    /// How long they do, if not until it is stopped.
    pub lasts: Option<Duration>,
    /// Whether to poll instead of sleep: no wake-up is in a latency then, at the price of a CPU.
    pub busy: bool,
    /// Whether to check what is read: zeroes, or what this load writes.
    pub verify: bool,
    /// Seeds offsets, the mix and bursts.
    pub seed: u64,
}
