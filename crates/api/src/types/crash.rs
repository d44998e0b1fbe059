//! Power cuts of `lossy` disks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Cuts the power of a disk on a `lossy` store, or gives it back.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// Which of the writes that no flush has covered survive.
    #[serde(default)]
    pub keep: KeepWord,
    /// What a write is torn at: 512 or 4096. Without it a write survives whole or not at all.
    #[serde(default)]
    pub tear_bytes: Option<u64>,
    /// Decides what survives.
    #[serde(default)]
    pub seed: u64,
    /// What the disk does afterwards.
    #[serde(default)]
    pub then: ThenWord,
    #[allow(rustdoc::broken_intra_doc_links)] // `[100]` is a default, and no link.
    /// How many of the lost writes are listed, the oldest first, up to 10,000 [100].
    #[serde(default = "hundred")]
    pub list: usize,
}

fn hundred() -> usize {
    100
}

/// Which of the writes that no flush has covered survive a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeepWord {
    None,
    All,
    #[default]
    Random,
}

/// What a disk does after a power cut: it goes on under its clients, it is off, or it is served
/// again. Connections end but in the first case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThenWord {
    #[default]
    GoOn,
    Off,
    Restart,
}

/// What a power cut has taken.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Crashed {
    pub disk: String,
    pub keep: KeepWord,
    pub tear_bytes: Option<u64>,
    pub seed: u64,
    /// What the disk does now.
    pub then: ThenWord,
    /// Whether it was off before, so that nothing was left to lose.
    pub was_off: bool,
    /// Acknowledged writes that no flush had covered.
    pub unflushed: WriteSum,
    /// Those of them of which something is missing, and the bytes that are.
    pub lost: WriteSum,
    /// Of those that are lost, the ones of which something is there.
    pub torn: u64,
    /// Writes that were in flight: their clients had not been told that they were done.
    pub unacknowledged: u64,
    /// Bytes that had reached the medium since the last flush only because the cache was full.
    pub early_bytes: u64,
    /// What is missing, by client.
    pub clients: Vec<ClientLoss>,
    /// The lost writes, as many as were asked for, the oldest first.
    pub writes: Vec<LostWrite>,
}

/// So many writes, with so many bytes.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WriteSum {
    pub writes: u64,
    pub bytes: u64,
}

/// What is missing of a client's writes.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ClientLoss {
    #[schema(example = "uid=1000 pid=4711")]
    pub client: String,
    #[serde(flatten)]
    pub lost: WriteSum,
}

/// An acknowledged write of which something is missing.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct LostWrite {
    pub client: String,
    pub offset_bytes: u64,
    pub length_bytes: u64,
    /// How many of its bytes are missing.
    pub missing_bytes: u64,
    /// How long before the power cut the store had it.
    pub age_ns: u64,
}
