//! Metrics of the program, and of the CPU time that the host gives it.

use std::fmt;

use dashpot_api::{Host, VersionInfo};
use prometheus_client::registry::Unit;

use super::page::{Labels, Metric, Page, seconds_of};

/// Writes the metrics of the host.
pub(super) fn write(page: &mut Page<'_>, host: &Host) -> fmt::Result {
    write_build(page)?;
    page.counter(&PERIODS, [(Labels::new(), host.quota_periods)])?;
    page.counter(&THROTTLED, [(Labels::new(), host.throttled_periods)])?;
    let throttled = seconds_of(host.throttled_ns.into());
    page.counter(&THROTTLED_TIME, [(Labels::new(), throttled)])?;
    let steal = host
        .steal_percent
        .map(|percent| (Labels::new(), percent / 100.0));
    page.gauge(&STEAL, steal)
}

/// Writes the version of the program.
pub(super) fn write_build(page: &mut Page<'_>) -> fmt::Result {
    let version = VersionInfo::current().version;
    page.info(&BUILD, [vec![("version", version.into())]])
}

const BUILD: Metric = Metric("build", None, "The version of dashpot");
const PERIODS: Metric = Metric(
    "host_cpu_quota_periods",
    None,
    "Periods of the CPU quota in which this program ran",
);
const THROTTLED: Metric = Metric(
    "host_cpu_throttled_periods",
    None,
    "Periods in which the quota stopped this program",
);
const THROTTLED_TIME: Metric = Metric(
    "host_cpu_throttled",
    Some(Unit::Seconds),
    "Time for which the quota stopped this program, summed over the CPUs",
);
const STEAL: Metric = Metric(
    "host_cpu_steal_ratio",
    None,
    "Share of the CPU time since the start that the hypervisor gave to others",
);
