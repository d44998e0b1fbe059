//! Histograms of the latencies that a rule asked for, and of the latencies that its zios had.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{LatencyHistogram, Rule};

/// A rule and the latencies of the zios that the rule held, at one moment.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RuleLatency {
    /// The rule, with its counters.
    pub rule: Rule,
    /// The name of the bucket boundaries.
    pub layout: String,
    /// The latencies of all zios that the rule has held since it was armed, through all its updates.
    #[serde(flatten)]
    pub holds: HoldLatency,
    /// The latencies of the zios that matched the rule after its last update; null if it was never updated.
    pub since_update: Option<HoldLatency>,
}

/// The latencies of the zios that a rule held.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HoldLatency {
    /// The service times that the rule asked for, without the wait for a lane.
    pub requested: LatencyHistogram,
    /// The service times that the zios had, without the wait for a lane. If the rule asked for the same
    /// service time for all zios, the daemon computes `achieved` from `lateness`, and a value may be one
    /// bucket off.
    pub achieved: LatencyHistogram,
    /// How late the zios were.
    pub lateness: LatencyHistogram,
    /// The lateness of the late zios that the host delayed by keeping the shard from running. `lateness`
    /// contains these zios, too.
    pub stopped: LatencyHistogram,
}

impl RuleLatency {
    /// The latencies that prove the rule's effect. They cover the zios that matched the rule since its last
    /// update.
    pub fn present(&self) -> &HoldLatency {
        self.since_update.as_ref().unwrap_or(&self.holds)
    }
}
