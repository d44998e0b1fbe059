//! What a rule asked for and what was achieved, as histograms.

use dashpot_engine::histogram::{Histogram, LAYOUT};
use dashpot_export::DiskSnapshot;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{LatencyHistogram, Rule};
use crate::daemon::Record;

/// A rule and the latencies of the zios that it held, at one moment.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RuleLatency {
    pub(crate) rule: Rule,
    /// Names the boundaries of the buckets.
    pub(crate) layout: String,
    /// The service times that it asked for, without lane wait.
    pub(crate) requested: LatencyHistogram,
    /// What was achieved after lane wait. Where all service times were equal it is worked out from
    /// lateness, and a value may be one bucket off.
    pub(crate) achieved: LatencyHistogram,
    /// How late they were.
    pub(crate) lateness: LatencyHistogram,
    /// How late those of them were that the host's stops explain; they are in `lateness`, too.
    pub(crate) stopped: LatencyHistogram,
}

impl RuleLatency {
    /// A rule of the disk called `disk`, if it is armed in the disk's snapshot.
    pub(crate) fn of(record: &Record, disk: &str, snapshot: &DiskSnapshot) -> Option<RuleLatency> {
        let armed = snapshot.rules.iter().find(|rule| rule.id == record.id)?;
        let holds = &armed.stats.holds;
        Some(RuleLatency {
            rule: Rule::of(record, disk, snapshot)?,
            layout: LAYOUT.to_owned(),
            requested: sent(holds.requested().as_ref()),
            achieved: sent(holds.achieved().as_ref()),
            lateness: sent(holds.lateness()),
            stopped: sent(holds.stopped()),
        })
    }
}

fn sent(histogram: Option<&Histogram>) -> LatencyHistogram {
    histogram.map(LatencyHistogram::of).unwrap_or_default()
}
