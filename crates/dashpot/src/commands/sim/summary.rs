//! What came of a simulation: latencies at the clients and at the devices, what pools made of it,
//! and how writes were admitted.

use dashpot_engine::histogram::{Histogram, Moments, upper_bound};
use dashpot_engine::pool::{Admissions, Traffic};
use dashpot_engine::{Duration, Instant, Op};
use dashpot_sim::Simulation;
use dashpot_sim::scenario::WorkloadSpec;
use serde::{Serialize, Serializer};

use super::look::{PoolLook, pools, traffic_since};
use super::run::Run;
use crate::report::nice::short_time;
use crate::report::percentiles::Percentiles;
use crate::report::table::{Column, table, time_or_dash};

/// JSON: `{"lab": "lab.toml", "seed": 1, "elapsed_ns": …, "warmup_ns": …, "workloads": [workload,
/// …], "pools": [pool, …]}`.
#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) lab: String,
    seed: u64,
    elapsed_ns: u64,
    warmup_ns: u64,
    pub(super) workloads: Vec<WorkloadSummary>,
    pools: Vec<PoolSummary>,
}

/// JSON: `{"workload": "db", "in_flight": 10, "oldest_ns": …, "ops": [operation, …]}`.
#[derive(Serialize)]
pub(super) struct WorkloadSummary {
    pub(super) workload: String,
    /// Calls that have not ended, and are in no number.
    in_flight: usize,
    /// How long the first of them has taken so far.
    oldest_ns: Option<u64>,
    pub(super) ops: Vec<OpSummary>,
}

/// What a workload saw of one operation. JSON: `{"op": "write", "failed": 0, "iops": …,
/// "bytes_per_second": …, "client": latency, "device": latency}`.
#[derive(Serialize)]
pub(super) struct OpSummary {
    pub(super) op: &'static str,
    failed: u64,
    iops: f64,
    bytes_per_second: f64,
    /// From the beginning of a call to its end.
    pub(super) client: Latency,
    /// From its submission to the volume or disk to the reply.
    device: Latency,
}

/// JSON: `{"mean_ns": …, "stddev_ns": …, "n": …, "p50_ns": …, …, "max_ns": …, "histogram":
/// [{"upto_ns": …, "count": …}, …]}`. A bucket reaches from above the one before up to `upto_ns`.
#[derive(Serialize)]
pub(super) struct Latency {
    mean_ns: Option<u64>,
    stddev_ns: Option<u64>,
    #[serde(flatten)]
    percentiles: Percentiles,
    #[serde(serialize_with = "buckets")]
    pub(super) histogram: Histogram,
}

#[derive(Serialize)]
struct Bucket {
    upto_ns: u64,
    count: u64,
}

/// JSON: `{"pool": "tank", "volumes": traffic, "queued": traffic, "disks": traffic,
/// "amplification": …, "admissions": …, "dirty_bytes": …, "throttled": …}`.
#[derive(Serialize)]
struct PoolSummary {
    pool: String,
    volumes: TrafficSummary,
    queued: TrafficSummary,
    disks: TrafficSummary,
    /// Before zios were joined.
    amplification_queued: Amplification,
    /// After.
    amplification: Amplification,
    admissions: AdmissionsSummary,
    /// At the end.
    dirty_bytes: u64,
    /// Writes that wait at the end.
    throttled: u32,
}

#[derive(Clone, Copy, Serialize)]
struct TrafficSummary {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
}

/// Operations and bytes below for each one above; null where there was none above.
#[derive(Clone, Copy, Serialize)]
struct Amplification {
    reads: Option<f64>,
    read_bytes: Option<f64>,
    writes: Option<f64>,
    written_bytes: Option<f64>,
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
        let (in_flight, oldest) = simulation.in_flight(at);
        let op = |op| OpSummary::of(simulation, at, spec, op);
        WorkloadSummary {
            workload: spec.name.clone(),
            in_flight,
            oldest_ns: oldest.map(|began| simulation.now().since(began).as_nanos()),
            ops: Op::ALL.into_iter().filter_map(op).collect(),
        }
    }
}

impl OpSummary {
    /// Nothing, if no call of this operation has ended.
    fn of(simulation: &Simulation, at: usize, spec: &WorkloadSpec, op: Op) -> Option<OpSummary> {
        let seen = simulation.results(at)?.op(op);
        let client = seen.at_client.as_deref()?;
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
            iops: rate(seen.calls),
            bytes_per_second: rate(seen.bytes),
            client: Latency::of(client),
            device: Latency::of(seen.at_lab.as_deref().unwrap_or(client)),
        })
    }
}

/// How long a workload was at work after the warm-up.
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
            histogram: histogram.clone(),
        }
    }
}

impl PoolSummary {
    fn of((now, warm): (&PoolLook, &PoolLook)) -> PoolSummary {
        let (stats, before) = (&now.stats, &warm.stats);
        let volumes = traffic_since(stats.volumes, before.volumes);
        let queued = traffic_since(stats.queued, before.queued);
        let disks = traffic_since(stats.disks, before.disks);
        PoolSummary {
            pool: now.name.clone(),
            volumes: TrafficSummary::of(volumes),
            queued: TrafficSummary::of(queued),
            disks: TrafficSummary::of(disks),
            amplification_queued: Amplification::of(queued, volumes),
            amplification: Amplification::of(disks, volumes),
            admissions: AdmissionsSummary::between(before.admissions, stats.admissions),
            dirty_bytes: stats.dirty,
            throttled: stats.throttled,
        }
    }
}

impl TrafficSummary {
    fn of(traffic: Traffic) -> TrafficSummary {
        TrafficSummary {
            reads: traffic.reads,
            read_bytes: traffic.bytes_read,
            writes: traffic.writes,
            written_bytes: traffic.bytes_written,
        }
    }
}

