//! One frame: the state of the disks at a moment, from any source.

use std::collections::BTreeMap;

use dashpot_api::{Promise, Rule, Shard};
use dashpot_engine::pool::{ThrottleLevel, Traffic, TxgStats};
use dashpot_engine::{Duration, Instant, Op};
use dashpot_observe::{Counts, DeviceInterval, InFlight, Layer, Length, OpInterval, percentile};
use dashpot_text::heatmap::HeatColumn;

/// A frame. If the frame ends an interval, it also has the figures of that interval.
#[derive(Clone, Default)]
pub(crate) struct Frame {
    pub(crate) disks: Vec<DiskFrame>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) shards: Vec<Shard>,
    /// The promises that do not hold, or that may not hold.
    pub(crate) promises: Vec<Promise>,
    /// Other facts that distort the figures.
    pub(crate) notes: Vec<String>,
    /// Whether the daemon was started again since the last frame.
    pub(crate) restarted: bool,
    /// The pools of the frame's volumes and disks.
    pub(crate) pools: Vec<PoolFrame>,
    pub(crate) moment: Option<Moment>,
}

/// The progress of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    pub(crate) lasts: Duration,
}

/// A disk, a volume, or a device of the kernel.
#[derive(Clone, Default)]
pub(crate) struct DiskFrame {
    pub(crate) name: String,
    pub(crate) layer: Layer,
    /// The pool that the device belongs to, if there is one.
    pub(crate) pool: Option<String>,
    pub(crate) store: String,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) clients: Vec<ClientFrame>,
    pub(crate) in_flight: u64,
    pub(crate) oldest_ns: Option<u64>,
    /// Why the oldest zio waits.
    pub(crate) wait: Option<String>,
    pub(crate) done: Option<Done>,
}

/// A pool, and the state of its throttle.
#[derive(Clone)]
pub(crate) struct PoolFrame {
    pub(crate) name: String,
    /// The throttle, by its name in lab files.
    pub(crate) throttle: &'static str,
    /// Acknowledged bytes that are not yet on the disks.
    pub(crate) dirty: u64,
    pub(crate) level: ThrottleLevel,
    /// How many writes wait for admission.
    pub(crate) throttled: u32,
    /// The writes of clients in the last interval, if one has ended: operations and bytes per second.
    pub(crate) written: Option<(f64, f64)>,
    /// Transaction groups, the newest first.
    pub(crate) txgs: Vec<TxgStats>,
}

/// Problems of a disk, the worst first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    /// The kernel no longer has the device.
    Vanished,
    Failed(String),
    Faulted(String),
    Suspended {
        age_ns: u64,
        left_ns: Option<u64>,
    },
    Stalled(u32),
    ReadOnly,
}

/// A client of a daemon, or a process that uses the kernel's disks.
#[derive(Clone, Default)]
pub(crate) struct ClientFrame {
    pub(crate) name: String,
    pub(crate) connections: Option<u32>,
    /// The I/Os per second in the interval, if the source counts by client.
    pub(crate) per_second: Option<f64>,
    pub(crate) p99_ns: Option<u64>,
}

/// The I/O of a disk in an interval.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    pub(crate) flushes: f64,
    /// All operations per second, including trims.
    pub(crate) all: f64,
    pub(crate) kilobytes: f64,
    /// The largest number of I/Os that were in flight at once, if the source knows it.
    pub(crate) deepest: Option<u32>,
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    pub(crate) max_ns: Option<u64>,
    pub(crate) heat: HeatColumn,
}

/// The clients' writes per second: operations and bytes, zeroes and trims included, as `zpool-iostat` and
/// `amplification` count them. `None` if no time has passed.
pub(crate) fn written(done: Traffic, elapsed: std::time::Duration) -> Option<(f64, f64)> {
    let seconds = Some(elapsed.as_secs_f64()).filter(|seconds| *seconds > 0.0)?;
    Some((
        done.writes as f64 / seconds,
        done.bytes_written as f64 / seconds,
    ))
}

