//! What the host leaves the daemon of its CPUs.

use dashpot_export::cpu_quota;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::host::{self, Counted};

/// The host's CPUs, as far as the daemon gets them. What is counted is counted since its start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Host {
    /// CPUs that it may run on.
    pub(crate) cpus: usize,
    /// The quota of a control group in thousandths of a CPU, if one is in force.
    pub(crate) quota_millicpus: Option<u64>,
    /// Periods of that quota in which the daemon's control group has run.
    pub(crate) quota_periods: u64,
    /// Those of them in which the kernel has stopped it, because the quota was used up.
    pub(crate) throttled_periods: u64,
    /// For how long, added up over the CPUs. Whatever fell into that time is late.
    pub(crate) throttled_ns: u64,
    /// The share of the CPU time that the hypervisor has given to others.
    pub(crate) steal_percent: Option<f64>,
}

impl Host {
    /// The host now, with what was counted since `earlier`, or from the beginning.
    pub(crate) fn now(earlier: Option<Counted>) -> Host {
        let now = Counted::now();
        let counted = earlier.map_or(now, |earlier| now.since(earlier));
        Host {
            cpus: host::cpus(),
            quota_millicpus: cpu_quota().map(|quota| quota.millicpus()),
            quota_periods: counted.throttling.periods,
            throttled_periods: counted.throttling.throttled,
            throttled_ns: counted.throttling.throttled_ns,
            steal_percent: counted.steal_percent(),
        }
    }
}
