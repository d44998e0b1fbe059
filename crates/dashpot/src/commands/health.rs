//! What distorts latencies and is no rule's doing, said beside them.

use super::output::time;
use crate::api::types::Host;

/// What the daemon gets of the host's CPUs.
pub(super) fn host_line(host: &Host) -> String {
    let cpus = host.cpus;
    let quota = match host.quota_millicpus {
        None => "no quota".to_owned(),
        Some(quota) => format!("a quota of {}", cpus_of(quota)),
    };
    let throttled = throttled(host).map_or_else(String::new, |what| format!(", {what}"));
    let steal = match host.steal_percent {
        Some(steal) => format!("{steal:.1} %"),
        None => "unknown".to_owned(),
    };
    format!("CPUs: {cpus}, {quota}{throttled}; steal since the start: {steal}\n")
}

/// What the kernel has done to enforce a quota.
pub(super) fn quota_note(host: &Host) -> Option<String> {
    let what = throttled(host)?;
    let quota = host
        .quota_millicpus
        .map_or_else(String::new, |quota| format!(" of {}", cpus_of(quota)));
    Some(format!(
        "the CPU quota{quota}: {what}; latencies are distorted\n"
    ))
}

fn throttled(host: &Host) -> Option<String> {
    let (stopped, periods) = (host.throttled_periods, host.quota_periods);
    let lasted = time(host.throttled_ns);
    (stopped > 0).then(|| {
        format!("stopped in {stopped} of {periods} periods since the start, {lasted} in all")
    })
}

/// `0.20 CPUs`.
pub(crate) fn cpus_of(millicpus: u64) -> String {
    format!("{:.2} CPUs", millicpus as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::{host_line, quota_note};
    use crate::api::types::Host;

    fn host(quota: Option<u64>, stopped: u64) -> Host {
        Host {
            cpus: 2,
            quota_millicpus: quota,
            quota_periods: 21,
            throttled_periods: stopped,
            throttled_ns: 1_080_000_000,
            steal_percent: Some(12.34),
        }
    }

    #[test]
    fn what_a_quota_has_stopped_is_said() {
        assert_eq!(
            host_line(&host(Some(200), 20)),
            "CPUs: 2, a quota of 0.20 CPUs, stopped in 20 of 21 periods since the start, 1.08s in \
             all; steal since the start: 12.3 %\n"
        );
        assert!(
            quota_note(&host(Some(200), 20))
                .unwrap()
                .contains("20 of 21")
        );
    }

    #[test]
    fn a_quota_that_has_stopped_nothing_is_no_news() {
        assert_eq!(quota_note(&host(Some(200), 0)), None);
        assert_eq!(
            host_line(&host(None, 0)),
            "CPUs: 2, no quota; steal since the start: 12.3 %\n"
        );
    }
}
