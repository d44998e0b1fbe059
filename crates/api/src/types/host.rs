//! How much CPU time the host gives the daemon.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The CPU time that the host gives the daemon. Counters begin at the daemon's start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Number of CPUs that the daemon may run on.
    pub cpus: usize,
    /// The CPU quota of the daemon's control group in thousandths of a CPU; null if there is none.
    pub quota_millicpus: Option<u64>,
    /// Number of periods of the CPU quota in which the control group has run.
    pub quota_periods: u64,
    /// Number of periods in which the kernel stopped the control group because its CPU quota was used up.
    pub throttled_periods: u64,
    /// Time for which the kernel stopped the control group, summed over the CPUs. Zios that were due in that
    /// time ended late.
    pub throttled_ns: u64,
    /// The share of the CPU time that the hypervisor gave to other machines; null if the kernel does
    /// not say.
    pub steal_percent: Option<f64>,
}
