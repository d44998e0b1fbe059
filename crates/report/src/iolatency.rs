//! `iolatency`: a histogram of latencies in milliseconds, once per interval.
//!
//! Source: perf-tools' iolatency by B. Gregg, with its man page and example file.
//!
//! Differences: the report also shows I/O that outlasts an interval. A line at the end mentions I/O that was
//! in flight for the whole interval, or at the end of the last interval. A row has the latencies from its
//! first bound (`>=`) up to, but not including, its second (`<`); the original tool counts a latency of exactly 2^k ms in the row that
//! ends at 2^k ms ([`Boundary::AsOriginal`]).
//!
//! Additions: breakdowns, in which each value has a histogram below a line with the value's name; and tables
//! of percentiles in place of histograms.

use std::fmt;

use clap::{Args, ValueEnum};
use dashpot_cli::dimension;
use dashpot_cli::reports::{IoArgs, LayersArgs, Pace};
use dashpot_engine::histogram::{Histogram, Unit};
use dashpot_engine::{Duration, Op, glob_matches};
use dashpot_observe::{
    DeviceInterval, Dimension, Group, Groups, Kind, Layer, Length, Mention, OTHER, OpInterval,
    Past, Percentiles, Question, Schedule, Seen,
};
use dashpot_rules::{ParseError, visible};
use dashpot_text::clock::time_of_day;
use dashpot_text::percentiles::write_percentiles;
use dashpot_text::surface::Surface;
use dashpot_text::table::Room;
use serde::{Serialize, Serializer};

use crate::asked::{Over, ReportRequest, Shared};
use crate::breakdown::{is_always_apart, order_of, value_of};
use crate::left_out::LeftOut;
use crate::report::{Page, Pages, Report, Words};

/// Show disk latency as histograms, as perf-tools' iolatency does
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example: reads only, five times, with the time of day\n  \
    dashpot iolatency -T -i '*R*' 1 5\n\
    Example: a disk of the kernel, without a daemon, and the sync calls above it\n  \
    dashpot iolatency -d vda --layer fs --layer disk --by process 5"
)]
pub struct IolatencyArgs {
    /// Measure from arrival (on the kernel: block_bio_queue)
    #[arg(short = 'Q')]
    pub queued: bool,
    /// Print the time of day before each histogram
    #[arg(short = 'T')]
    pub timestamp: bool,
    /// The layers.
    #[command(flatten)]
    pub at: LayersArgs,
    /// Only these types: a glob over R, W, WF (FUA), F, D
    #[arg(short = 'i', value_name = "TYPE", value_parser = parse_type)]
    pub iotype: Option<String>,
    /// Use the bucket edges of iolatency's code
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "iolatency"
    )]
    pub compat: Option<IolatencyCompat>,
    /// A histogram for each value; see 'dashpot stats'
    #[arg(long, value_parser = dimension(), hide_possible_values = true)]
    #[arg(value_name = "DIMENSION")]
    pub by: Option<Dimension>,
    /// Percentiles instead of histograms
    #[arg(long, conflicts_with = "compat")]
    pub percentiles: bool,
    /// Show whole names, even on a narrow terminal
    #[arg(long)]
    pub wide: bool,
    /// The interval, and the number of reports.
    #[command(flatten)]
    pub pace: Pace,
    /// The I/Os, and the formats.
    #[command(flatten)]
    pub of: IoArgs,
}

/// Parses a glob that must match the letters of some I/O.
fn parse_type(text: &str) -> Result<String, ParseError> {
    let is_known = |c: char| LETTERS.contains(c) || "*?".contains(c);
    if text.is_empty() || !text.chars().all(is_known) {
        return Err(ParseError::new(format!(
            "'{text}' matches no type: write a glob over the letters {LETTERS}, such as '*R*' for \
             reads"
        )));
    }
    Ok(text.to_owned())
}

/// The kernel's letters for types of I/O, the most frequent first.
const LETTERS: &str = "RWFDSMANEZPU";

/// The values of `iolatency --compat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IolatencyCompat {
    Iolatency,
}

