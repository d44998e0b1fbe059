//! What clients make a shard hold, and the most that they may.

/// What the clients of a shard make it hold, and the most that they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Zios in flight.
    pub zios: u32,
    /// The most of them.
    pub zios_max: u32,
    /// Bytes of payloads.
    pub payload: u64,
    /// The most of them, with what connections that have nothing else in flight may bring beyond.
    pub payload_max: u64,
    /// Bytes that connections keep beside their requests: received and not looked at, or replies
    /// that their clients do not take.
    pub kept: u64,
    /// When these are so many, connections are read a little at a time.
    pub kept_max: u64,
    /// Connections.
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

/// The most zios in flight on one shard.
pub(crate) const ZIOS_MAX: u32 = 262_144;
/// The most payload bytes that a shard holds before it stops reading.
pub(crate) const PAYLOAD_MAX: u64 = 256 << 20;
/// What connections with nothing else in flight may bring beyond that.
pub(crate) const BEYOND_MAX: u64 = (32 << 20) + (64 << 20);
/// The most bytes that connections keep beside their requests before they are read a little at a
/// time.
pub(crate) const KEPT_MAX: u64 = 64 << 20;
