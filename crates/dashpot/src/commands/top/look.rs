//! What one look at the disks has seen, whoever was asked.

use std::time::Duration;

use dashpot_engine::histogram::Histogram;

use crate::api::types::{Rule, Shard};
use crate::observe::DeviceInterval;
use crate::promises::Promise;
use crate::report::percentiles::percentile;

/// A look. Figures of an interval are in it if it ends one.
#[derive(Clone, Default)]
pub(super) struct Look {
    pub(super) disks: Vec<DiskLook>,
    pub(super) rules: Vec<Rule>,
    pub(super) shards: Vec<Shard>,
    /// Those that do not hold, or may not.
    pub(super) promises: Vec<Promise>,
    /// What else distorts the figures.
    pub(super) notes: Vec<String>,
    /// Whether what was counted before is of another life of the daemon.
    pub(super) restarted: bool,
}

/// A disk, a volume, or a device of the kernel.
#[derive(Clone, Default)]
pub(super) struct DiskLook {
    pub(super) name: String,
    pub(super) store: String,
    pub(super) conditions: Vec<Condition>,
    pub(super) clients: Vec<ClientLook>,
    pub(super) in_flight: u64,
    pub(super) oldest_ns: Option<u64>,
    /// Where the oldest waits.
    pub(super) wait: Option<String>,
    pub(super) done: Option<Done>,
}

/// What is not as it should be, the worst first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Condition {
    Failed(String),
    Faulted(String),
    Suspended { age_ns: u64, left_ns: Option<u64> },
    Stalled(u32),
    ReadOnly,
}

/// Who asks.
#[derive(Clone, Default)]
pub(super) struct ClientLook {
    pub(super) name: String,
    pub(super) connections: u32,
    /// Of the interval, if somebody counts by client.
    pub(super) per_second: Option<f64>,
    pub(super) p99_ns: Option<u64>,
}

/// What a disk has done in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Done {
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) flushes: f64,
    /// With trims and what else there is.
    pub(super) all: f64,
    pub(super) kilobytes: f64,
    pub(super) p50_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
    /// The occupied buckets of its latencies.
    pub(super) buckets: Vec<(usize, u64)>,
    pub(super) elapsed: Duration,
}

impl Done {
    /// The rates and latencies of an interval; latencies are of the disk, hold included.
    pub(super) fn of(interval: &DeviceInterval) -> Done {
        let seconds = interval.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let count = |names: &[&str]| {
            let ops = interval.ops.iter();
            let named = ops.filter(|op| names.is_empty() || names.contains(&op.op.as_str()));
            named.map(|op| op.completed).sum::<u64>() as f64 / seconds
        };
        let bytes: u64 = interval.ops.iter().map(|op| op.bytes).sum();
        let mut latencies = Histogram::default();
        interval.ops.iter().for_each(|op| latencies.merge(&op.disk));
        Done {
            reads: count(&["read"]),
            writes: count(&["write", "zero"]),
            flushes: count(&["flush"]),
            all: count(&[]),
            kilobytes: bytes as f64 / 1_024.0 / seconds,
            p50_ns: percentile(&latencies, 500_000),
            p99_ns: percentile(&latencies, 990_000),
            max_ns: latencies.max(),
            buckets: latencies.buckets().collect(),
            elapsed: interval.elapsed,
        }
    }
}

impl Condition {
    /// For a table.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Condition::Failed(_) => "failed",
            Condition::Faulted(_) => "faulted",
            Condition::Suspended { .. } => "suspended",
            Condition::Stalled(_) => "stalled",
            Condition::ReadOnly => "read-only",
        }
    }
}

impl DiskLook {
    pub(super) fn is_suspended(&self) -> bool {
        let suspended = |one: &Condition| matches!(one, Condition::Suspended { .. });
        self.conditions.iter().any(suspended)
    }
}
