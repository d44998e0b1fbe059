//! The daemon's promises about time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A promise about time, and whether it can hold on this host now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Promise {
    /// The promise, in words.
    #[schema(example = "p50 lateness of at most 30 us, by spinning")]
    pub promise: String,
    /// Whether it can hold now.
    pub can_hold: CanHold,
    /// The reason, and what would change it.
    pub why: String,
}

/// Whether a promise can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CanHold {
    /// Nothing that the daemon can see is in the way.
    Yes,
    /// Something is in the way that may or may not matter.
    Doubtful,
    /// Something prevents it.
    No,
}

/// The most median lateness of zios that are due one by one, in nanoseconds, where the daemon spins.
pub const LATENESS_NS: u64 = 30_000;
/// The nanoseconds that each further zio of a burst may add to it.
pub const LATENESS_OF_BURST_NS: u64 = 500;
