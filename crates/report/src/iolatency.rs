//! `iolatency`: a histogram of latencies in milliseconds, once per interval.
//!
//! Source: perf-tools' iolatency by B. Gregg, its man page and example file.
//!
//! Differences: an I/O that outlasts an interval is not forgotten. A line at the end names I/O that
//! was in flight for the whole interval, or at the end of the last one. A row holds what its label
//! says, `>=` and `<`; the original puts a power of two into the row below ([`Boundary::AsOriginal`]).
//!
//! Beyond the original: a histogram for each value of a breakdown, each below a line that names it,
//! and a table of percentiles in place of histograms.

use std::fmt;

use dashpot_engine::histogram::{Histogram, Unit};
use dashpot_observe::{InFlight, Length, Mention, Percentiles};
use dashpot_rules::visible;
use serde::{Serialize, Serializer};

use super::percentiles::write_percentiles;
use super::table::Room;

/// Columns of the bar.
const BAR_WIDTH: usize = 38;
const NS_PER_MS: u64 = 1_000_000;

/// The last lines of the output.
pub const ENDING: &str = "\nEnding tracing...\n";

/// The first line of the output. `endless` if the user gave no number of intervals.
pub fn opening(interval_s: impl fmt::Display, endless: bool) -> String {
    let how_to_end = if endless { " Ctrl-C to end." } else { "" };
    format!("Tracing block I/O. Output every {interval_s} seconds.{how_to_end}\n")
}

/// In which row a latency of exactly 2^k ms is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// In the row that begins with it, as the labels say.
    AsLabelled,
    /// In the row that ends with it, as the original compares (`--compat=iolatency`).
    AsOriginal,
}

/// One interval's latencies. JSON:
/// `{"at_ns": 1764000000000000000, "elapsed_ns": 1000000000, "missed": 0,
/// "rows": [{"from_ns": 0, "to_ns": 999999, "count": 5}, …], "latency": percentiles,
/// "in_flight": in flight, "lost": 0}`, of the kernel's disks with `"unmatched": 0`; of a breakdown, in place of rows and latency,
/// `"by": "device", "values": [{"value": "vda", "rows": […], "latency": percentiles}, …]`.
#[derive(Clone, Debug, Serialize)]
pub struct Interval {
    /// The interval's end.
    pub at_ns: u64,
    /// The time of day at the interval's end, `HH:MM:SS`, if the text is to have it (`-T`).
    #[serde(skip)]
    pub time: Option<String>,
    /// How long the interval was, and what it misses.
    #[serde(flatten)]
    pub length: Length,
    /// The latencies, together or by value.
    #[serde(flatten)]
    pub scope: Scope,
    /// What was in flight at the interval's end.
    pub in_flight: InFlight,
    /// Number of events that are missing because a buffer was full.
    pub lost: u64,
    /// Number of completions whose start was not seen; `None` if the source sees every start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<u64>,
    /// How the text shows latencies; JSON has both.
    #[serde(skip)]
    pub style: Style,
    /// The part of these that the remark mentions; JSON has all.
    #[serde(skip)]
    pub mention: Mention,
    /// How wide the text may be.
    #[serde(skip)]
    pub room: Room,
}

/// The latencies of all I/O, or of each value of a breakdown.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Scope {
    /// All together.
    All(Distribution),
    /// Those of each value, in display order.
    By {
        /// What the values are of: `device`, `client`, …
        by: &'static str,
        /// The values that are shown.
        values: Vec<Value>,
    },
}

/// The latencies of a value of a breakdown.
#[derive(Clone, Debug, Serialize)]
pub struct Value {
    /// The value's name.
    pub value: String,
    /// Its latencies.
    #[serde(flatten)]
    pub distribution: Distribution,
}

/// Latencies as both styles show them.
#[derive(Clone, Debug, Serialize)]
pub struct Distribution {
    /// From 0 ms to the highest row that counted anything; at least one.
    pub rows: Vec<Row>,
    /// The same latencies as percentiles.
    pub latency: Percentiles,
}

/// How latencies are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As the original does.
    #[default]
    Histograms,
    /// A line for each distribution.
    Percentiles,
}

/// Latencies between two powers of two. In JSON the edges are as labelled, [`Boundary`] aside.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The lower edge.
    pub from_ms: u64,
    /// The upper edge.
    pub to_ms: u64,
    /// I/Os between the two.
    pub count: u64,
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (from_ns, end_ns) = [self.from_ms, self.to_ms]
            .map(|ms| ms.saturating_mul(NS_PER_MS))
            .into();
        super::serialize_row(from_ns, end_ns - 1, self.count, serializer)
    }
}

impl Value {
    /// A line of a table of percentiles.
    fn line(&self) -> (&str, &Percentiles) {
        (&self.value, &self.distribution.latency)
    }
}

impl Distribution {
    /// Puts latencies into rows.
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

impl Interval {
    /// What is to be said of the zios in flight, beside the text: that is the original tool's, byte
    /// for byte, whatever is in flight.
    pub fn remark(&self) -> Option<String> {
        let (mention, elapsed) = (self.mention, self.length.elapsed);
        match self.slowest() {
            Some(ended) => self.in_flight.line_beside(mention, elapsed, ended),
            None => self.in_flight.line(mention, elapsed),
        }
    }

    /// The latencies of those that have ended; of a breakdown, those with the longest tail.
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

/// Puts labels on the rows of a power-of-two view. Without any I/O there is one row.
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
    /// An empty line, the time if there is one, the table or tables.
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
                write_percentiles(f, self.room, by, values.iter().map(Value::line))
            }
        }
    }
}

/// A table for each value below its name, with an empty line between them; of no value, the table of
/// no I/O.
fn write_tables(f: &mut impl fmt::Write, room: Room, by: &str, values: &[Value]) -> fmt::Result {
    if values.is_empty() {
        return write_table(f, &labelled(&[]));
    }
    for (
        at,
        Value {
            value,
            distribution,
        },
    ) in values.iter().enumerate()
    {
        if at > 0 {
            writeln!(f)?;
        }
        let value = room.name_beside(by.len() + " :".len(), &visible(value));
        writeln!(f, "{by} {value}:")?;
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

/// The share of the fullest row, rounded up: whatever counted anything has a mark.
fn bar_length(count: u64, most: u64) -> usize {
    let length = (u128::from(count) * BAR_WIDTH as u128).div_ceil(u128::from(most.max(1)));
    usize::try_from(length).unwrap_or(BAR_WIDTH)
}

#[cfg(test)]
mod tests;
