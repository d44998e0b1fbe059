//! `quantize`: latencies in powers of two of a microsecond, with their average and standard deviation and
//! with rate and throughput, for all disks together or for each disk.
//!
//! Source: the two DTrace scripts of D. P. Surya's article on zinject (2015), and the layout and
//! integer arithmetic of DTrace's `quantize()`, `avg()`, `stddev()` and `printa()`.
//!
//! Differences: rates are per elapsed time, not per whole seconds. A disk has its name in place of a vdev's
//! GUID. A disk without I/O has an empty block, where DTrace prints nothing. A line at the end mentions I/O
//! that is still in flight, which no figure above the line includes.

use std::fmt;
use std::time::Duration;

use clap::{Args, ValueEnum};
use dashpot_cli::reports::{IoArgs, LayersArgs};
use dashpot_engine::OpSet;
use dashpot_engine::histogram::{Histogram, Moments, Unit};
use dashpot_observe::{
    DeviceInterval, Layer, Length, Mention, Past, Percentiles, Question, Schedule, Seen,
    elapsed_of_all,
};
use dashpot_rules::{ParseError, parse_ops, parse_span};
use dashpot_text::surface::Surface;
use dashpot_text::table::{Room, prose_within};
use serde::{Serialize, Serializer};

use crate::asked::{Over, ReportRequest, Shared};
use crate::figures::per_second;
use crate::left_out::LeftOut;
use crate::report::{Page, Pages, Report, Tells};

/// Show latency as DTrace's quantize does, with averages and IOPS
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example: writes during a minute, a line for each disk\n  \
    dashpot quantize --by device --op write --for 60s\n\
    Example: latency above and below the injection\n  \
    dashpot quantize --layer disk --layer store --for 10s"
)]
pub struct QuantizeArgs {
    /// One histogram or line for each disk
    #[arg(long, value_enum, hide_possible_values = true, value_name = "device")]
    pub by: Option<QuantizeBy>,
    /// Only these operations: read, write, ...
    #[arg(long, value_name = "OPS", value_parser = parse_ops)]
    pub op: Option<OpSet>,
    /// The layers.
    #[command(flatten)]
    pub at: LayersArgs,
    /// How long to watch [until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub lasts: Option<dashpot_engine::Duration>,
    /// The I/Os, and the formats.
    #[command(flatten)]
    pub of: IoArgs,
}

/// The values of `quantize --by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QuantizeBy {
    #[value(alias = "disk")]
    Device,
}

impl ReportRequest for QuantizeArgs {
    fn report(&self, over: &Over) -> Result<Box<dyn Report>, ParseError> {
        Ok(Box::new(QuantizeReport {
            layers: self.at.layers(),
            schedule: Schedule::once(self.lasts.unwrap_or(dashpot_engine::Duration::MAX)),
            past: over.past(&self.of.period, false),
            ops: self.op.unwrap_or(OpSet::EVERY),
            by_disk: self.by.is_some(),
        }))
    }

    fn shared(&self) -> Shared<'_> {
        Shared::of_ios(&self.of)
    }

    fn is_one_document(&self) -> bool {
        true
    }
}

/// The report: latencies in powers of two, over one interval.
#[derive(Clone, Debug)]
pub struct QuantizeReport {
    /// The layers at which latencies are measured. Each layer has its own page.
    pub layers: Vec<Layer>,
    /// The only interval of the report.
    pub schedule: Schedule,
    /// The stretch of the past that the report covers; `None` if the report begins now.
    pub past: Option<Past>,
    /// The operations that the report takes.
    pub ops: OpSet,
    /// Whether each disk has its own figures.
    pub by_disk: bool,
}

