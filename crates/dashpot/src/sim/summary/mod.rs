//! The summary of a simulation: latencies at the clients and at the devices, unfinished calls, the
//! I/O of pools, and the admissions of writes.

mod text;

use dashpot_engine::histogram::{Histogram, Moments, upper_bound};
use dashpot_engine::pool::Admissions;
use dashpot_engine::{Duration, Instant, Op};
use dashpot_observe::{Outlasting, Percentiles};
use dashpot_report::amplification::{Levels, Overhead};
use dashpot_sim::scenario::{Load, Target, WorkloadSpec};
use dashpot_sim::{Simulation, Unfinished};
use dashpot_sources::simulated::{PoolSnapshot, call_wait, pools};
use dashpot_text::modes::TwoModes;
use serde::{Serialize, Serializer};

use super::run::Run;

/// JSON: `{"lab": "lab.toml", "seed": 1, "elapsed_ns": …, "warmup_ns": …, "workloads": [workload,
/// …], "pools": [pool, …]}`.
#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) lab: String,
    seed: u64,
    pub(super) elapsed_ns: u64,
    pub(super) warmup_ns: u64,
    pub(super) workloads: Vec<WorkloadSummary>,
    pools: Vec<PoolSummary>,
}

/// JSON: `{"workload": "db", "in_flight": 10, "oldest_ns": …, "oldest_wait": "throttled",
/// "oldest_wait_ns": …, "ops": [operation, …]}`.
#[derive(Serialize)]
pub(super) struct WorkloadSummary {
    pub(super) workload: String,
    /// The number of unfinished calls. Rates and latencies leave unfinished calls out.
    in_flight: usize,
    /// The age of the oldest unfinished call.
    oldest_ns: Option<u64>,
    /// The place at which the oldest unfinished call waits.
    oldest_wait: Option<&'static str>,
    /// How long the oldest unfinished call has waited at that place.
    oldest_wait_ns: Option<u64>,
    /// The word for the workload's target: `the volume`, `the disk` or, if the workload has both, `the
    /// device`.
    #[serde(skip)]
    pub(super) device: &'static str,
    pub(super) ops: Vec<OpSummary>,
}

/// The results of one operation of a workload. JSON: `{"op": "write", "failed": 0, "iops": …,
/// "bytes_per_second": …, "client": latency, "device": latency, "failed_client": null or latency,
/// "in_flight": 10, "outlasting": {…}}`. Apart from `failed_client`, rates and latencies cover only calls
/// that did not fail.
#[derive(Serialize)]
pub(super) struct OpSummary {
    pub(super) op: &'static str,
    failed: u64,
    iops: f64,
    bytes_per_second: f64,
    /// The time from the beginning of a call to its end.
    pub(super) client: Latency,
    /// The time from the submission of a call to the volume or disk until the reply.
    pub(super) device: Latency,
    /// The time from the beginning to the end of the calls that failed.
    failed_client: Option<Latency>,
    in_flight: usize,
    /// How many unfinished calls have already taken longer than all, or nearly all, calls that ended.
    pub(super) outlasting: Outlasting,
}

/// JSON: `{"mean_ns": …, "stddev_ns": …, "n": …, "p50_ns": …, …, "max_ns": …, "modes": null or {…},
/// "histogram": [{"upto_ns": …, "count": …}, …]}`. A bucket counts the values above the `upto_ns` of the
/// bucket before it, up to its own `upto_ns`.
#[derive(Serialize)]
pub(super) struct Latency {
    mean_ns: Option<u64>,
    stddev_ns: Option<u64>,
    #[serde(flatten)]
    percentiles: Percentiles,
    /// The two modes of the latencies; null if the latencies do not have two.
    modes: Option<TwoModes>,
    #[serde(serialize_with = "buckets")]
    pub(super) histogram: Histogram,
}

#[derive(Serialize)]
struct Bucket {
    upto_ns: u64,
    count: u64,
}

/// JSON: `{"pool": "tank", "volumes": traffic, "queued": traffic, "disks": traffic,
/// "amplification": …, "overhead": …, "admissions": …, "dirty_bytes": …, "throttled": …}`.
#[derive(Serialize)]
struct PoolSummary {
    pool: String,
    #[serde(flatten)]
    levels: Levels,
    overhead: Overhead,
    admissions: AdmissionsSummary,
    /// How many bytes, with those of metadata, are dirty at the end of the simulation.
    dirty_bytes: u64,
    /// How many writes the throttle holds back at the end of the simulation.
    throttled: u32,
}

#[derive(Serialize)]
struct AdmissionsSummary {
    assigned: u64,
    dirty_delay: u64,
    dirty_over_max: u64,
    delay: u64,
    write_limit: u64,
}

impl Summary {
    pub(super) fn of(lab: &str, run: &Run<'_>) -> Summary {
        let simulation = &run.simulation;
        let scenario = simulation.scenario();
        let workloads = scenario.workloads.iter().enumerate();
        let workload = |(at, spec)| WorkloadSummary::of(simulation, at, spec);
        let now = pools(simulation);
        Summary {
            lab: lab.to_owned(),
            seed: scenario.seed,
            elapsed_ns: simulation.now().as_nanos(),
            warmup_ns: scenario.warmup.as_nanos(),
            workloads: workloads.map(workload).collect(),
            pools: now.iter().zip(&run.warm).map(PoolSummary::of).collect(),
        }
    }
}

