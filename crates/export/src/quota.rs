//! The CPU quota in force for this process, and how often quotas have stopped the process. Both figures come
//! from the process's control groups (version 2 or 1) and the groups above them.
//!
//! A quota belongs to a group, and the kernel also counts stops per group. The counts of the group that was
//! stopped longest are the best measure of how long this process was kept from running.

use crate::cgroups::{self, Group, Version, field};

/// A bound on CPU time: `quota_us` microseconds in each period of `period_us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    /// The CPU time that the group may use in each period, summed over all CPUs, in microseconds.
    pub quota_us: u64,
    /// The length of a period, in microseconds.
    pub period_us: u64,
}

impl CpuQuota {
    /// The quota in thousandths of a CPU.
    pub fn millicpus(self) -> u64 {
        self.quota_us.saturating_mul(1_000) / self.period_us.max(1)
    }
}

/// How often, and for how long, a quota has stopped its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// In how many periods a process of the group ran.
    pub periods: u64,
    /// In how many periods the group used up its quota and was stopped for the rest of the period.
    pub throttled: u64,
    /// How long the group was stopped, summed over the CPUs, in nanoseconds.
    pub throttled_ns: u64,
}

impl Throttling {
    /// The increase since an earlier reading.
    pub fn since(self, earlier: Throttling) -> Throttling {
        Throttling {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            throttled_ns: self.throttled_ns.saturating_sub(earlier.throttled_ns),
        }
    }
}

/// The tightest quota of this process's control groups.
pub fn cpu_quota() -> Option<CpuQuota> {
    quota(&cgroups::own(CONTROLLER))
}

/// How often quotas have stopped this process since its control groups were created. All counts are zero if
/// the system does not report them, but then no quota can be set either.
pub fn cpu_throttling() -> Throttling {
    throttling(&cgroups::own(CONTROLLER))
}

fn quota(groups: &[Group]) -> Option<CpuQuota> {
    let quotas = groups.iter().filter_map(quota_of);
    quotas.min_by_key(|quota| quota.millicpus())
}

fn throttling(groups: &[Group]) -> Throttling {
    let each = groups.iter().filter_map(throttling_of);
    each.max_by_key(|each| each.throttled_ns)
        .unwrap_or_default()
}

fn quota_of(group: &Group) -> Option<CpuQuota> {
    match group.version() {
        Version::Two => parse_cpu_max(&group.read("cpu.max")?),
        Version::One => Some(CpuQuota {
            // Without a quota, the file says -1, which `number` turns into `None`.
            quota_us: group.number("cpu.cfs_quota_us")?,
            period_us: group.number("cpu.cfs_period_us")?,
        }),
    }
}

fn throttling_of(group: &Group) -> Option<Throttling> {
    let stat = group.read("cpu.stat")?;
    let throttled_ns = match group.version() {
        Version::Two => field(&stat, "throttled_usec")?.saturating_mul(1_000),
        Version::One => field(&stat, "throttled_time")?,
    };
    Some(Throttling {
        periods: field(&stat, "nr_periods")?,
        throttled: field(&stat, "nr_throttled")?,
        throttled_ns,
    })
}

/// Parses `max 100000` or `50000 100000`.
fn parse_cpu_max(text: &str) -> Option<CpuQuota> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some(CpuQuota {
        quota_us: quota.parse().ok()?,
        period_us: period.parse().ok()?,
    })
}

/// The name of the control groups' controller for CPU time.
const CONTROLLER: &str = "cpu";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{CONTROLLER, CpuQuota, Throttling, quota, throttling};
    use crate::cgroups::below;

    /// Reads the quota and the throttling from a tree of files.
    fn of(files: &[(&str, &str)]) -> (Option<CpuQuota>, Throttling) {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let (proc, cgroup) = (root.path().join("proc"), root.path().join("cgroup"));
        let groups = below(&proc, &cgroup, CONTROLLER);
        (quota(&groups), throttling(&groups))
    }

    #[test]
    fn a_quota_is_told_from_none() {
        let own = ("proc/self/cgroup", "0::/a\n");
        assert_eq!(of(&[own]), (None, Throttling::default()));
        let (none, _) = of(&[own, ("cgroup/a/cpu.max", "max 100000\n")]);
        assert_eq!(none, None);
        let (half, _) = of(&[own, ("cgroup/a/cpu.max", "50000 100000\n")]);
        let half = half.unwrap();
        assert_eq!((half.quota_us, half.period_us), (50_000, 100_000));
        assert_eq!(half.millicpus(), 500);
    }

    #[test]
    fn the_tightest_quota_and_the_most_stopped_group_count() {
        let (tightest, most) = of(&[
            ("proc/self/cgroup", "1:memory:/x\n0::/pod/container\n"),
            ("cgroup/pod/container/cpu.max", "150000 100000"),
            (
                "cgroup/pod/container/cpu.stat",
                "usage_usec 9\nnr_periods 8\nnr_throttled 1\nthrottled_usec 10\n",
            ),
            ("cgroup/pod/cpu.max", "20000 50000"),
            (
                "cgroup/pod/cpu.stat",
                "usage_usec 9\nnr_periods 7\nnr_throttled 5\nthrottled_usec 3000\n",
            ),
            // The root group has no quota, and counts no stops.
            ("cgroup/cpu.stat", "usage_usec 9\nuser_usec 3\n"),
        ]);
        assert_eq!(tightest.unwrap().millicpus(), 400);
        let pod = Throttling {
            periods: 7,
            throttled: 5,
            throttled_ns: 3_000_000,
        };
        assert_eq!(most, pod);
    }

    #[test]
    fn version_1_counts_in_nanoseconds_and_below_the_mount() {
        let stat = "nr_periods 21\nnr_throttled 20\nthrottled_time 1079593780\n";
        let (quota, throttling) = of(&[
            ("proc/self/cgroup", "4:cpu,cpuacct:/docker/7\n0::/\n"),
            ("cgroup/cpu/cpu.cfs_quota_us", "20000\n"),
            ("cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("cgroup/cpu/cpu.stat", stat),
        ]);
        assert_eq!(quota.unwrap().millicpus(), 200);
        let counted = Throttling {
            periods: 21,
            throttled: 20,
            throttled_ns: 1_079_593_780,
        };
        assert_eq!(throttling, counted);
        let (none, _) = of(&[
            ("proc/self/cgroup", "4:cpu:/\n"),
            ("cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(none, None);
    }

    #[test]
    fn what_happened_before_does_not_count() {
        let earlier = Throttling {
            periods: 5,
            throttled: 2,
            throttled_ns: 10,
        };
        let later = Throttling {
            periods: 9,
            throttled: 2,
            throttled_ns: 15,
        };
        let since = later.since(earlier);
        assert_eq!((since.periods, since.throttled), (4, 0));
        assert_eq!(since.throttled_ns, 5);
    }
}