impl ReportRequest for IolatencyArgs {
    fn report(&self, over: &Over) -> Result<Box<dyn Report>, ParseError> {
        over.check_memory(&self.of.period, &self.pace, self.queued)?;
        Ok(Box::new(IolatencyReport {
            layers: self.at.layers(),
            schedule: over.schedule(&self.pace, INTERVAL),
            endless: over.is_live() && self.pace.count.is_none(),
            past: over.past(&self.of.period, false),
            queued: self.queued,
            types: self.iotype.clone(),
            by: self.by,
            boundary: match self.compat {
                Some(_) => Boundary::AsOriginal,
                None => Boundary::AsLabelled,
            },
            style: if self.percentiles {
                Style::Percentiles
            } else {
                Style::Histograms
            },
            timestamp: self.timestamp,
            wide: self.wide,
        }))
    }

    fn shared(&self) -> Shared<'_> {
        Shared::of_ios(&self.of)
    }
}

/// The default interval of the original tool.
const INTERVAL: Duration = Duration::from_secs(1);

/// The report: histograms or percentiles, once per interval.
#[derive(Clone, Debug)]
pub struct IolatencyReport {
    /// The layers at which latencies are measured, at least one.
    pub layers: Vec<Layer>,
    /// The intervals of the report.
    pub schedule: Schedule,
    /// Whether the report ends only with Ctrl-C.
    pub endless: bool,
    /// The stretch of the past that the report covers; `None` if the report begins now.
    pub past: Option<Past>,
    /// Whether latencies are measured from the I/O's arrival (`-Q`).
    pub queued: bool,
    /// The glob that the kernel's letters for an I/O (`R`, `WS`) must match; `None` takes all I/Os.
    pub types: Option<String>,
    /// The breakdown; `None` for a single histogram.
    pub by: Option<Dimension>,
    /// The choice of the row that counts a latency of exactly 2^k ms.
    pub boundary: Boundary,
    /// Whether the text shows histograms or percentiles.
    pub style: Style,
    /// Whether the time of day comes before each interval (`-T`).
    pub timestamp: bool,
    /// Whether even a narrow terminal gets whole names.
    pub wide: bool,
}