impl Amplification {
    fn of(below: Traffic, above: Traffic) -> Amplification {
        let ratio = |below: u64, above: u64| (above > 0).then(|| below as f64 / above as f64);
        Amplification {
            reads: ratio(below.reads, above.reads),
            read_bytes: ratio(below.bytes_read, above.bytes_read),
            writes: ratio(below.writes, above.writes),
            written_bytes: ratio(below.bytes_written, above.bytes_written),
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

impl Summary {
    pub(super) fn text(&self) -> String {
        let (elapsed, warmup) = (Duration::from_nanos(self.elapsed_ns), self.warmup_ns);
        let mut text = format!("{}: {elapsed}, seed {}", self.lab, self.seed);
        if warmup > 0 {
            text += &format!(", counted from {} on", Duration::from_nanos(warmup));
        }
        text += "\n\n";
        text += &self.latencies();
        text.extend(self.workloads.iter().filter_map(WorkloadSummary::waiting));
        if !self.pools.is_empty() {
            text += &format!("\n{}\n{}", self.traffic(), self.admissions());
        }
        text
    }

    fn latencies(&self) -> String {
        let columns = [
            Column::Text("workload"),
            Column::Text("op"),
            Column::Text("at"),
            Column::Figure("n"),
            Column::Figure("iops"),
            Column::Figure("MiB/s"),
            Column::Figure("mean"),
            Column::Figure("stddev"),
            Column::Figure("p50"),
            Column::Figure("p99"),
            Column::Figure("p99.9"),
            Column::Figure("max"),
        ];
        table(
            &columns,
            self.workloads.iter().flat_map(WorkloadSummary::rows),
        )
    }

    fn traffic(&self) -> String {
        let columns = [
            Column::Text("pool"),
            Column::Text("at"),
            Column::Figure("reads"),
            Column::Figure("MiB"),
            Column::Figure("writes"),
            Column::Figure("MiB"),
            Column::Figure("reads per read"),
            Column::Figure("bytes"),
            Column::Figure("writes per write"),
            Column::Figure("bytes"),
        ];
        table(&columns, self.pools.iter().flat_map(PoolSummary::rows))
    }

    fn admissions(&self) -> String {
        let columns = [
            Column::Text("pool"),
            Column::Figure("assigned"),
            Column::Figure("dirty_delay"),
            Column::Figure("dirty_over_max"),
            Column::Figure("delay"),
            Column::Figure("write_limit"),
            Column::Figure("dirty at the end"),
            Column::Figure("waiting"),
        ];
        let row = |pool: &PoolSummary| {
            let admissions = &pool.admissions;
            vec![
                pool.pool.clone(),
                admissions.assigned.to_string(),
                admissions.dirty_delay.to_string(),
                admissions.dirty_over_max.to_string(),
                admissions.delay.to_string(),
                admissions.write_limit.to_string(),
                format!("{:.1} MiB", mebibytes(pool.dirty_bytes)),
                pool.throttled.to_string(),
            ]
        };
        table(&columns, self.pools.iter().map(row))
    }
}

impl WorkloadSummary {
    fn rows(&self) -> Vec<Vec<String>> {
        let rows = |op: &OpSummary| {
            let at_client = op.row(&self.workload, "client", &op.client);
            [at_client, op.row(&self.workload, "device", &op.device)]
        };
        self.ops.iter().flat_map(rows).collect()
    }

    /// What no number knows of.
    fn waiting(&self) -> Option<String> {
        let oldest = short_time(self.oldest_ns?);
        let (name, calls) = (&self.workload, self.in_flight);
        Some(format!(
            "In flight of {name}: {calls}, the oldest for {oldest}.\n"
        ))
    }
}

impl OpSummary {
    fn row(&self, workload: &str, at: &str, latency: &Latency) -> Vec<String> {
        let percentiles = &latency.percentiles;
        let figures = [
            latency.mean_ns,
            latency.stddev_ns,
            percentiles.p50_ns,
            percentiles.p99_ns,
            percentiles.p99_9_ns,
            percentiles.max_ns,
        ];
        let mut row = vec![
            workload.to_owned(),
            self.op.to_owned(),
            at.to_owned(),
            percentiles.n.to_string(),
            format!("{:.0}", self.iops),
            format!("{:.1}", self.bytes_per_second / f64::from(1 << 20)),
        ];
        row.extend(figures.map(time_or_dash));
        row
    }
}

impl PoolSummary {
    fn rows(&self) -> [Vec<String>; 3] {
        let ratio =
            |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let row = |at: &str, traffic: TrafficSummary, times: Option<Amplification>| {
            let mut row = vec![
                self.pool.clone(),
                at.to_owned(),
                traffic.reads.to_string(),
                format!("{:.1}", mebibytes(traffic.read_bytes)),
                traffic.writes.to_string(),
                format!("{:.1}", mebibytes(traffic.written_bytes)),
            ];
            if let Some(times) = times {
                let times = [
                    times.reads,
                    times.read_bytes,
                    times.writes,
                    times.written_bytes,
                ];
                row.extend(times.map(ratio));
            }
            row
        };
        [
            row("volumes", self.volumes, None),
            row("queues", self.queued, Some(self.amplification_queued)),
            row("disks", self.disks, Some(self.amplification)),
        ]
    }
}

fn buckets<S: Serializer>(histogram: &Histogram, serializer: S) -> Result<S::Ok, S::Error> {
    let bucket = |(bucket, count)| Bucket {
        upto_ns: upper_bound(bucket),
        count,
    };
    serializer.collect_seq(histogram.buckets().map(bucket))
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
