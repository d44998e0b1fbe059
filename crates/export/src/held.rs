//! The memory that clients make a shard hold, and its limits.

/// The memory that the clients of a shard make it hold now, and its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// How many zios are in flight.
    pub zios: u32,
    /// The largest number of zios in flight.
    pub zios_max: u32,
    /// How many bytes of payload the shard holds.
    pub payload: u64,
    /// The largest number of payload bytes. This number includes the bytes beyond the budget, which the shard
    /// admits only for connections with nothing in flight.
    pub payload_max: u64,
    /// The number of bytes that connections keep in addition to their requests: received bytes that the shard
    /// has not decoded, and replies that clients have not taken.
    pub kept: u64,
    /// Once connections keep this many bytes, the shard reads only a little at a time from each.
    pub kept_max: u64,
    /// The number of connections.
    pub connections: u32,
}

impl Default for Held {
    fn default() -> Held {
        Held {
            zios: 0,
            zios_max: ZIOS_MAX,
            payload: 0,
            payload_max: PAYLOAD_MAX + BEYOND_MAX,
            kept: 0,
            kept_max: KEPT_MAX,
            connections: 0,
        }
    }
}

/// The largest number of zios in flight on one shard.
pub(crate) const ZIOS_MAX: u32 = 262_144;
/// Once a shard holds this many payload bytes, it stops reading.
pub(crate) const PAYLOAD_MAX: u64 = 256 << 20;
/// Connections with nothing in flight may add this many bytes to `PAYLOAD_MAX`.
pub(crate) const BEYOND_MAX: u64 = (32 << 20) + (64 << 20);
/// Once connections keep this many bytes in addition to their requests, the shard reads only a little at a
/// time from each.
pub(crate) const KEPT_MAX: u64 = 64 << 20;