impl Report for IolatencyReport {
    fn question(&self) -> Question {
        Question {
            by: self.by.filter(|by| !is_always_apart(*by)),
            queued: self.queued,
            past: self.past,
            ..Question::latencies(&self.layers)
        }
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn makes_sums(&self) -> bool {
        true
    }

    fn open(&mut self, _: &Surface) -> Pages {
        let seconds = self.schedule.interval.as_nanos() as f64 / 1e9;
        match self.past {
            Some(_) => Pages::new(),
            None => vec![Box::new(Words(opening(seconds, self.endless)))],
        }
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let mut places: Vec<&DeviceInterval> = Vec::new();
        for device in self.layers.iter().flat_map(|layer| seen.summed(*layer)) {
            // The layers `disk` and `store` have the same devices, which count only once.
            if !places.iter().any(|known| std::ptr::eq(*known, device)) {
                places.push(device);
            }
        }
        let time = || time_of_day(surface.local_ns(seen.at_ns));
        vec![Box::new(Interval {
            at_ns: seen.at_ns,
            time: self.timestamp.then(time),
            length: seen.length(),
            scope: self.scope(seen),
            left_out: LeftOut::of(seen, places, self.not_in_sums(seen)),
            style: self.style,
            mention: seen.mention(),
            room: surface.room(self.wide),
        })]
    }

    fn close(&mut self, is_whole: bool, _: &Surface) -> Pages {
        if is_whole && self.past.is_none() {
            vec![Box::new(Words(ENDING.to_owned()))]
        } else {
            Pages::new()
        }
    }
}

impl IolatencyReport {
    /// The devices of a layer that the report shows, each for itself or in a sum.
    fn devices<'a>(&self, seen: &'a Seen, layer: Layer) -> Vec<&'a DeviceInterval> {
        if self.by == Some(Dimension::Device) {
            seen.at(layer).iter().collect()
        } else {
            seen.summed(layer).collect()
        }
    }

    fn scope(&self, seen: &Seen) -> Scope {
        match (self.by, &self.layers[..]) {
            (None, [layer]) => Scope::All(self.whole(seen, *layer)),
            (None, layers) => Scope::By {
                by: "layer",
                values: layers
                    .iter()
                    .map(|layer| Value {
                        value: layer.word().to_owned(),
                        layer: None,
                        distribution: self.whole(seen, *layer),
                    })
                    .collect(),
            },
            (Some(by), _) => Scope::By {
                by: by.word(),
                values: self.values(by, seen),
            },
        }
    }

    /// All latencies at a layer.
    fn whole(&self, seen: &Seen, layer: Layer) -> Distribution {
        let mut all = Histogram::default();
        self.ops(self.devices(seen, layer), layer)
            .for_each(|(_, _, latencies)| all.merge(latencies));
        Distribution::new(&all, self.boundary)
    }

    /// The latencies of each value. With several layers, a value's entries for the layers follow one another.
    fn values(&self, by: Dimension, seen: &Seen) -> Vec<Value> {
        let mut all = Groups::default();
        for layer in &self.layers {
            self.groups(by, seen, *layer)
                .for_each(|group| all.add(group));
        }
        let shown: Vec<String> = all
            .shown(order_of(by))
            .into_iter()
            .map(|one| one.value)
            .collect();
        let of_layer = |layer: &Layer| {
            let mut groups = Groups::default();
            for group in self.groups(by, seen, *layer) {
                let value = if shown.contains(&group.value) {
                    group.value
                } else {
                    OTHER.to_owned()
                };
                groups.add(Group { value, ..group });
            }
            (*layer, groups.all(order_of(by)))
        };
        let layers: Vec<(Layer, Vec<Group>)> = self.layers.iter().map(of_layer).collect();
        let of_value = |name: &String| {
            let each = layers.iter().filter_map(|(layer, groups)| {
                let group = groups.iter().find(|group| group.value == *name)?;
                Some(self.value(*layer, group))
            });
            each.collect::<Vec<Value>>()
        };
        shown.iter().flat_map(of_value).collect()
    }

    fn groups<'a>(
        &'a self,
        by: Dimension,
        seen: &'a Seen,
        layer: Layer,
    ) -> impl Iterator<Item = Group> + 'a {
        let ops = self.ops(self.devices(seen, layer), layer);
        ops.map(move |(device, op, latencies)| Group {
            value: value_of(by, device, op).to_owned(),
            count: latencies.count(),
            bytes: op.counts.bytes,
            numbers: Some(Box::new(latencies.clone())),
        })
    }

    fn value(&self, layer: Layer, group: &Group) -> Value {
        Value {
            value: group.value.clone(),
            layer: (self.layers.len() > 1).then_some(layer),
            distribution: Distribution::new(&group.numbers(), self.boundary),
        }
    }

    /// The operations that the report takes, with their devices and their latencies.
    fn ops<'a>(
        &self,
        devices: Vec<&'a DeviceInterval>,
        layer: Layer,
    ) -> impl Iterator<Item = (&'a str, &'a OpInterval, &'a Histogram)> {
        let glob = self.types.as_deref().unwrap_or("*");
        let all = devices.into_iter().flat_map(|interval| {
            let device = interval.device.as_str();
            interval.ops.iter().map(move |op| (device, op))
        });
        all.filter(move |(_, op)| has_type(op, glob))
            .filter_map(move |(device, op)| {
                Some((device, op, op.counts.latencies(layer, self.queued)?))
            })
    }
}

/// Whether a glob matches the kernel's letters for an operation. Writes that ask for durability count as
/// writes, so both `W` and `WF` match them.
fn has_type(op: &OpInterval, glob: &str) -> bool {
    if let Some(rwbs) = &op.rwbs {
        return glob_matches(glob.as_bytes(), rwbs.as_bytes());
    }
    let letters: &[&str] = match op.kind {
        Kind::Op(Op::Read) => &["R"],
        Kind::Op(Op::Write) => &["W", "WF"],
        Kind::Op(Op::Zero) => &["W"],
        Kind::Op(Op::Flush | Op::Sync) => &["F"],
        Kind::Op(Op::Trim) => &["D"],
        Kind::Op(Op::Cache) | Kind::Other => &["RA"],
        Kind::Op(_) => &["N"],
    };
    let mut letters = letters.iter();
    letters.any(|letters| glob_matches(glob.as_bytes(), letters.as_bytes()))
}

const BAR_WIDTH: usize = 38;
/// The width of a layer's word.
const LAYER_WIDTH: usize = 6;
const NS_PER_MS: u64 = 1_000_000;

/// The last lines of the output.
pub const ENDING: &str = "\nEnding tracing...\n";

/// The first line of the output. `endless` is true if the user gave no number of intervals.
pub fn opening(interval_s: impl fmt::Display, endless: bool) -> String {
    let how_to_end = if endless { " Ctrl-C to end." } else { "" };
    format!("Tracing block I/O. Output every {interval_s} seconds.{how_to_end}\n")
}