impl Report for QuantizeReport {
    fn question(&self) -> Question {
        Question {
            past: self.past,
            ..Question::latencies(&self.layers)
        }
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn tells(&self) -> Tells {
        Tells::LENGTH
    }

    fn makes_sums(&self) -> bool {
        true
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let page = |layer: &Layer| Box::new(self.page(*layer, seen, surface)) as Box<dyn Page>;
        self.layers.iter().map(page).collect()
    }
}

impl QuantizeReport {
    fn page(&self, layer: Layer, seen: &Seen, surface: &Surface) -> Quantize {
        let summed: Vec<&DeviceInterval> = seen.summed(layer).collect();
        Quantize {
            layer: (self.layers.len() > 1).then_some(layer),
            length: seen.length(),
            scope: if self.by_disk {
                let disks = seen.at(layer).iter();
                Scope::Disks(disks.map(|one| self.disk(one, layer)).collect())
            } else {
                Scope::Total(self.aggregate(&summed, layer))
            },
            left_out: LeftOut::of(seen, summed, self.not_in_sums(seen)),
            room: surface.room,
        }
    }

    fn disk(&self, interval: &DeviceInterval, layer: Layer) -> Disk {
        Disk {
            disk: interval.device.clone(),
            aggregation: self.aggregate(&[interval], layer),
        }
    }

    fn aggregate(&self, devices: &[&DeviceInterval], layer: Layer) -> Aggregation {
        let (mut latencies, mut bytes) = (Histogram::default(), 0);
        let ops = devices.iter().flat_map(|interval| &interval.ops);
        for op in ops.filter(|op| op.kind.is_in(self.ops)) {
            if let Some(at_layer) = op.counts.latencies(layer, false) {
                latencies.merge(at_layer);
                bytes += op.counts.bytes;
            }
        }
        Aggregation::new(&latencies, bytes, elapsed_of_all(devices.iter().copied()))
    }
}

const BAR_WIDTH: usize = 40;
const NS_PER_US: u64 = 1_000;

/// The report. JSON: `{"elapsed_ns": 60000000000, "missed": 0, "total": aggregation or "devices":
/// [aggregation, …], …}`, and the keys of [`LeftOut`]. If there are several layers, the object begins
/// with `"layer": "store"`.
#[derive(Clone, Debug, Serialize)]
pub struct Quantize {
    /// The layer, if the report is about several layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// The time that the report covers.
    #[serde(flatten)]
    pub length: Length,
    /// The latencies and rates.
    #[serde(flatten)]
    pub scope: Scope,
    /// What the figures leave out.
    #[serde(flatten)]
    pub left_out: LeftOut,
    /// The width that the text may have.
    #[serde(skip)]
    pub room: Room,
}

/// The figures of all disks together, or of each disk.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All I/O together.
    Total(Aggregation),
    /// Each disk separately, with its name.
    #[serde(rename = "devices")]
    Disks(Vec<Disk>),
}

/// A disk's figures. JSON: the keys of [`Aggregation`], and `"device": "c1t1d0"`.
#[derive(Clone, Debug, Serialize)]
pub struct Disk {
    /// The disk's name.
    #[serde(rename = "device")]
    pub disk: String,
    /// The disk's figures.
    #[serde(flatten)]
    pub aggregation: Aggregation,
}

/// The figures of all disks together, or of one disk. JSON: `{"rows": [{"from_ns": 128000, "to_ns": 255999,
/// "count": 0}, …], "mean_ns": 2025491, "stddev_ns": 1609120, "ops_per_s": 811.2, "bytes_per_s":
/// 102013952.0, "latency": percentiles}`. Average and deviation are null if there was no I/O. JSON has
/// exact figures; the text truncates them as the scripts do.
#[derive(Clone, Debug, Serialize)]
pub struct Aggregation {
    /// The printed rows: from the first to the last row with a count, and one empty row on either side.
    #[serde(serialize_with = "without_margin")]
    pub rows: Vec<Row>,
    /// The average of the latencies, each truncated to microseconds.
    #[serde(skip)]
    pub avg_us: Option<u64>,
    /// The standard deviation of the latencies, each truncated to microseconds.
    #[serde(skip)]
    pub stddev_us: Option<u64>,
    /// I/O per second, rounded.
    #[serde(skip)]
    pub iops: u64,
    /// KiB per second, rounded.
    #[serde(skip)]
    pub throughput_kib_s: u64,
    mean_ns: Option<u64>,
    stddev_ns: Option<u64>,
    ops_per_s: f64,
    bytes_per_s: f64,
    /// The same latencies as percentiles.
    pub latency: Percentiles,
}

/// Latencies from `value_us` to less than twice `value_us`; for 0, latencies below 1 µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The lower edge of the row.
    pub value_us: i64,
    /// The number of I/Os in the row.
    pub count: u64,
}