impl WorkloadSummary {
    fn of(simulation: &Simulation, at: usize, spec: &WorkloadSpec) -> WorkloadSummary {
        let now = simulation.now();
        let unfinished: Vec<Unfinished> = simulation.unfinished(at).collect();
        let oldest = unfinished.iter().min_by_key(|call| call.began);
        let wait = oldest.map(|call| call_wait(simulation, call));
        let op = |op| OpSummary::of(simulation, at, spec, op, &unfinished);
        WorkloadSummary {
            workload: spec.name.clone(),
            in_flight: unfinished.len(),
            oldest_ns: oldest.map(|call| now.since(call.began).as_nanos()),
            oldest_wait: wait.as_ref().map(|wait| wait.word),
            oldest_wait_ns: wait.and_then(|wait| Some(now.since(wait.since?).as_nanos())),
            device: device(&spec.load),
            ops: Op::ALL.into_iter().filter_map(op).collect(),
        }
    }
}

impl OpSummary {
    /// `None` if no call of this operation was counted or is in flight.
    fn of(
        simulation: &Simulation,
        at: usize,
        spec: &WorkloadSpec,
        op: Op,
        unfinished: &[Unfinished],
    ) -> Option<OpSummary> {
        let seen = simulation.results(at)?.op(op);
        let own = unfinished.iter().filter(|call| call.op == op);
        let in_flight = own.clone().count();
        if seen.calls == 0 && in_flight == 0 {
            return None;
        }
        let none = Histogram::default();
        let client = seen.at_client.as_deref().unwrap_or(&none);
        let ages = own.map(|call| simulation.now().since(call.began).as_nanos());
        let seconds = active(simulation, spec).as_nanos() as f64 / 1e9;
        let rate = |amount: u64| {
            if seconds > 0.0 {
                amount as f64 / seconds
            } else {
                0.0
            }
        };
        Some(OpSummary {
            op: op.name(),
            failed: seen.failed,
            iops: rate(seen.calls - seen.failed),
            bytes_per_second: rate(seen.bytes),
            client: Latency::of(client),
            device: Latency::of(seen.at_lab.as_deref().unwrap_or(client)),
            failed_client: seen.failed_at_client.as_deref().map(Latency::of),
            in_flight,
            outlasting: Outlasting::of(ages, client),
        })
    }
}

/// The target of a workload, in words.
fn device(load: &Load) -> &'static str {
    let is_volume = |target: Target| matches!(target, Target::Volume(_));
    let (volumes, disks) = match load {
        Load::Closed { calls, .. } | Load::Open { calls, .. } => {
            (is_volume(calls.target), !is_volume(calls.target))
        }
        Load::Trace(entries) => (
            entries.iter().any(|entry| is_volume(entry.target)),
            entries.iter().any(|entry| !is_volume(entry.target)),
        ),
    };
    match (volumes, disks) {
        (true, false) => "the volume",
        (false, true) => "the disk",
        _ => "the device",
    }
}

/// How long a workload ran after the warm-up.
fn active(simulation: &Simulation, spec: &WorkloadSpec) -> Duration {
    let from = Instant::ZERO + simulation.scenario().warmup.max(spec.starts);
    let stops = spec
        .stops
        .map_or(Instant::NEVER, |stops| Instant::ZERO + stops);
    simulation.now().min(stops).since(from)
}

impl Latency {
    fn of(histogram: &Histogram) -> Latency {
        let moments = Moments {
            sum: histogram.sum(),
            sum_of_squares: histogram.sum_of_squares(),
        };
        Latency {
            mean_ns: histogram.mean(),
            stddev_ns: moments.stddev(histogram.count()),
            percentiles: Percentiles::of(histogram),
            modes: TwoModes::of(histogram),
            histogram: histogram.clone(),
        }
    }
}

impl PoolSummary {
    fn of((now, warm): (&PoolSnapshot, &PoolSnapshot)) -> PoolSummary {
        let (stats, before) = (&now.stats, &warm.stats);
        let volumes = stats.volumes.since(before.volumes);
        let queued = stats.queued.since(before.queued);
        let disks = stats.disks.since(before.disks);
        PoolSummary {
            pool: now.name.clone(),
            levels: Levels::of(volumes, queued, disks),
            overhead: Overhead::of(stats.overhead.since(before.overhead)),
            admissions: AdmissionsSummary::between(before.admissions, stats.admissions),
            dirty_bytes: stats.dirty + stats.dirty_metadata,
            throttled: stats.throttled,
        }
    }
}

impl AdmissionsSummary {
    fn between(before: Admissions, now: Admissions) -> AdmissionsSummary {
        AdmissionsSummary {
            assigned: now.assigned - before.assigned,
            dirty_delay: now.dirty_delay - before.dirty_delay,
            dirty_over_max: now.dirty_over_max - before.dirty_over_max,
            delay: now.delay - before.delay,
            write_limit: now.write_limit - before.write_limit,
        }
    }
}

fn buckets<S: Serializer>(histogram: &Histogram, serializer: S) -> Result<S::Ok, S::Error> {
    let bucket = |(bucket, count)| Bucket {
        upto_ns: upper_bound(bucket),
        count,
    };
    serializer.collect_seq(histogram.buckets().map(bucket))
}