/// The choice of the row that counts a latency of exactly 2^k ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// The row that begins with this latency, as the labels say.
    AsLabelled,
    /// The row that ends with this latency, as in the original tool (`--compat=iolatency`).
    AsOriginal,
}

/// The latencies of one interval. JSON: `{"at_ns": 1764000000000000000, "elapsed_ns": 1000000000,
/// "missed": 0, "rows": [{"from_ns": 0, "to_ns": 999999, "count": 5}, …], "latency": percentiles,
/// …}`, and the keys of [`LeftOut`]. A breakdown has, in place of rows and latency,
/// `"by": "device", "values": [{"value": "vda",
/// "rows": […], "latency": percentiles}, …]`. With several layers each value also has its
/// `"layer": "fs"`; without a breakdown the layers are the values.
#[derive(Clone, Debug, Serialize)]
pub struct Interval {
    /// The interval's end.
    pub at_ns: u64,
    /// The time of day at the interval's end, as `HH:MM:SS`, if the text shows times (`-T`).
    #[serde(skip)]
    pub time: Option<String>,
    /// The length of the interval, and how many intervals are missing because this one ended too late.
    #[serde(flatten)]
    pub length: Length,
    /// The latencies, together or by value.
    #[serde(flatten)]
    pub scope: Scope,
    /// What the figures leave out.
    #[serde(flatten)]
    pub left_out: LeftOut,
    /// How the text shows latencies; JSON has rows and percentiles.
    #[serde(skip)]
    pub style: Style,
    /// The I/Os in flight that the remark mentions; JSON has all I/Os in flight.
    #[serde(skip)]
    pub mention: Mention,
    /// The width that the text may have.
    #[serde(skip)]
    pub room: Room,
}

/// The latencies of all I/O, or of each value of a breakdown.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Scope {
    /// The latencies of all I/O.
    All(Distribution),
    /// The latencies of each value, in display order.
    By {
        /// The dimension of the breakdown: `device`, `client`, …
        by: &'static str,
        /// The values of the dimension.
        values: Vec<Value>,
    },
}

/// The latencies of a value of a breakdown.
#[derive(Clone, Debug, Serialize)]
pub struct Value {
    /// The value's name.
    pub value: String,
    /// The layer, if the report is about several layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// The latencies of this value.
    #[serde(flatten)]
    pub distribution: Distribution,
}

/// A distribution of latencies: the rows of a histogram, and percentiles.
#[derive(Clone, Debug, Serialize)]
pub struct Distribution {
    /// The rows from 0 ms to the highest row with I/Os; at least one row.
    pub rows: Vec<Row>,
    /// The same latencies as percentiles.
    pub latency: Percentiles,
}

/// The style of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// A histogram, like the original's.
    #[default]
    Histograms,
    /// A line of percentiles for each distribution.
    Percentiles,
}

/// Latencies between two powers of two. In JSON, the edges are always as labelled, even with
/// [`Boundary::AsOriginal`].
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The lower edge of the row.
    pub from_ms: u64,
    /// The upper edge of the row.
    pub to_ms: u64,
    /// The number of I/Os with latencies between the two edges.
    pub count: u64,
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (from_ns, end_ns) = [self.from_ms, self.to_ms]
            .map(|ms| ms.saturating_mul(NS_PER_MS))
            .into();
        crate::figures::serialize_row(from_ns, end_ns - 1, self.count, serializer)
    }
}

impl Value {
    /// The value's name in a table of percentiles, after its layer if there is one.
    fn name(&self) -> String {
        match self.layer {
            Some(layer) => format!("{:<LAYER_WIDTH$} {}", layer.word(), self.value),
            None => self.value.clone(),
        }
    }
}

impl Distribution {
    /// Sorts latencies into rows.
    pub fn new(latencies: &Histogram, boundary: Boundary) -> Self {
        let counts = match boundary {
            Boundary::AsLabelled => latencies.log2_rows(Unit::Millis),
            Boundary::AsOriginal => latencies.iolatency_rows(),
        };
        Distribution {
            rows: labelled(&counts),
            latency: Percentiles::of(latencies),
        }
    }
}