impl Aggregation {
    /// Aggregates the I/O of a stretch of time. Rates are amounts divided by `elapsed`, the length of the
    /// stretch. The original scripts divide by whole seconds, which for 1.9 s gives nearly twice the true
    /// rate. For the scripts' own interval of one minute, there is no difference.
    pub fn new(latencies: &Histogram, bytes: u64, elapsed: Duration) -> Self {
        let moments = Moments {
            sum: latencies.sum(),
            sum_of_squares: latencies.sum_of_squares(),
        };
        Aggregation {
            rows: printed_rows(&latencies.log2_rows(Unit::Micros)),
            avg_us: latencies.mean_micros(),
            stddev_us: latencies.stddev_micros(),
            iops: per_second(latencies.count(), elapsed).round() as u64,
            throughput_kib_s: (per_second(bytes, elapsed) / 1_024.0).round() as u64,
            mean_ns: moments.mean(latencies.count()),
            stddev_ns: moments.stddev(latencies.count()),
            ops_per_s: per_second(latencies.count(), elapsed),
            bytes_per_s: per_second(bytes, elapsed),
            latency: Percentiles::of(latencies),
        }
    }

    /// The key by which DTrace sorts distributions: first the sum of the rows' values, weighted by the rows'
    /// counts, and then the count of row 0.
    fn weight(&self) -> (i128, u64) {
        let values = self.rows.iter();
        let sum = values.map(|row| i128::from(row.value_us) * i128::from(row.count));
        let zeroes = self.rows.iter().find(|row| row.value_us == 0);
        (sum.sum(), zeroes.map_or(0, |row| row.count))
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let from_ns = self.value_us.unsigned_abs().saturating_mul(NS_PER_US);
        let end_ns = from_ns.max(NS_PER_US / 2).saturating_mul(2);
        crate::figures::serialize_row(from_ns, end_ns - 1, self.count, serializer)
    }
}

/// Serialises the rows without the row below 0, which only the text needs.
fn without_margin<S: Serializer>(rows: &[Row], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.iter().filter(|row| row.value_us >= 0))
}

/// Chooses the rows to print, and labels them. `counts` has the counts of rows that begin at powers of two.
fn printed_rows(counts: &[u64]) -> Vec<Row> {
    let first = counts.iter().position(|&count| count > 0).unwrap_or(0);
    let last = counts.len().max(1);
    let rows = (first..=last).map(|row| Row {
        value_us: (1 << row) >> 1,
        count: counts.get(row).copied().unwrap_or(0),
    });
    let before = Row {
        value_us: if first == 0 { -1 } else { (1 << first) >> 2 },
        count: 0,
    };
    std::iter::once(before).chain(rows).collect()
}

impl Page for Quantize {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }
}

impl fmt::Display for Quantize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(layer) = self.layer {
            writeln!(f, "\n{}", title(layer))?;
        }
        match &self.scope {
            Scope::Total(aggregation) => write_total(f, aggregation)?,
            Scope::Disks(disks) => write_disks(f, self.room, disks)?,
        }
        // The line mentions all I/Os in flight, because no later interval could report them.
        let elapsed = self.length.elapsed;
        let in_flight = match self.slowest() {
            Some(ended) => self
                .left_out
                .in_flight
                .line_beside(Mention::All, elapsed, ended),
            None => self.left_out.in_flight.line(Mention::All, elapsed),
        };
        let lines = [self.length.line(), in_flight];
        let mut lines = lines.iter().flatten();
        lines.try_for_each(|line| f.write_str(&prose_within(self.room, line)))
    }
}

impl Quantize {
    /// The latencies of ended zios; with several disks, those of the disk with the longest tail.
    fn slowest(&self) -> Option<&Percentiles> {
        let tail = |latency: &&Percentiles| latency.p99_9_ns.or(latency.max_ns);
        match &self.scope {
            Scope::Total(total) => Some(&total.latency),
            Scope::Disks(disks) => {
                let each = disks.iter().map(|disk| &disk.aggregation.latency);
                each.max_by_key(tail)
            }
        }
    }
}

