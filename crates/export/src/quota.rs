//! The CPU quota that is in force for this process, if there is one.

use std::fs;
use std::path::{Path, PathBuf};

/// A bound on CPU time: so many microseconds of each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    /// CPU time of each period, over all CPUs.
    pub quota_us: u64,
    /// The period.
    pub period_us: u64,
}

/// The tightest quota of this process's control groups, version 2.
pub fn cpu_quota() -> Option<CpuQuota> {
    let quotas = control_groups().into_iter().filter_map(|group| {
        let text = fs::read_to_string(group.join("cpu.max")).ok()?;
        parse_cpu_max(&text)
    });
    quotas.min_by_key(|quota| quota.quota_us * 1_000_000 / quota.period_us.max(1))
}

/// The group of this process, and all above it.
fn control_groups() -> Vec<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let root = Path::new("/sys/fs/cgroup");
    let own = root.join(own.unwrap_or_default());
    let within = |group: &&Path| group.starts_with(root);
    own.ancestors()
        .take_while(within)
        .map(Path::to_owned)
        .collect()
}

/// `max 100000` or `50000 100000`.
fn parse_cpu_max(text: &str) -> Option<CpuQuota> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some(CpuQuota {
        quota_us: quota.parse().ok()?,
        period_us: period.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::{CpuQuota, parse_cpu_max};

    #[test]
    fn a_quota_is_told_from_none() {
        assert_eq!(parse_cpu_max("max 100000\n"), None);
        let half = CpuQuota {
            quota_us: 50_000,
            period_us: 100_000,
        };
        assert_eq!(parse_cpu_max("50000 100000\n"), Some(half));
        assert_eq!(parse_cpu_max(""), None);
    }
}
