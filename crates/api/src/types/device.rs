//! The clients and the I/O of a disk or a volume.

use dashpot_engine::Wait;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Attachment, Depth, DepthTime, Wide};

/// The clients and the I/O of a disk or a volume at one moment. If the daemon no longer serves the device,
/// everything is 0.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeviceIo {
    /// The moment at which the fields below were read.
    pub at_ns: u64,
    /// The clients that are connected now.
    pub clients: Vec<DiskClient>,
    /// The block devices of the host through which programs reach this device.
    pub attachments: Vec<Attachment>,
    /// Number of connections that the shard does not read at present, because requests use all the memory
    /// that they may use.
    pub stalled: u32,
    /// How often the shard has stopped reading a connection because requests used all the memory that they
    /// may use.
    pub stalls: u64,
    /// Number of zios that have arrived and have no reply yet.
    pub in_flight: u32,
    /// The oldest zios without a reply, at most as many as the request asked for.
    pub oldest: Vec<InFlightZio>,
    /// The counters of each operation.
    pub ops: Vec<OpCount>,
    /// Number of zios whose connection ended before their reply.
    pub aborted: u64,
    /// Time during which at least one zio was in flight.
    pub busy_ns: u64,
    /// The number of zios in flight, integrated over time. Divided by `busy_ns`, it is the mean depth
    /// while any zio was in flight.
    pub depth_time_ns: Wide,
    /// The time spent with each number of zios in flight.
    pub depth_times: Vec<DepthTime>,
    /// A summary of `depth_times` since the start.
    pub depth: Depth,
}

impl DeviceIo {
    /// The mean number of zios in flight, over the time in which any zio was in flight.
    pub fn mean_depth(&self) -> u64 {
        let depth = self.depth_time_ns.0.checked_div(self.busy_ns.into());
        let depth = depth.and_then(|depth| u64::try_from(depth).ok());
        depth.unwrap_or_default().max(1)
    }
}

/// A client of a disk or a volume. It is not named `Client`, because code generators use that name for the
/// API's client.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DiskClient {
    /// The name, from the peer's credentials or address.
    #[schema(example = "uid=1000 pid=4711")]
    pub name: String,
    /// Number of the client's open connections to this device.
    pub connections: u32,
}

/// Counters of one operation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpCount {
    /// The name of the operation.
    #[schema(example = "read")]
    pub op: String,
    /// Number of zios with a reply, including failed zios.
    pub completed: u64,
    /// Number of zios that ended with an error.
    pub failed: u64,
    /// Total bytes of the zios that did not fail.
    pub bytes: u64,
}

/// A zio that has not been replied to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InFlightZio {
    /// The name of the zio's operation.
    #[schema(example = "read")]
    pub op: String,
    /// The name of the system call, if it is not that of the operation; null for other zios.
    #[schema(example = "fdatasync")]
    pub call: Option<String>,
    /// The name of the client that sent the zio; `other` for clients without a separate identity.
    pub client: String,
    /// The position of the zio's first byte on the device.
    pub offset_bytes: u64,
    /// The zio's length.
    pub length_bytes: u32,
    /// Time since the zio's arrival.
    pub age_ns: u64,
    /// The reason that the zio waits. At a disk, it is one of `suspended`, `held-before`, `store`, `held`,
    /// `hung` and `reply`; at a volume, one of `block-lock`, `reading`, `pool-stalled`, `throttled`,
    /// `power-cut`, `writing`, `syncing` and `reply`.
    pub wait: String,
    /// Time for which the zio has waited for this reason.
    pub wait_ns: u64,
    /// The id of the rule that holds the zio; null if no rule does.
    pub rule: Option<u32>,
    /// Time until the rule allows the zio to complete; null if no rule holds it, or if it hangs.
    pub remaining_ns: Option<u64>,
}

/// The word for the reason that a zio waits.
pub fn wait_word(wait: Wait) -> &'static str {
    match wait {
        Wait::Lock => "block-lock",
        Wait::Read => "reading",
        Wait::Stalled => "pool-stalled",
        Wait::Throttle => "throttled",
        Wait::PowerCut => "power-cut",
        Wait::Write => "writing",
        Wait::Sync => "syncing",
        Wait::Suspended => "suspended",
        Wait::HeldBefore => "held-before",
        Wait::Store => "store",
        Wait::Held => "held",
        Wait::Hung => "hung",
        Wait::Reply => "reply",
    }
}
