//! The daemon's promises about time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A promise about time, and whether the daemon can keep it on this host now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Promise {
    /// The promise, in words.
    #[schema(example = "p50 lateness of at most 30 us, by spinning")]
    pub promise: String,
    /// Whether the daemon can keep the promise now.
    pub can_hold: CanHold,
    /// The reason for this answer, and the change that would lead to another answer.
    pub why: String,
}

/// Whether the daemon can keep a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CanHold {
    /// The daemon sees no obstacle.
    Yes,
    /// There is an obstacle, and the daemon cannot tell whether it matters.
    Doubtful,
    /// An obstacle keeps the daemon from keeping the promise.
    No,
}

/// The promised bound of the median lateness, in nanoseconds, if the daemon spins and only one zio is due at
/// a time.
pub const LATENESS_NS: u64 = 30_000;
/// The number of nanoseconds that each further zio of a burst may add to the bound.
pub const LATENESS_OF_BURST_NS: u64 = 500;