impl Page for Interval {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }

    /// A remark about the zios in flight. It is not part of the text, which equals the original tool's text
    /// byte for byte.
    fn remark(&self) -> Option<String> {
        let (mention, elapsed) = (self.mention, self.length.elapsed);
        match self.slowest() {
            Some(ended) => self.left_out.in_flight.line_beside(mention, elapsed, ended),
            None => self.left_out.in_flight.line(mention, elapsed),
        }
    }
}

impl Interval {
    /// The latencies of ended zios; in a breakdown, those of the value with the longest tail.
    fn slowest(&self) -> Option<&Percentiles> {
        let tail = |latency: &&Percentiles| latency.p99_9_ns.or(latency.max_ns);
        match &self.scope {
            Scope::All(all) => Some(&all.latency),
            Scope::By { values, .. } => {
                let each = values.iter().map(|value| &value.distribution.latency);
                each.max_by_key(tail)
            }
        }
    }
}

/// Labels the counts of rows that begin at powers of two. Without any I/O there is one row.
fn labelled(counts: &[u64]) -> Vec<Row> {
    let counts = if counts.is_empty() { &[0] } else { counts };
    let rows = counts.iter().zip(0..).map(|(&count, row)| Row {
        from_ms: (1 << row) >> 1,
        to_ms: 1 << row,
        count,
    });
    rows.collect()
}

impl fmt::Display for Interval {
    /// Writes an empty line, the time if it is shown, and the table or tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        if let Some(time) = &self.time {
            writeln!(f, "{time}:")?;
        }
        match (&self.scope, self.style) {
            (Scope::All(all), Style::Histograms) => write_table(f, &all.rows),
            (Scope::All(all), Style::Percentiles) => {
                write_percentiles(f, self.room, "", [("", &all.latency)].into_iter())
            }
            (Scope::By { by, values }, Style::Histograms) => write_tables(f, self.room, by, values),
            (Scope::By { by, values }, Style::Percentiles) => {
                let title = if values.iter().any(|value| value.layer.is_some()) {
                    format!("{:<LAYER_WIDTH$} {by}", "layer")
                } else {
                    (*by).to_owned()
                };
                let names: Vec<String> = values.iter().map(Value::name).collect();
                let lines = names.iter().zip(values);
                let lines = lines.map(|(name, value)| (name.as_str(), &value.distribution.latency));
                write_percentiles(f, self.room, &title, lines)
            }
        }
    }
}

/// Writes each value's name and its table, with an empty line between values. Without values, writes a table
/// without I/Os.
fn write_tables(f: &mut impl fmt::Write, room: Room, by: &str, values: &[Value]) -> fmt::Result {
    if values.is_empty() {
        return write_table(f, &labelled(&[]));
    }
    for (
        at,
        Value {
            value,
            layer,
            distribution,
        },
    ) in values.iter().enumerate()
    {
        if at > 0 {
            writeln!(f)?;
        }
        let layer = layer.map_or_else(String::new, |layer| format!(" at {}", layer.word()));
        let value = room.name_beside(by.len() + layer.len() + " :".len(), &visible(value));
        writeln!(f, "{by} {value}{layer}:")?;
        write_table(f, &distribution.rows)?;
    }
    Ok(())
}

fn write_table(f: &mut impl fmt::Write, rows: &[Row]) -> fmt::Result {
    let most = rows.iter().map(|row| row.count).max().unwrap_or_default();
    write_line(f, [&">=(ms)", &"..", &"<(ms)", &"I/O"], "Distribution")?;
    for row in rows {
        let cells: [&dyn fmt::Display; 4] = [&row.from_ms, &"->", &row.to_ms, &row.count];
        write_line(f, cells, &"#".repeat(bar_length(row.count, most)))?;
    }
    Ok(())
}

fn write_line(f: &mut impl fmt::Write, cells: [&dyn fmt::Display; 4], bar: &str) -> fmt::Result {
    let [from, arrow, to, count] = cells.map(ToString::to_string);
    writeln!(
        f,
        "{from:>8} {arrow} {to:<8}: {count:<8} |{bar:<BAR_WIDTH$}|"
    )
}

/// The length of the bar for a count, relative to the fullest row. It is rounded up, so that every count
/// above zero has a mark.
fn bar_length(count: u64, most: u64) -> usize {
    let length = (u128::from(count) * BAR_WIDTH as u128).div_ceil(u128::from(most.max(1)));
    usize::try_from(length).unwrap_or(BAR_WIDTH)
}

#[cfg(test)]
mod tests;