fn write_total(f: &mut impl fmt::Write, aggregation: &Aggregation) -> fmt::Result {
    writeln!(f, "\nhistogram of latencies (us):\n")?;
    write_distribution(f, &aggregation.rows)?;
    let titles = summary_line(SUMMARY_TITLES.map(String::from));
    writeln!(f, "\n{titles}\n{}", summary(aggregation))
}

fn write_disks(f: &mut impl fmt::Write, room: Room, disks: &[Disk]) -> fmt::Result {
    writeln!(f, "\nhistogram of latencies (us):\n")?;
    for disk in sorted_by_key(disks, |disk| disk.aggregation.weight()) {
        // DTrace prints a space after the name, because the script's format has a space before the value.
        writeln!(f, "{} ", room.name_beside(1, &disk.disk))?;
        write_distribution(f, &disk.aggregation.rows)?;
        writeln!(f)?;
    }
    let sorted = sorted_by_key(disks, |disk| disk.aggregation.avg_us);
    let lines = sorted
        .iter()
        .map(|disk| (&disk.disk, summary(&disk.aggregation)));
    let lines: Vec<(&String, String)> = lines.collect();
    let titles = summary_line(SUMMARY_TITLES.map(String::from));
    let figures = lines.iter().map(|(_, figures)| figures.len());
    let taken = SUMMARY_GAP.len() + figures.fold(titles.len(), usize::max);
    writeln!(f, "{:<16}{SUMMARY_GAP}{titles}", "DISK")?;
    lines.iter().try_for_each(|(disk, figures)| {
        let disk = room.name_beside(taken, disk);
        writeln!(f, "{disk:<16}{SUMMARY_GAP}{figures}")
    })
}

/// Sorts disks by a key, the lowest first; disks with equal keys are sorted by name.
fn sorted_by_key<K: Ord>(disks: &[Disk], key: impl Fn(&Disk) -> K) -> Vec<&Disk> {
    let mut sorted: Vec<&Disk> = disks.iter().collect();
    sorted.sort_by(|a, b| (key(a), &a.disk).cmp(&(key(b), &b.disk)));
    sorted
}

fn write_distribution(f: &mut impl fmt::Write, rows: &[Row]) -> fmt::Result {
    let title = "------------- Distribution -------------";
    let total: u128 = rows.iter().map(|row| u128::from(row.count)).sum();
    writeln!(f, "{:>16} {title:>41} {:<9}", "value", "count")?;
    for Row { value_us, count } in rows {
        let bar = "@".repeat(bar_length(*count, total));
        writeln!(f, "{value_us:>16} |{bar:<BAR_WIDTH$} {count:<9}")?;
    }
    Ok(())
}

/// The length of the bar for a count, as a share of the total, rounded to the nearest column.
fn bar_length(count: u64, total: u128) -> usize {
    let halves = 2 * BAR_WIDTH as u128 * u128::from(count) + total;
    let length = halves.checked_div(2 * total).unwrap_or(0);
    usize::try_from(length).unwrap_or(BAR_WIDTH)
}

const SUMMARY_TITLES: [&str; 4] = [
    "avg latency (us)",
    "stddev (us)",
    "iops",
    "throughput (KB/s)",
];

fn summary(aggregation: &Aggregation) -> String {
    let or_dash = |value: Option<u64>| value.map_or("-".into(), |value| value.to_string());
    summary_line([
        or_dash(aggregation.avg_us),
        or_dash(aggregation.stddev_us),
        aggregation.iops.to_string(),
        aggregation.throughput_kib_s.to_string(),
    ])
}

fn summary_line([avg, stddev, iops, kib]: [String; 4]) -> String {
    format!("{avg:<16}   {stddev:<11}   {iops:<4}   {kib:<17}")
}

/// The gap between a disk's name and its figures.
const SUMMARY_GAP: &str = "   ";

fn title(layer: Layer) -> &'static str {
    match layer {
        Layer::Volume => "volume, above its pool and the throttle:",
        Layer::Disk => "disk, as its clients see it, with the injection:",
        Layer::Store => "store, below the injection:",
        Layer::Fs => "fs, calls that sync files:",
        Layer::Kernel => "kernel, the kernel's disks:",
    }
}

#[cfg(test)]
mod tests;
