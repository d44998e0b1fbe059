//! The configuration of a load.

use dashpot_engine::Duration;
use dashpot_rules::Address;

use super::arrivals::Pace;

/// The load: its server, its requests and their pace.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Where the server is.
    pub address: Address,
    /// The export's name.
    pub export: String,
    /// The number of connections, all to the same export.
    pub connections: u32,
    /// The most requests in flight, on all connections together.
    pub depth: u32,
    /// The length of a read or a write, in bytes.
    pub block: u32,
    /// How many of a million requests are writes.
    pub writes_ppm: u32,
    /// How many of a million requests are flushes.
    pub flushes_ppm: u32,
    /// Whether offsets follow one another. Otherwise offsets are random.
    pub sequential: bool,
    /// When requests start.
    pub pace: Pace,
    /// For how long requests start; `None` if they start until the caller stops the load.
    pub lasts: Option<Duration>,
    /// Whether to poll instead of sleeping. When the load polls, no latency includes a wake-up, but a
    /// CPU is busy.
    pub busy: bool,
    /// Whether to check that reads give zeroes, or the data that this load writes.
    pub verify: bool,
    /// The seed of offsets, of the mix of operations, and of the sizes of bursts.
    pub seed: u64,
}
