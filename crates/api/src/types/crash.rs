//! Power cuts of `lossy` disks, and of pools of such disks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Cuts the power of a disk on a `lossy` store, or restores it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// Selects the writes that survive, among those that no flush has covered.
    #[serde(default)]
    pub keep: KeepWord,
    /// The size, 512 or 4096 bytes, of the pieces in which writes survive or are lost; null if each write
    /// survives whole or not at all.
    #[serde(default)]
    pub tear_bytes: Option<u64>,
    /// The seed of the random choice of the writes that survive.
    #[serde(default)]
    pub seed: u64,
    /// The state of the disk after the power cut.
    #[serde(default)]
    pub then: ThenWord,
    #[allow(rustdoc::broken_intra_doc_links)] // `[100]` is a default, and no link.
    /// The maximum number of lost writes that the answer lists, the oldest first; at most 10,000 [100].
    #[serde(default = "hundred")]
    pub list: usize,
}

fn hundred() -> usize {
    100
}

/// Selects the writes that survive a power cut, among those that no flush has covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeepWord {
    /// None of the unflushed writes survives.
    None,
    /// All unflushed writes survive.
    All,
    /// The seed decides for each unflushed write whether the write survives.
    #[default]
    Random,
}

/// The state of a disk after a power cut. The disk keeps serving (`go_on`), is off (`off`), or is served
/// again (`restart`). Its connections end unless it keeps serving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThenWord {
    /// The disk keeps serving; its connections stay open.
    #[default]
    GoOn,
    /// The disk is off until a power cut with `restart`: its connections end, and no client can
    /// connect.
    Off,
    /// The disk is served again at once; its connections end.
    Restart,
}

/// The writes that a disk lost in a power cut.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Crashed {
    /// The name of the disk.
    pub disk: String,
    /// The `keep` of the request.
    pub keep: KeepWord,
    /// The `tear_bytes` of the request; null if writes survive whole or not at all.
    pub tear_bytes: Option<u64>,
    /// The `seed` of the request. The same seed and the same writes lose the same bytes.
    pub seed: u64,
    /// The state of the disk after the power cut.
    pub then: ThenWord,
    /// Whether the disk was already off, with nothing left to lose.
    pub was_off: bool,
    /// The acknowledged writes that no flush had covered.
    pub unflushed: WriteSum,
    /// The unflushed writes that lost bytes, and the number of lost bytes.
    pub lost: WriteSum,
    /// Number of lost writes that survived in part.
    pub torn: u64,
    /// Number of writes in flight, which the daemon had not acknowledged yet.
    pub unacknowledged: u64,
    /// Bytes that the disk wrote to the medium after the last flush without being asked to, because its cache
    /// was full.
    pub early_bytes: u64,
    /// The losses of each client.
    pub clients: Vec<ClientLoss>,
    /// The lost writes, the oldest first, at most as many as the request asked for.
    pub writes: Vec<LostWrite>,
}

/// The data that a pool lost in a power cut.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PoolCrashed {
    /// The name of the pool.
    pub pool: String,
    /// The `keep` of the request.
    pub keep: KeepWord,
    /// The `tear_bytes` of the request; null if writes survive whole or not at all.
    pub tear_bytes: Option<u64>,
    /// The `seed` of the request. Each disk has a seed of its own, derived from this one.
    pub seed: u64,
    /// The state of the pool's volumes after the power cut.
    pub then: ThenWord,
    /// Whether the pool was already off, with nothing left to lose.
    pub was_off: bool,
    /// The transaction groups that were only in memory, though the pool had acknowledged their writes.
    /// Flushed writes are not part of these groups. The list is empty if the pool keeps serving, because then
    /// only its disks lost power.
    pub txgs: Vec<LostTxg>,
    /// The writes that each disk lost from its cache. All disks together list at most as many writes as the
    /// request asked for.
    pub disks: Vec<Crashed>,
}

/// A transaction group that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LostTxg {
    /// The number of the transaction group.
    pub txg: u64,
    /// Bytes of the transaction group's data that were only in memory.
    pub dirty_bytes: u64,
}

/// A number of writes and a number of bytes.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WriteSum {
    /// Number of writes.
    pub writes: u64,
    /// Number of bytes of these writes; for lost writes, only the bytes that were lost.
    pub bytes: u64,
}

/// A client, and the writes that it lost in a power cut.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ClientLoss {
    /// The name of the client.
    #[schema(example = "uid=1000 pid=4711")]
    pub client: String,
    /// The client's lost writes, and the number of lost bytes.
    #[serde(flatten)]
    pub lost: WriteSum,
}

/// An acknowledged write that did not survive whole.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct LostWrite {
    /// The name of the client that sent the write.
    pub client: String,
    /// The position of the write's first byte on the disk.
    pub offset_bytes: u64,
    /// The length of the write.
    pub length_bytes: u64,
    /// How many bytes of the write are missing.
    pub missing_bytes: u64,
    /// Time from the store's receipt of the write to the power cut.
    pub age_ns: u64,
}
