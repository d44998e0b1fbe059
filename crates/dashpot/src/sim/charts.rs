//! Pictures of simulations: latencies, and figures of the pools and the disks over time.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use dashpot_engine::Duration;
use dashpot_text::chart::{LatencyChart, LatencySeries, Line, Panel, SeriesChart, histogram_text};

use super::outcome::Outcome;
use super::series::Series;
use super::summary::Summary;

/// The default interval between samples.
pub(super) fn sample_interval(lasts: Duration) -> Duration {
    Duration::from_nanos((lasts.as_nanos() / SAMPLES).max(1))
}

/// The latencies at the clients, side by side; empty if there were none.
pub(super) fn terminal(outcomes: &[Outcome<'_>]) -> String {
    let mut text = String::new();
    for group in groups(outcomes, MeasuredAt::Client) {
        text += "\n";
        if !group.name.is_empty() {
            text += &format!("{}\n", group.name);
        }
        let series = group.series.into_iter();
        let series: Vec<_> = series.map(|one| (one.name, one.latencies)).collect();
        text += &histogram_text(&series);
    }
    text
}

/// Refuses a path that is not a directory, before a simulation that may take long.
pub(super) fn check(directory: &Path) -> anyhow::Result<()> {
    if directory.is_dir() {
        Ok(())
    } else {
        bail!(
            "--chart {}: there is no such directory; make it first",
            directory.display()
        )
    }
}

/// Writes the pictures to a directory.
pub(super) fn write(directory: &Path, outcomes: &[Outcome<'_>]) -> anyhow::Result<()> {
    for place in [MeasuredAt::Client, MeasuredAt::Device] {
        for group in groups(outcomes, place) {
            let words = group.name.replace(['/', ' '], "-");
            let (of, dash) = if group.name.is_empty() {
                ("", "")
            } else {
                (": ", "-")
            };
            let (title, file) = match place {
                MeasuredAt::Client => ("the clients", "latency".to_owned()),
                MeasuredAt::Device => (group.device, format!("latency-at-{}", group.kind())),
            };
            let chart = LatencyChart {
                title: format!("Latency at {title}{of}{}", group.name),
                note: note(outcomes),
                series: group.series,
            };
            let path = directory.join(format!("{file}{dash}{words}.svg"));
            write_file(&path, &chart.svg())?;
        }
    }
    write_file(&directory.join("series.svg"), &over_time(outcomes).svg())
}

/// A note about the length of the simulations, and the moment from which latencies count.
fn note(outcomes: &[Outcome<'_>]) -> String {
    let of = |summary: &Summary| {
        let lasted = Duration::from_nanos(summary.elapsed_ns);
        match Duration::from_nanos(summary.warmup_ns) {
            Duration::ZERO => format!("{lasted} simulated"),
            warmup => format!("{lasted} simulated, latencies counted from {warmup} on"),
        }
    };
    let summaries = || outcomes.iter().map(|outcome| &outcome.summary);
    let mut notes: Vec<String> = summaries().map(of).collect();
    notes.dedup();
    match notes.len() {
        1 => notes.concat(),
        _ => {
            let each = summaries().map(|summary| format!("{}: {}", summary.lab, of(summary)));
            each.collect::<Vec<_>>().join("; ")
        }
    }
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let refused = || format!("--chart: '{}' cannot be written", path.display());
    fs::write(path, text).with_context(refused)
}

/// The place where latencies are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MeasuredAt {
    Client,
    /// At the volumes and disks that the clients use.
    Device,
}

/// The latencies of one picture, each with a name.
struct Group<'a> {
    /// The name of the group; empty if there is only one group.
    name: String,
    /// The target of the clients: a volume or a disk.
    device: &'static str,
    series: Vec<LatencySeries<'a>>,
}

impl Group<'_> {
    /// The word for the group's target in the name of a file.
    fn kind(&self) -> &'static str {
        self.device.trim_start_matches("the ")
    }
}

/// Divides the latencies into groups, one for each picture. With one lab, there is one group. With several
/// labs, there is a group for each operation of each workload. The group has that operation's latencies in
/// all labs, so its picture compares the labs.
fn groups<'a>(outcomes: &'a [Outcome<'_>], place: MeasuredAt) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for Summary { lab, workloads, .. } in outcomes.iter().map(|outcome| &outcome.summary) {
        for (workload, op) in workloads
            .iter()
            .flat_map(|one| one.ops.iter().map(move |op| (one, op)))
        {
            let latencies = match place {
                MeasuredAt::Client => &op.client.histogram,
                MeasuredAt::Device => &op.device.histogram,
            };
            // At the clients, leave out operations that took no time.
            let least = u64::from(place == MeasuredAt::Client);
            if latencies.max().is_none_or(|max| max < least) {
                continue;
            }
            let of = format!("{} {}", workload.workload, op.op);
            let (group, name) = match outcomes.len() {
                1 => (String::new(), of),
                _ => (of, lab.clone()),
            };
            let series = LatencySeries {
                name,
                latencies,
                waiting: op.outlasting.longer_than_all,
            };
            match groups.iter_mut().find(|known| known.name == group) {
                Some(known) => {
                    known.series.push(series);
                    if known.device != workload.device {
                        known.device = "the device";
                    }
                }
                None => groups.push(Group {
                    name: group,
                    device: workload.device,
                    series: vec![series],
                }),
            }
        }
    }
    if let [only] = groups.as_mut_slice() {
        only.name.clear();
    }
    groups
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
    let warmups = outcomes.iter().map(|one| one.summary.warmup_ns);
    let warmup_ns = warmups.max().unwrap_or_default();
    SeriesChart {
        title: "Pools, disks and clients over time".to_owned(),
        note: match warmup_ns {
            0 => note(outcomes),
            _ => format!("{} (grey: the warm-up)", note(outcomes)),
        },
        warmup: warmup_ns as f64 / 1e9,
        names: outcomes.iter().map(|one| one.summary.lab.clone()).collect(),
        seconds: ends.fold(0.0, f64::max),
        panels: vec![
            panel("dirty data (MiB)", |series| &series.dirty),
            panel(
                "transaction groups: dirty data when their sync began (MiB, the last 100)",
                |series| &series.txgs,
            ),
            panel("zios at the disks", |series| &series.active),
            panel("replied to clients (MiB/s)", |series| &series.throughput),
        ],
    }
}

/// The default number of samples.
const SAMPLES: u64 = 600;
