//! The causes of late I/Os on this host: how long a sleeping CPU takes to wake, and how much CPU
//! time this process gets.

use std::fs;
use std::num::NonZeroU64;

use dashpot_api::Host as Cpus;
use dashpot_daemon::host::host_now;
use dashpot_export::now;
use dashpot_rules::{cpus_of, short_time};
use rustix::thread::{ClockId, NanosleepRelativeResult, Timespec, clock_nanosleep_relative};
use serde::Serialize;

/// How many sleeps are measured.
const SLEEPS: usize = 200;
/// The intended length of each sleep, in nanoseconds.
const SLEEP_NS: u64 = 1_000_000;

/// The findings about this host.
#[derive(Debug, Serialize)]
pub(crate) struct Host {
    /// How much longer than 1 ms a sleep of 1 ms takes: the median.
    wake_cost_p50_ns: u64,
    /// How much longer than 1 ms a sleep of 1 ms takes: the 99th percentile.
    wake_cost_p99_ns: u64,
    /// The CPU time of this process. The kernel counts steal since boot, and throttling since the control
    /// group was made.
    #[serde(flatten)]
    cpus: Cpus,
    /// The memory that RAM disks may take.
    memory_bytes: Option<u64>,
    /// Whether this user can read the kernel's own block events.
    tracefs: bool,
}

impl Host {
    pub(crate) fn examine() -> Host {
        let overshoots = measure_sleeps();
        let at = |share: usize| overshoots.get(SLEEPS * share / 100).copied();
        Host {
            wake_cost_p50_ns: at(50).unwrap_or_default(),
            wake_cost_p99_ns: at(99).unwrap_or_default(),
            cpus: host_now(None),
            memory_bytes: dashpot_export::store::available_memory(),
            tracefs: fs::read_dir("/sys/kernel/tracing/events/block").is_ok(),
        }
    }

    /// How much longer than intended the median sleep takes.
    pub(crate) fn wake_cost_p50_ns(&self) -> u64 {
        self.wake_cost_p50_ns
    }

    /// The CPU time that a daemon would get here.
    pub(crate) fn cpus(&self) -> &Cpus {
        &self.cpus
    }

    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let rows = [
            self.wake_cost(),
            self.cpu(),
            self.steal(),
            self.quota(),
            self.throttling(),
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
        let cpus = self.cpus.cpus;
        let meaning = if cpus > 1 {
            "disks and their clients need not share one"
        } else {
            "disks and their clients share it, and wait for each other"
        };
        ["CPUs".to_owned(), cpus.to_string(), meaning.to_owned()]
    }

    fn steal(&self) -> [String; 3] {
        let (value, meaning) = match self.cpus.steal_percent {
            Some(steal) if steal >= 1.0 => (
                format!("{steal:.1} % of the CPU time"),
                "the hypervisor gives it to other machines: expect late replies",
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
        let (value, meaning) = match self.cpus.quota_millicpus {
            Some(quota) => (
                cpus_of(quota),
                "beyond it the kernel stops all threads until the period ends; shards do not spin",
            ),
            None => (
                "none".to_owned(),
                "the kernel does not stop dashpot for using the CPU",
            ),
        };
        ["CPU quota".to_owned(), value, meaning.to_owned()]
    }

    fn throttling(&self) -> [String; 3] {
        let Cpus {
            quota_periods,
            throttled_periods,
            throttled_ns,
            ..
        } = self.cpus;
        let (value, meaning) = if throttled_periods > 0 {
            (
                format!("{throttled_periods} of {quota_periods} periods"),
                format!(
                    "the kernel stopped dashpot for {} in all: expect late replies",
                    short_time(throttled_ns)
                ),
            )
        } else {
            ("never".to_owned(), "no cause of lateness".to_owned())
        };
        ["throttled".to_owned(), value, meaning]
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
                "the kernel's own disks stay unseen; seeing them needs root and a mounted tracefs",
            )
        };
        ["tracefs".to_owned(), value.to_owned(), meaning.to_owned()]
    }
}

/// How much longer than 1 ms the median sleep of 1 ms takes.
pub fn median_oversleep() -> Option<u64> {
    measure_sleeps().get(SLEEPS / 2).copied()
}

/// How much longer than intended each sleep took, sorted.
fn measure_sleeps() -> Vec<u64> {
    // If the slack cannot be set, the default of 50 us applies to the measurement, as it does to a daemon.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let request = Timespec {
        tv_sec: 0,
        tv_nsec: SLEEP_NS as i64,
    };
    let mut overshoots = Vec::with_capacity(SLEEPS);
    while overshoots.len() < SLEEPS {
        let start = now().as_nanos();
        match clock_nanosleep_relative(ClockId::Monotonic, &request) {
            NanosleepRelativeResult::Ok => {
                overshoots.push((now().as_nanos() - start).saturating_sub(SLEEP_NS));
            }
            NanosleepRelativeResult::Interrupted(_) => {}
            NanosleepRelativeResult::Err(_) => break,
        }
    }
    overshoots.sort_unstable();
    overshoots
}
