//! The summary as text: tables, followed by notes on what the figures leave out.

use dashpot_engine::Duration;
use dashpot_observe::plural;
use dashpot_report::amplification::Ratios;
use dashpot_rules::{nice_number, short_time, thousands};
use dashpot_text::table::{Column, Room, prose_within, table_within, time_or_dash};

use super::{Latency, OpSummary, PoolSummary, Summary, WorkloadSummary};

impl Summary {
    /// The summary as tables and sentences that fit the screen.
    pub(crate) fn text(&self, room: Room) -> String {
        let (elapsed, warmup) = (Duration::from_nanos(self.elapsed_ns), self.warmup_ns);
        let mut text = format!("{}: {elapsed}, seed {}", self.lab, self.seed);
        if warmup > 0 {
            text += &format!(", counted from {} on", Duration::from_nanos(warmup));
        }
        text = prose_within(room, &text);
        text += &format!("\n{}\n{}", self.calls(room), self.latencies(room));
        let diagnoses = self.workloads.iter().map(WorkloadSummary::diagnoses);
        text += &prose_within(room, &diagnoses.collect::<String>());
        if !self.pools.is_empty() {
            let reads = self
                .pools
                .iter()
                .map(|pool| pool.levels.reads_of_writes(&pool.pool));
            text += &format!("\n{}", self.traffic(room));
            text += &prose_within(room, &reads.collect::<String>());
            text += &format!("\n{}", self.admissions(room));
        }
        text
    }

    fn calls(&self, room: Room) -> String {
        let columns = [
            Column::Text("workload"),
            Column::Text("op"),
            Column::Figure("ended"),
            Column::Figure("failed"),
            Column::Figure("share"),
            Column::Figure("in flight"),
            Column::Figure("iops"),
            Column::Figure("MiB/s"),
        ];
        let rows = |workload: &'_ WorkloadSummary| -> Vec<Vec<String>> {
            let ops = workload.ops.iter();
            ops.map(|op| op.calls_row(&workload.workload)).collect()
        };
        table_within(room, &columns, self.workloads.iter().flat_map(rows))
    }

    fn latencies(&self, room: Room) -> String {
        let columns = [
            Column::Text("workload"),
            Column::Text("op"),
            Column::Text("at"),
            Column::Figure("mean"),
            Column::Figure("stddev"),
            Column::Figure("p50"),
            Column::Figure("p99"),
            Column::Figure("p99.9"),
            Column::Figure("max"),
        ];
        table_within(
            room,
            &columns,
            self.workloads.iter().flat_map(WorkloadSummary::rows),
        )
    }

    fn traffic(&self, room: Room) -> String {
        let columns = [
            Column::Text("pool"),
            Column::Text("at"),
            Column::Figure("reads"),
            Column::Figure("MiB"),
            Column::Figure("writes"),
            Column::Figure("MiB"),
            // These columns are ratios to the requests that clients sent to the volumes.
            Column::Figure("×reads"),
            Column::Figure("×MiB"),
            Column::Figure("×writes"),
            Column::Figure("×MiB"),
        ];
        table_within(
            room,
            &columns,
            self.pools.iter().flat_map(PoolSummary::rows),
        )
    }

    fn admissions(&self, room: Room) -> String {
        let columns = [
            Column::Text("pool"),
            Column::Figure("assigned"),
            Column::Figure("dirty_delay"),
            Column::Figure("dirty_over_max"),
            Column::Figure("delay"),
            Column::Figure("write_limit"),
            Column::Figure("dirty"),
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
                nice_number(pool.dirty_bytes),
                pool.throttled.to_string(),
            ]
        };
        table_within(room, &columns, self.pools.iter().map(row))
    }
}

impl WorkloadSummary {
    fn rows(&self) -> Vec<Vec<String>> {
        let rows = |op: &OpSummary| {
            let row = |at, latency| op.latency_row(&self.workload, at, latency);
            [row("client", &op.client), row("device", &op.device)]
        };
        self.ops.iter().flat_map(rows).collect()
    }

    /// Notes for which the tables have no place.
    fn diagnoses(&self) -> String {
        let ops = self.ops.iter();
        let ops = ops.map(|op| op.diagnoses(&self.workload, self.device));
        self.waiting().into_iter().chain(ops).collect()
    }

    /// A note about unfinished calls.
    fn waiting(&self) -> Option<String> {
        let oldest = short_time(self.oldest_ns?);
        let wait = match (self.oldest_wait, self.oldest_wait_ns) {
            (Some(word), Some(ns)) => format!(" ({word} for {})", short_time(ns)),
            (Some(word), None) => format!(" ({word})"),
            (None, _) => String::new(),
        };
        let (name, calls) = (&self.workload, thousands(self.in_flight as u64));
        Some(format!(
            "In flight of {name}: {calls}, the oldest for {oldest}{wait}.\n"
        ))
    }
}

impl OpSummary {
    fn calls_row(&self, workload: &str) -> Vec<String> {
        let ended = self.client.percentiles.n + self.failed;
        let share = 100.0 * self.failed as f64 / ended.max(1) as f64;
        vec![
            workload.to_owned(),
            self.op.to_owned(),
            ended.to_string(),
            self.failed.to_string(),
            format!("{share:.1}%"),
            self.in_flight.to_string(),
            format!("{:.0}", self.iops),
            format!("{:.1}", self.bytes_per_second / f64::from(1 << 20)),
        ]
    }

    fn latency_row(&self, workload: &str, at: &str, latency: &Latency) -> Vec<String> {
        let percentiles = &latency.percentiles;
        let figures = [
            latency.mean_ns,
            latency.stddev_ns,
            percentiles.p50_ns,
            percentiles.p99_ns,
            percentiles.p99_9_ns,
            percentiles.max_ns,
        ];
        let mut row = vec![workload.to_owned(), self.op.to_owned(), at.to_owned()];
        row.extend(figures.map(time_or_dash));
        row
    }

    fn diagnoses(&self, workload: &str, device: &str) -> String {
        let failed = self.failed_client.as_ref().map(|failed| {
            let (count, mean) = (thousands(self.failed), time_or_dash(failed.mean_ns));
            format!(
                "Failed {} of {workload}: {count}, after {mean} on average; they are in no latency above.\n",
                plural(self.op)
            )
        });
        let outlasting = &self.outlasting;
        let outlasting = outlasting.line(self.op, workload, &self.client.histogram);
        let modes = self.device.modes.map(|modes| {
            let what = format!("At {device}, {} of {workload}", plural(self.op));
            modes.line(&what, &self.device.histogram)
        });
        [failed, outlasting, modes].into_iter().flatten().collect()
    }
}

impl PoolSummary {
    fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        let levels = self.levels.all().into_iter();
        levels.map(|(at, traffic, ratios)| {
            let mut row = vec![
                self.pool.clone(),
                at.to_owned(),
                traffic.reads.to_string(),
                format!("{:.1}", mebibytes(traffic.read_bytes)),
                traffic.writes.to_string(),
                format!("{:.1}", mebibytes(traffic.written_bytes)),
            ];
            row.extend(ratios.into_iter().flat_map(Ratios::cells));
            row
        })
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
