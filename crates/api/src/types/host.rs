//! What the host leaves the daemon of its CPUs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The host's CPUs, as far as the daemon gets them. What is counted is counted since its start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// CPUs that it may run on.
    pub cpus: usize,
    /// The quota of a control group in thousandths of a CPU, if one is in force.
    pub quota_millicpus: Option<u64>,
    /// Periods of that quota in which the daemon's control group has run.
    pub quota_periods: u64,
    /// Those of them in which the kernel has stopped it, because the quota was used up.
    pub throttled_periods: u64,
    /// For how long, added up over the CPUs. Whatever fell into that time is late.
    pub throttled_ns: u64,
    /// The share of the CPU time that the hypervisor has given to others.
    pub steal_percent: Option<f64>,
}
