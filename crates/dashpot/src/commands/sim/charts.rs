//! Pictures of simulations: latencies, and what the pools and the disks did over time.

use std::fs;
use std::path::Path;

use anyhow::Context;
use dashpot_engine::Duration;
use dashpot_sim::{Sample, Simulation};

use super::Outcome;
use super::summary::WorkloadSummary;
use crate::report::chart::{LatencyChart, LatencySeries, Line, Panel, SeriesChart, histogram_text};

/// What a picture over time has of one simulation.
pub(super) struct Series {
    seconds: f64,
    dirty: Line,
    open: Line,
    active: Line,
    throughput: Line,
}

/// How often a simulation that does not say is sampled.
pub(super) fn sample_interval(lasts: Duration) -> Duration {
    Duration::from_nanos((lasts.as_nanos() / SAMPLES).max(1))
}

/// The latencies of all labs at their clients, beside each other; nothing if there were none.
pub(super) fn terminal(outcomes: &[Outcome<'_>]) -> String {
    let series: Vec<_> = named(outcomes)
        .map(|(name, workload)| (name, &workload.client.histogram))
        .collect();
    let text = histogram_text(&series);
    if text.is_empty() {
        return text;
    }
    format!("\n{text}")
}

/// Writes the pictures to a directory.
pub(super) fn write(directory: &Path, outcomes: &[Outcome<'_>]) -> anyhow::Result<()> {
    let series = named(outcomes).map(|(name, workload)| LatencySeries {
        name,
        latencies: &workload.client.histogram,
    });
    let latency = LatencyChart {
        title: "Latency at the clients".to_owned(),
        series: series.collect(),
    };
    write_file(&directory.join("latency.svg"), &latency.svg())?;
    write_file(&directory.join("series.svg"), &over_time(outcomes).svg())
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let refused = || format!("--chart: '{}' cannot be written", path.display());
    fs::write(path, text).with_context(refused)
}

/// Every workload's operations that take time, with as much of a name as tells them apart.
fn named<'a>(outcomes: &'a [Outcome<'_>]) -> impl Iterator<Item = (String, &'a WorkloadSummary)> {
    let several_labs = outcomes.len() > 1;
    let several = outcomes.iter().any(|one| one.summary.workloads.len() > 1);
    outcomes.iter().flat_map(move |outcome| {
        let workloads = outcome.summary.workloads.iter();
        let slow = |workload: &&WorkloadSummary| workload.client.histogram.max() > Some(0);
        workloads.filter(slow).map(move |workload| {
            let own = format!("{} {}", workload.workload, workload.op);
            let name = match (several_labs, several) {
                (true, true) => format!("{} {own}", outcome.summary.lab),
                (true, false) => outcome.summary.lab.clone(),
                (false, _) => own,
            };
            (name, workload)
        })
    })
}

impl Series {
    pub(super) fn of(simulation: &Simulation) -> Series {
        let samples = simulation.samples();
        let line = |figure: fn(&Sample) -> u64, unit: f64| {
            let point = |sample: &Sample| (seconds(sample), figure(sample) as f64 / unit);
            samples.iter().map(point).collect()
        };
        Series {
            seconds: simulation.now().as_nanos() as f64 / 1e9,
            dirty: line(
                |sample| sample.pools.iter().map(|pool| pool.dirty).sum(),
                MEBI,
            ),
            open: line(
                |sample| sample.pools.iter().map(|pool| pool.open).sum(),
                MEBI,
            ),
            active: line(
                |sample| sample.disks.iter().map(|disk| u64::from(disk.active)).sum(),
                1.0,
            ),
            throughput: throughput(samples),
        }
    }
}

/// Bytes per second of the calls that ended between two samples.
fn throughput(samples: &[Sample]) -> Line {
    let rate = |pair: &[Sample]| {
        let elapsed = seconds(&pair[1]) - seconds(&pair[0]);
        (seconds(&pair[1]), pair[1].bytes as f64 / MEBI / elapsed)
    };
    samples.windows(2).map(rate).collect()
}

fn seconds(sample: &Sample) -> f64 {
    sample.at.as_nanos() as f64 / 1e9
}

fn over_time(outcomes: &[Outcome<'_>]) -> SeriesChart {
    let panel = |title: &str, line: fn(&Series) -> &Line| Panel {
        title: title.to_owned(),
        lines: outcomes
            .iter()
            .map(|one| line(&one.series).clone())
            .collect(),
    };
    let ends = outcomes.iter().map(|one| one.series.seconds);
    SeriesChart {
        title: "Pools, disks and clients over time".to_owned(),
        names: outcomes.iter().map(|one| one.summary.lab.clone()).collect(),
        seconds: ends.fold(0.0, f64::max),
        panels: vec![
            panel("dirty data (MiB)", |series| &series.dirty),
            panel("open transaction group (MiB)", |series| &series.open),
            panel("zios at the disks", |series| &series.active),
            panel("replied to clients (MiB/s)", |series| &series.throughput),
        ],
    }
}

/// Samples of a simulation that does not say how many.
const SAMPLES: u64 = 600;
const MEBI: f64 = (1 << 20) as f64;
