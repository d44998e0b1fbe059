//! The CPU time that the host gives this process: the number of CPUs, the quota, how often the quota
//! has stopped the process, and the share that the hypervisor gave to other machines.

use std::fs;

use dashpot_api::Host;
use dashpot_export::{Throttling, cpu_quota, cpu_throttling};

/// The kernel's counters, which count from the boot or from the creation of the control group.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// How often and for how long a CPU quota stopped this process.
    pub throttling: Throttling,
    /// The times of all CPUs, if the host reports them.
    pub times: Option<CpuTimes>,
}

impl Counted {
    /// The host's counters now.
    pub fn now() -> Counted {
        Counted {
            throttling: cpu_throttling(),
            times: CpuTimes::parse(&fs::read_to_string("/proc/stat").unwrap_or_default()),
        }
    }

    /// The growth of the counters since `earlier`.
    pub fn since(self, earlier: Counted) -> Counted {
        let times = self.times.zip(earlier.times);
        Counted {
            throttling: self.throttling.since(earlier.throttling),
            times: times.map(|(later, earlier)| later.since(earlier)),
        }
    }

    /// The share of CPU time that the hypervisor gave to other machines, in percent; `None` if it is
    /// not known.
    pub fn steal_percent(self) -> Option<f64> {
        self.times?.steal_percent()
    }
}

/// The time of all CPUs together, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTimes {
    total: u64,
    steal: u64,
}

impl CpuTimes {
    /// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq,
    /// steal. The fields after these are parts of user and nice.
    fn parse(stat: &str) -> Option<CpuTimes> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let times = line.split_whitespace().take(8).map(str::parse);
        let times: Vec<u64> = times.collect::<Result<_, _>>().ok()?;
        Some(CpuTimes {
            total: times.iter().sum(),
            steal: *times.get(7)?,
        })
    }

    /// The growth of the counters since `earlier`.
    fn since(self, earlier: CpuTimes) -> CpuTimes {
        CpuTimes {
            total: self.total.saturating_sub(earlier.total),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    fn steal_percent(self) -> Option<f64> {
        (self.total > 0).then(|| self.steal as f64 * 100.0 / self.total as f64)
    }
}

/// The number of CPUs that this process may run on. A quota does not change this number.
pub fn cpus() -> usize {
    let affinity = rustix::thread::sched_getaffinity(None);
    affinity.map_or(1, |cpus| cpus.count() as usize)
}

/// The CPU time that the host gives the daemon, as of now. The counters count from `earlier` or, if `earlier`
/// is `None`, from where the kernel began to count.
pub fn host_now(earlier: Option<Counted>) -> Host {
    let now = Counted::now();
    let counted = earlier.map_or(now, |earlier| now.since(earlier));
    Host {
        cpus: cpus(),
        quota_millicpus: cpu_quota().map(|quota| quota.millicpus()),
        quota_periods: counted.throttling.periods,
        throttled_periods: counted.throttling.throttled,
        throttled_ns: counted.throttling.throttled_ns,
        steal_percent: counted.steal_percent(),
    }
}

#[cfg(test)]
mod tests {
    use super::CpuTimes;

    fn steal(stat: &str) -> Option<f64> {
        CpuTimes::parse(stat)?.steal_percent()
    }

    #[test]
    fn steal_is_the_eighth_figure() {
        let stat = "cpu  50 0 20 10 5 5 0 10 999 999\ncpu0 1 2 3\n";
        assert_eq!(steal(stat), Some(10.0));
        assert_eq!(steal("cpu  1 2 3\n"), None);
        assert_eq!(steal(""), None);
    }

    #[test]
    fn what_was_stolen_before_does_not_count() {
        let at = |stat| CpuTimes::parse(stat).unwrap();
        let (earlier, later) = (at("cpu  0 0 0 10 0 0 0 90"), at("cpu  0 0 0 100 0 0 0 100"));
        assert_eq!(later.since(earlier).steal_percent(), Some(10.0));
        assert_eq!(later.since(later).steal_percent(), None);
    }
}
