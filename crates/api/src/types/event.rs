//! Finished zios, one by one.

use dashpot_engine::{Duration, Waits};
use dashpot_observe::{Facts, FinishedIo, OTHER};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The finished zios that the daemon still remembers, the oldest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FinishedZios {
    /// The zios, in the order in which they ended.
    pub zios: Vec<FinishedZio>,
    /// The cursor to give as `after` in the next request.
    pub next: u64,
    /// Number of zios that ended after the cursor in `after` and that the daemon no longer remembers.
    pub forgotten: u64,
    /// Number of zios since the start that the daemon did not record, because its collector could not
    /// keep up with the shards.
    pub dropped: u64,
    /// When the daemon started. A cursor is valid for one start: if this value changes, begin with
    /// `after` = 0.
    pub since_ns: u64,
}

/// A finished zio, and the parts of its latency. The `waits` add up to `total_ns`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FinishedZio {
    /// The name of the zio's disk or volume.
    pub disk: String,
    /// The name of the client that sent the zio.
    #[schema(example = "uid=1000 pid=4711")]
    pub client: String,
    /// The name of the zio's operation.
    #[schema(example = "write")]
    pub op: String,
    /// The name of the system call, if it is not that of the operation; null for other zios.
    #[schema(example = "fdatasync")]
    pub call: Option<String>,
    /// Whether the zio was a write that must be durable before its reply (FUA).
    pub fua: bool,
    /// The position of the zio's first byte on the device.
    pub offset_bytes: u64,
    /// The zio's length.
    pub length_bytes: u32,
    /// How many zios were at the device when this zio was submitted, including this zio.
    #[schema(example = 4)]
    pub depth: u32,
    /// The error that the zio ended with; null if it succeeded.
    #[schema(example = "EIO")]
    pub error: Option<String>,
    /// When the daemon received the zio's header.
    pub arrived_ns: u64,
    /// When the transport accepted the zio's reply.
    pub ended_ns: u64,
    /// The sum of all `waits`, from `arrived_ns` to `ended_ns`. It is null for a program's call that a rule
    /// only held, because the daemon let the call go at `ended_ns`, and does not know when the call ended.
    pub total_ns: Option<u64>,
    /// The parts of the zio's latency.
    pub waits: ZioWaits,
    /// The other facts.
    #[serde(flatten)]
    pub facts: Facts,
}

/// The waits of a zio, in the order in which they occur. Their sum is its total latency.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ZioWaits {
    /// From the arrival of the zio's header until its payload was complete.
    pub recv_ns: u64,
    /// The wait for the write throttle of the zio's pool.
    pub throttle_ns: u64,
    /// The wait in the queue of a pool's disk.
    pub queue_ns: u64,
    /// The wait while the zio's disk was suspended.
    pub suspend_ns: u64,
    /// The wait for the store. It is null for a program's call that a rule only held, because the kernel does
    /// the call's work afterwards and does not say how long that took.
    pub store_ns: Option<u64>,
    /// The time for which a rule held the zio.
    pub hold_ns: u64,
    /// dashpot's own error: the time from the moment at which the zio was due until the daemon offered its
    /// reply to the transport.
    pub lateness_ns: u64,
    /// From the daemon's offer of the reply until the transport accepted it.
    pub reply_ns: u64,
}

impl FinishedZio {
    /// The wire form of a zio, whose client and waits the source knows.
    pub fn of(io: &FinishedIo) -> FinishedZio {
        let waits = io.waits.zio().copied().unwrap_or_default();
        FinishedZio {
            disk: io.device.to_string(),
            client: io.client().unwrap_or(OTHER).to_owned(),
            op: io.kind.word().to_owned(),
            call: io.letters.as_deref().map(str::to_owned),
            fua: io.fua,
            offset_bytes: io.offset_bytes,
            length_bytes: io.length_bytes as u32,
            depth: io.depth.unwrap_or_default(),
            error: io.error.clone(),
            arrived_ns: io.begun_ns,
            ended_ns: io.ended_ns,
            total_ns: io.known_total_ns(),
            waits: ZioWaits::of(&waits, io.waits.in_store_ns().is_some()),
            facts: io.facts,
        }
    }
}

impl ZioWaits {
    /// The waits in the form that the engine uses.
    pub fn waits(&self) -> Waits {
        Waits {
            recv: Duration::from_nanos(self.recv_ns),
            throttle: Duration::from_nanos(self.throttle_ns),
            queue: Duration::from_nanos(self.queue_ns),
            suspend: Duration::from_nanos(self.suspend_ns),
            store: Duration::from_nanos(self.store_ns.unwrap_or(0)),
            hold: Duration::from_nanos(self.hold_ns),
            lateness: Duration::from_nanos(self.lateness_ns),
            reply: Duration::from_nanos(self.reply_ns),
        }
    }

    /// The waits of a finished zio, in nanoseconds, with the time in the store if that is known.
    pub fn of(waits: &Waits, knows_store: bool) -> ZioWaits {
        ZioWaits {
            recv_ns: waits.recv.as_nanos(),
            throttle_ns: waits.throttle.as_nanos(),
            queue_ns: waits.queue.as_nanos(),
            suspend_ns: waits.suspend.as_nanos(),
            store_ns: knows_store.then_some(waits.store.as_nanos()),
            hold_ns: waits.hold.as_nanos(),
            lateness_ns: waits.lateness.as_nanos(),
            reply_ns: waits.reply.as_nanos(),
        }
    }
}
