//! What the daemon promises about time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A promise about time, and whether it can hold on this host now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Promise {
    #[schema(example = "p50 lateness of at most 30 us, by spinning")]
    pub promise: String,
    pub can_hold: CanHold,
    /// Why, and what would change it.
    pub why: String,
}

/// Whether a promise can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CanHold {
    Yes,
    /// Something is in the way that may or may not matter.
    Doubtful,
    No,
}

/// The promised median lateness of zios that are due one by one, where the daemon spins.
pub const LATENESS_NS: u64 = 30_000;
/// What each zio of a burst adds to it.
pub const LATENESS_OF_BURST_NS: u64 = 500;
