//! What decides how late a delayed I/O is: how long a sleeping CPU takes to wake, and how much of
//! the CPU this process gets.

use std::fs;
use std::num::NonZeroU64;
use std::path::Path;

use rustix::thread::{ClockId, NanosleepRelativeResult, Timespec, clock_nanosleep_relative};
use rustix::time::clock_gettime;
use serde::Serialize;

/// Sleeps that are measured, and how long each is meant to be.
const SLEEPS: usize = 200;
const SLEEP_NS: u64 = 1_000_000;

const CGROUPS: &str = "/sys/fs/cgroup";

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Host {
    /// How much longer than 1 ms a sleep of 1 ms is: the median and the 99th percentile.
    wake_cost_p50_ns: u64,
    wake_cost_p99_ns: u64,
    /// CPUs that this process may use.
    cpus: usize,
    /// The share of CPU time since the boot that the hypervisor gave to others, in percent.
    steal_percent: Option<f64>,
    /// CPUs that the quota of a cgroup amounts to, if there is one.
    quota_cpus: Option<f64>,
    /// Memory that RAM disks may take.
    memory_bytes: Option<u64>,
    /// Whether the kernel's own block events can be read.
    tracefs: bool,
}

impl Host {
    pub(super) fn examine() -> Host {
        let overshoots = measure_sleeps();
        let at = |share: usize| overshoots.get(SLEEPS * share / 100).copied();
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Host {
            wake_cost_p50_ns: at(50).unwrap_or_default(),
            wake_cost_p99_ns: at(99).unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get()),
            steal_percent: steal_percent(&stat),
            quota_cpus: quota_cpus(&groups, Path::new(CGROUPS)),
            memory_bytes: dashpot_export::store::available_memory(),
            tracefs: fs::read_dir("/sys/kernel/tracing/events/block").is_ok(),
        }
    }

    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let rows = [
            self.wake_cost(),
            self.cpu(),
            self.steal(),
            self.quota(),
            self.memory(),
            self.tracing(),
        ];
        rows.map(|row| row.map(Into::into).to_vec()).to_vec()
    }

    fn wake_cost(&self) -> [String; 3] {
        let us = |ns: u64| format!("{:.0} us", ns as f64 / 1e3);
        let (p50, p99) = (us(self.wake_cost_p50_ns), us(self.wake_cost_p99_ns));
        [
            "wake cost".to_owned(),
            format!("{p50}, p99 {p99}"),
            format!("a delay ends about {p50} late, and one in a hundred {p99}"),
        ]
    }

    fn cpu(&self) -> [String; 3] {
        let meaning = if self.cpus > 1 {
            "disks and their clients need not share one"
        } else {
            "disks and their clients share it, and wait for each other"
        };
        ["CPUs".to_owned(), self.cpus.to_string(), meaning.to_owned()]
    }

    fn steal(&self) -> [String; 3] {
        let (value, meaning) = match self.steal_percent {
            Some(steal) if steal >= 1.0 => (
                format!("{steal:.1} % of the CPU time"),
                "the hypervisor runs others meanwhile: expect late replies",
            ),
            Some(steal) => (
                format!("{steal:.1} % of the CPU time"),
                "no cause of lateness",
            ),
            None => ("unknown".to_owned(), "/proc/stat does not say"),
        };
        ["steal".to_owned(), value, meaning.to_owned()]
    }

    fn quota(&self) -> [String; 3] {
        let (value, meaning) = match self.quota_cpus {
            Some(cpus) => (
                format!("{cpus:.2} CPUs"),
                "beyond it the kernel stops every thread for up to 100 ms",
            ),
            None => ("none".to_owned(), "nobody stops dashpot for using the CPU"),
        };
        ["CPU quota".to_owned(), value, meaning.to_owned()]
    }

    fn memory(&self) -> [String; 3] {
        let value = match self.memory_bytes {
            Some(bytes) => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
            None => "unknown".to_owned(),
        };
        [
            "memory".to_owned(),
            value,
            "RAM disks beyond it are refused, unless --overcommit".to_owned(),
        ]
    }

    fn tracing(&self) -> [String; 3] {
        let (value, meaning) = if self.tracefs {
            ("readable", "the kernel's own block events can be seen")
        } else {
            (
                "not readable",
                "the kernel's own disks stay unseen; it takes root and a mounted tracefs",
            )
        };
        ["tracefs".to_owned(), value.to_owned(), meaning.to_owned()]
    }
}

/// How much longer than asked for sleeps were, in order.
fn measure_sleeps() -> Vec<u64> {
    // Where slack cannot be set the default of 50 us is measured, and is what there is.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let request = Timespec {
        tv_sec: 0,
        tv_nsec: SLEEP_NS as i64,
    };
    let mut overshoots = Vec::with_capacity(SLEEPS);
    while overshoots.len() < SLEEPS {
        let start = now_ns();
        match clock_nanosleep_relative(ClockId::Monotonic, &request) {
            NanosleepRelativeResult::Ok => {
                overshoots.push((now_ns() - start).saturating_sub(SLEEP_NS));
            }
            NanosleepRelativeResult::Interrupted(_) => {}
            NanosleepRelativeResult::Err(_) => break,
        }
    }
    overshoots.sort_unstable();
    overshoots
}

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The share of steal in the first line of `/proc/stat`: user, nice, system, idle, iowait, irq,
/// softirq, steal; what follows is part of user and nice.
fn steal_percent(stat: &str) -> Option<f64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let total: u64 = times.iter().sum();
    let steal = *times.get(7)?;
    (total > 0).then(|| steal as f64 * 100.0 / total as f64)
}

/// The smallest quota of this process's cgroup and those around it.
fn quota_cpus(groups: &str, root: &Path) -> Option<f64> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let place = root.join(group);
    let inside = place
        .ancestors()
        .take_while(|place| place.starts_with(root));
    let quotas = inside.filter_map(|place| {
        let text = fs::read_to_string(place.join("cpu.max")).ok()?;
        let (quota, period) = text.trim().split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    quotas.reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::{quota_cpus, steal_percent};

    #[test]
    fn steal_is_the_eighth_figure() {
        let stat = "cpu  50 0 20 10 5 5 0 10 999 999\ncpu0 1 2 3\n";
        assert_eq!(steal_percent(stat), Some(10.0));
        assert_eq!(steal_percent("cpu  1 2 3\n"), None);
        assert_eq!(steal_percent(""), None);
    }

    #[test]
    fn the_tightest_quota_around_counts() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("pod/container");
        std::fs::create_dir_all(&place).unwrap();
        let quota = || quota_cpus("1:cpu:/x\n0::/pod/container\n", root.path());
        assert_eq!(quota(), None);
        std::fs::write(place.join("cpu.max"), "max 100000\n").unwrap();
        assert_eq!(quota(), None);
        std::fs::write(root.path().join("pod/cpu.max"), "150000 100000\n").unwrap();
        assert_eq!(quota(), Some(1.5));
        std::fs::write(place.join("cpu.max"), "50000 100000\n").unwrap();
        assert_eq!(quota(), Some(0.5));
    }
}
