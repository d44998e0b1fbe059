//! Finished zios, one by one.

use dashpot_engine::Waits;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Zios that have finished, the oldest first, as far as they are remembered.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FinishedZios {
    pub zios: Vec<FinishedZio>,
    /// Where to go on: give it as `after`.
    pub next: u64,
    /// How many of those after the one that was given are no longer remembered.
    pub forgotten: u64,
    /// How many were never recorded because the shards were faster than who listens, since the
    /// start.
    pub dropped: u64,
    /// When the daemon was started. A cursor is of one daemon: with another moment here, begin anew.
    pub since_ns: u64,
}

/// A finished zio, and where its time went. The waits add up to `total_ns`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FinishedZio {
    pub disk: String,
    #[schema(example = "uid=1000 pid=4711")]
    pub client: String,
    #[schema(example = "write")]
    pub op: String,
    pub fua: bool,
    pub offset_bytes: u64,
    pub length_bytes: u32,
    /// The error that it ended with.
    #[schema(example = "EIO")]
    pub error: Option<String>,
    /// When its header was received.
    pub arrived_ns: u64,
    /// When its reply was accepted.
    pub ended_ns: u64,
    pub total_ns: u64,
    pub waits: ZioWaits,
    /// The rule that decided how long it took, or the error that it ended with.
    pub rule: Option<u32>,
    /// Which lane of that rule it was given, from 0.
    pub lane: Option<u32>,
}

/// Where a zio's time went, in the order in which it did.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ZioWaits {
    /// From its header until its payload was complete.
    pub recv_ns: u64,
    /// For its pool's write throttle.
    pub throttle_ns: u64,
    /// In the queue of a pool's disk.
    pub queue_ns: u64,
    /// While its disk was suspended.
    pub suspend_ns: u64,
    /// For the store.
    pub store_ns: u64,
    /// Held by a rule.
    pub hold_ns: u64,
    /// From the moment at which it was to complete until its reply was offered: dashpot's error.
    pub lateness_ns: u64,
    /// Until the client took the reply.
    pub reply_ns: u64,
}

impl ZioWaits {
    pub fn of(waits: &Waits) -> ZioWaits {
        ZioWaits {
            recv_ns: waits.recv.as_nanos(),
            throttle_ns: waits.throttle.as_nanos(),
            queue_ns: waits.queue.as_nanos(),
            suspend_ns: waits.suspend.as_nanos(),
            store_ns: waits.store.as_nanos(),
            hold_ns: waits.hold.as_nanos(),
            lateness_ns: waits.lateness.as_nanos(),
            reply_ns: waits.reply.as_nanos(),
        }
    }
}
