//! Finished zios, one by one.

use dashpot_engine::Waits;
use dashpot_export as export;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Zios that have finished, the oldest first, as far as they are remembered.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct FinishedZios {
    pub(crate) zios: Vec<FinishedZio>,
    /// Where to go on: give it as `after`.
    pub(crate) next: u64,
    /// How many of those after the one that was given are no longer remembered.
    pub(crate) forgotten: u64,
    /// How many were never recorded because the shards were faster than who listens, since the
    /// start.
    pub(crate) dropped: u64,
    /// When the daemon was started. A cursor is of one daemon: with another moment here, begin anew.
    pub(crate) since_ns: u64,
}

/// A finished zio, and where its time went. The waits add up to `total_ns`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct FinishedZio {
    pub(crate) disk: String,
    #[schema(example = "uid=1000 pid=4711")]
    pub(crate) client: String,
    #[schema(example = "write")]
    pub(crate) op: String,
    pub(crate) fua: bool,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u32,
    /// The error that it ended with.
    #[schema(example = "EIO")]
    pub(crate) error: Option<String>,
    /// When its header was received.
    pub(crate) arrived_ns: u64,
    /// When its reply was accepted.
    pub(crate) ended_ns: u64,
    pub(crate) total_ns: u64,
    pub(crate) waits: ZioWaits,
    /// The rule that decided how long it took, or the error that it ended with.
    pub(crate) rule: Option<u32>,
    /// Which lane of that rule it was given, from 0.
    pub(crate) lane: Option<u32>,
}

/// Where a zio's time went, in the order in which it did.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct ZioWaits {
    /// From its header until its payload was complete.
    pub(crate) recv_ns: u64,
    /// For its pool's write throttle.
    pub(crate) throttle_ns: u64,
    /// In the queue of a pool's disk.
    pub(crate) queue_ns: u64,
    /// While its disk was suspended.
    pub(crate) suspend_ns: u64,
    /// For the store.
    pub(crate) store_ns: u64,
    /// Held by a rule.
    pub(crate) hold_ns: u64,
    /// From the moment at which it was to complete until its reply was offered: dashpot's error.
    pub(crate) lateness_ns: u64,
    /// Until the client took the reply.
    pub(crate) reply_ns: u64,
}

impl FinishedZio {
    pub(crate) fn of(zio: &export::FinishedZio, disk: &str, client: &str) -> FinishedZio {
        let waits = zio.waits();
        FinishedZio {
            disk: disk.to_owned(),
            client: client.to_owned(),
            op: zio.op.name().to_owned(),
            fua: zio.fua,
            offset_bytes: zio.offset,
            length_bytes: zio.length,
            error: zio.outcome.err().map(|errno| errno.name().to_owned()),
            arrived_ns: zio.arrived.as_nanos(),
            ended_ns: zio.ended().as_nanos(),
            total_ns: waits.total().as_nanos(),
            waits: ZioWaits::of(&waits),
            rule: zio.rule().map(|rule| rule.0),
            lane: zio.lane(),
        }
    }
}

impl ZioWaits {
    pub(crate) fn of(waits: &Waits) -> ZioWaits {
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
