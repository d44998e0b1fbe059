//! The configuration of a load.

use dashpot_engine::Duration;
use dashpot_rules::Address;

use super::arrivals::Pace;

/// A load: its server, and the kind and pace of its requests.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// The server's address.
    pub address: Address,
    /// The export's name.
    pub export: String,
    /// The number of connections, all to the same export.
    pub connections: u32,
    /// The maximum number of requests in flight, over all connections.
    pub depth: u32,
    /// The length of a read or a write, in bytes.
    pub block: u32,
    /// How many requests in a million are writes.
    pub writes_ppm: u32,
    /// How many requests in a million are flushes.
    pub flushes_ppm: u32,
    /// Whether each request begins where the last one ended. Otherwise offsets are random.
    pub sequential: bool,
    /// When requests start.
    pub pace: Pace,
    /// For how long the load starts new requests; `None` means until the caller stops it.
    pub lasts: Option<Duration>,
    /// Whether to poll instead of sleeping. Polling keeps wake-ups out of the latencies, but keeps a CPU
    /// busy.
    pub busy: bool,
    /// Whether to check that each read returns either only zeroes or the pattern that loads write.
    pub verify: bool,
    /// The seed for the offsets, the mix of operations, and the sizes of bursts.
    pub seed: u64,
}
