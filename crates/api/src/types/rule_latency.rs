//! What a rule asked for and what was achieved, as histograms.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{LatencyHistogram, Rule};

/// A rule and the latencies of the zios that it held, at one moment.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RuleLatency {
    pub rule: Rule,
    /// Names the boundaries of the buckets.
    pub layout: String,
    /// The service times that it asked for, without lane wait.
    pub requested: LatencyHistogram,
    /// What was achieved after lane wait. Where all service times were equal it is worked out from
    /// lateness, and a value may be one bucket off.
    pub achieved: LatencyHistogram,
    /// How late they were.
    pub lateness: LatencyHistogram,
    /// How late those of them were that the host's stops explain; they are in `lateness`, too.
    pub stopped: LatencyHistogram,
}