/// A frame has at most this many transaction groups of a pool: first the live groups, then the latest groups
/// on the disks.
pub(crate) const TXGS_MAX: usize = 6;

impl Done {
    /// The rates and latencies of a disk in an interval. The latencies are those at the disk, and include
    /// holds. `None` if no time has passed.
    pub(crate) fn of(interval: &DeviceInterval) -> Option<Done> {
        let elapsed = interval.elapsed;
        let seconds = Some(elapsed.as_secs_f64()).filter(|seconds| *seconds > 0.0)?;
        let ops = || interval.ops.iter();
        let rate = |ops: &mut dyn Iterator<Item = &OpInterval>| {
            ops.map(|op| op.counts.completed).sum::<u64>() as f64 / seconds
        };
        let rate_of = |wanted: &[Op]| rate(&mut ops().filter(|op| op.kind.is_any(wanted)));
        let bytes: u64 = ops().map(|op| op.counts.bytes).sum();
        let latencies = interval.latencies();
        Some(Done {
            reads: rate_of(&[Op::Read]),
            writes: rate_of(&[Op::Write, Op::Zero]),
            flushes: rate_of(&[Op::Flush, Op::Sync]),
            all: rate(&mut ops()),
            kilobytes: bytes as f64 / 1_024.0 / seconds,
            deepest: interval.depths.as_ref().map(|depths| depths.summary().most),
            p50_ns: percentile(&latencies, 500_000),
            p99_ns: percentile(&latencies, 990_000),
            max_ns: latencies.max(),
            heat: HeatColumn::new(&latencies, 0, elapsed, InFlight::default()),
        })
    }
}

impl ClientFrame {
    /// The I/O of each client in an interval, the busiest client first.
    pub(crate) fn all(interval: &DeviceInterval) -> Vec<ClientFrame> {
        let seconds = interval.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let mut counted: BTreeMap<&str, Counts> = BTreeMap::new();
        for op in &interval.ops {
            if let Some(by) = &op.by {
                counted.entry(by).or_default().merge(&op.counts);
            }
        }
        let client = |(name, counts): (&str, Counts)| ClientFrame {
            name: name.to_owned(),
            connections: None,
            per_second: Some(counts.completed as f64 / seconds),
            p99_ns: counts
                .disk
                .and_then(|latencies| percentile(&latencies, 990_000)),
        };
        let mut all: Vec<ClientFrame> = counted.into_iter().map(client).collect();
        all.sort_by(|a, b| {
            f64::total_cmp(&b.per_second.unwrap_or(0.0), &a.per_second.unwrap_or(0.0))
        });
        all
    }
}

impl Condition {
    /// The word for the condition in a table.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Condition::Vanished => "vanished",
            Condition::Failed(_) => "failed",
            Condition::Faulted(_) => "faulted",
            Condition::Suspended { .. } => "suspended",
            Condition::Stalled(_) => "stalled",
            Condition::ReadOnly => "read-only",
        }
    }
}

impl Moment {
    pub(crate) fn is_over(&self) -> bool {
        self.at >= Instant::ZERO + self.lasts
    }
}

impl Frame {
    /// Adds a note if the length of the interval is off by too much, or if the interval replaces missed ones.
    pub(crate) fn check_length(&mut self, asked: std::time::Duration, missed: u64) {
        let done = self.disks.iter().filter_map(|disk| disk.done.as_ref());
        let elapsed = done.map(|done| done.heat.elapsed).max();
        let length = elapsed.map(|elapsed| Length {
            elapsed,
            asked: Some(asked),
            missed,
            ..Length::default()
        });
        self.notes.extend(length.and_then(|length| length.line()));
    }

    /// Whether this is the last frame of a simulation.
    pub(crate) fn is_last(&self) -> bool {
        self.moment.is_some_and(|moment| moment.is_over())
    }
}

impl DiskFrame {
    pub(crate) fn is_suspended(&self) -> bool {
        let suspended = |one: &Condition| matches!(one, Condition::Suspended { .. });
        self.conditions.iter().any(suspended)
    }
}
