//! `stat`: any statistic, once per interval. It shows I/Os and bytes by the values of the breakdown and, if
//! the statistic measures a number, that number's distribution.

use std::fmt;

use clap::Args;
use dashpot_cli::reports::{IoArgs, Pace};
use dashpot_engine::Duration;
use dashpot_engine::histogram::Histogram;
use dashpot_observe::{
    DeviceInterval, Dimension, Group, Groups, Length, Mention, Metric, OpInterval, Order, Past,
    Percentiles, Predicates, Question, Schedule, Seen, Statistic, Unit,
};
use dashpot_rules::{ParseError, nice_number, short_time, thousands, visible};
use dashpot_text::clock::time_of_day;
use dashpot_text::surface::Surface;
use dashpot_text::table::{Column, Room, prose_within, table, table_within};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::asked::{Over, ReportRequest, Shared};
use crate::breakdown::{is_always_apart, order_of, value_of};
use crate::figures::per_second;
use crate::left_out::LeftOut;
use crate::report::{Page, Pages, Report, Rows, Words};

/// Show I/Os, bytes, errors, latencies, busy time by any fact
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples: slow writes by client; bytes of one of the kernel's disks by process
  dashpot stat 'disk.ops[op=write][latency>=10ms][client]' 1
  dashpot stat 'disk.bytes[process]' -d /dev/vda 5 3
'dashpot stats' lists the words. Of a daemon's disks, figures by device, op,
client or size come from counters, all others from events, which may get lost.")]
pub struct StatArgs {
    /// The statistic: LAYER.METRIC[condition]...[DIMENSION]
    #[arg(value_name = "STATISTIC")]
    pub statistic: Statistic,
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

impl ReportRequest for StatArgs {
    fn report(&self, over: &Over) -> Result<Box<dyn Report>, ParseError> {
        over.check_memory(&self.of.period, &self.pace, false)?;
        let statistic = Statistic {
            predicates: self
                .statistic
                .predicates
                .clone()
                .and(self.of.filter.predicates()),
            ..self.statistic.clone()
        };
        Ok(Box::new(StatReport {
            statistic: statistic.check()?,
            schedule: over.schedule(&self.pace, INTERVAL),
            past: over.past(&self.of.period, false),
            wide: self.wide,
        }))
    }

    fn shared(&self) -> Shared<'_> {
        Shared {
            // The statistic has the conditions.
            predicates: Predicates::default(),
            ..Shared::of_ios(&self.of)
        }
    }
}

/// The default interval, as in most other reports.
const INTERVAL: Duration = Duration::from_secs(1);

/// The report: a statistic, once per interval.
#[derive(Clone, Debug)]
pub struct StatReport {
    pub statistic: Statistic,
    /// The intervals of the report.
    pub schedule: Schedule,
    /// The stretch of the past that the report covers; `None` if the report begins now.
    pub past: Option<Past>,
    /// Whether even a narrow terminal gets whole names.
    pub wide: bool,
}

impl Report for StatReport {
    fn question(&self) -> Question {
        let question = self.statistic.question();
        Question {
            by: question.by.filter(|by| !is_always_apart(*by)),
            past: self.past,
            ..question
        }
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn makes_sums(&self) -> bool {
        self.bars() != Bars::Busy
    }

    fn open(&mut self, _: &Surface) -> Pages {
        vec![Box::new(Words(self.statistic.title() + "\n\n"))]
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let devices = self.devices(seen);
        // The rows of devices are of all of them, but a disk over others is in no sum.
        let summed: Vec<&DeviceInterval> = if self.makes_sums() {
            seen.summed(self.statistic.layer).collect()
        } else {
            devices.clone()
        };
        let unit = self.statistic.measure().map(Dimension::unit);
        vec![Box::new(Stat {
            statistic: self.statistic.to_string(),
            title: self.statistic.title(),
            at_ns: seen.at_ns,
            length: seen.length(),
            all: Amount::of(&self.all(&summed), unit),
            values: self.statistic.breakdown().map(|by| match self.bars() {
                Bars::Busy => busy(by, &devices, surface),
                _ => self.values(by, unit, &devices, surface),
            }),
            left_out: LeftOut::of(seen, summed, self.not_in_sums(seen)),
            local_ns: surface.local_ns(seen.at_ns),
            mention: seen.mention(),
            bars: self.bars(),
            room: surface.room(self.wide),
        })]
    }
}

impl StatReport {
    /// The devices of the statistic. For a busy time, this function selects the devices itself. A source
    /// would select I/Os, but the I/Os that it leaves out make a device busy, too.
    fn devices<'a>(&self, seen: &'a Seen) -> Vec<&'a DeviceInterval> {
        let is_own = |name| self.bars() != Bars::Busy || self.statistic.selects_device(name);
        let layer = self.statistic.layer;
        let has_rows = self.statistic.breakdown() == Some(Dimension::Device);
        let devices: Vec<&DeviceInterval> = if self.makes_sums() && !has_rows {
            seen.summed(layer).collect()
        } else {
            seen.at(layer).iter().collect()
        };
        devices
            .into_iter()
            .filter(|interval| is_own(&interval.device))
            .collect()
    }

    fn bars(&self) -> Bars {
        match self.statistic.metric {
            Metric::Bytes => Bars::Bytes,
            Metric::Busy => Bars::Busy,
            Metric::Ops | Metric::Errors | Metric::Of(_) => Bars::Count,
        }
    }

    /// All I/O together.
    fn all(&self, devices: &[&DeviceInterval]) -> Group {
        let mut all = Groups::default();
        for op in devices.iter().flat_map(|interval| &interval.ops) {
            all.add(self.group("all", op));
        }
        all.shown(Order::ByCount).pop().unwrap_or_default()
    }

    fn values(
        &self,
        by: Dimension,
        unit: Option<Unit>,
        devices: &[&DeviceInterval],
        surface: &Surface,
    ) -> Values {
        let mut groups = Groups::default();
        for interval in devices {
            for op in &interval.ops {
                groups.add(self.group(value_of(by, &interval.device, op), op));
            }
        }
        let shown = if surface.is_for_programs() {
            groups.all(self.order(by))
        } else {
            groups.shown(self.order(by))
        };
        Values {
            by: by.word(),
            each: shown
                .into_iter()
                .map(|group| {
                    let amount = Amount::of(&group, unit);
                    (group.value, amount)
                })
                .collect(),
            with_numbers: self.statistic.measure().is_some() && self.statistic.by.is_some(),
        }
    }

    fn order(&self, by: Dimension) -> Order {
        match (order_of(by), self.statistic.metric) {
            (Order::ByCount, Metric::Bytes) => Order::ByBytes,
            (order, _) => order,
        }
    }

    fn group(&self, value: &str, op: &OpInterval) -> Group {
        let numbers = self.statistic.numbers(op);
        Group {
            value: value.to_owned(),
            count: op.counts.completed,
            bytes: op.counts.bytes,
            numbers: numbers.cloned().map(Box::new),
        }
    }
}

/// The devices that were busy or had I/O, the busiest first. A program that reads the output gets all
/// devices.
fn busy(by: Dimension, devices: &[&DeviceInterval], surface: &Surface) -> Values {
    let mut each: Vec<(String, Amount)> = devices.iter().map(|one| busy_of(one)).collect();
    let percent = |amount: &Amount| amount.busy.map_or(0.0, Busy::percent);
    if !surface.is_for_programs() {
        each.retain(|(_, amount)| amount.count > 0 || percent(amount) > 0.0);
    }
    each.sort_by(|(name, one), (other_name, other)| {
        let by_share = percent(other).total_cmp(&percent(one));
        by_share.then_with(|| name.cmp(other_name))
    });
    Values {
        by: by.word(),
        each,
        with_numbers: false,
    }
}

/// A device, and the share of the interval in which it had I/O in flight.
fn busy_of(interval: &DeviceInterval) -> (String, Amount) {
    let length = interval.elapsed.as_secs_f64();
    let percent = 100.0 * (interval.busy.as_secs_f64() / length);
    let amount = Amount {
        count: interval.ops.iter().map(|op| op.counts.completed).sum(),
        bytes: interval.ops.iter().map(|op| op.counts.bytes).sum(),
        numbers: None,
        busy: Some(Busy {
            busy_percent: (length > 0.0).then_some(percent),
        }),
    };
    (interval.device.clone(), amount)
}

/// An interval of a statistic. JSON: `{"statistic": "disk.latency[op=write][client]", "title": "Latency of
/// disk I/Os with op write, by client", "at_ns": 1764000000000000000, "elapsed_ns": 1000000000, "missed": 0,
/// "count": 5, "bytes": 20480, "numbers": numbers, "by": "client", "values": [{"value": "uid=0 pid=7",
/// "count": 5, "bytes": 20480, "numbers": numbers}, …], …}`, and the keys of [`LeftOut`]. Only a statistic
/// of a number has `numbers`: `{"n": 5, "p50_ns": 1000000, …}`. The keys of its figures end with `_bytes` if
/// the number is in bytes, and name no unit if the number is a count. Only a breakdown has `by` and `values`.
/// The values of `busy` are devices, each with its `"busy_percent"`.
#[derive(Clone, Debug, Serialize)]
pub struct Stat {
    /// The statistic's name.
    pub statistic: String,
    /// The statistic in English.
    pub title: String,
    /// The interval's end.
    pub at_ns: u64,
    /// The length of the interval, and how many intervals are missing because this one ended too late.
    #[serde(flatten)]
    pub length: Length,
    /// All selected I/Os.
    #[serde(flatten)]
    pub all: Amount,
    /// The breakdown of the selected I/Os.
    #[serde(flatten)]
    pub values: Option<Values>,
    /// What the figures leave out.
    #[serde(flatten)]
    pub left_out: LeftOut,
    /// The interval's end in local time, in nanoseconds since some midnight.
    #[serde(skip)]
    pub local_ns: u64,
    /// The I/Os in flight that the remark mentions.
    #[serde(skip)]
    pub mention: Mention,
    /// The figure that the bars show.
    #[serde(skip)]
    pub bars: Bars,
    /// The width that the text may have.
    #[serde(skip)]
    pub room: Room,
}

/// The figure that bars show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bars {
    /// The number of I/Os.
    Count,
    /// The total size of the I/Os.
    Bytes,
    /// The share of the time in which the device was busy. A bar of full length means 100 %.
    Busy,
}

/// An amount of I/O.
#[derive(Clone, Debug, Serialize)]
pub struct Amount {
    /// How many I/Os there are.
    pub count: u64,
    /// The total size of these I/Os, in bytes.
    pub bytes: u64,
    /// The distribution of the statistic's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Numbers>,
    /// How much of the time the device was busy, if the statistic is about busy time.
    #[serde(flatten)]
    pub busy: Option<Busy>,
}

/// The share of the time in which a device had I/O in flight.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Busy {
    /// The share in percent; `None` if the interval has no length.
    pub busy_percent: Option<f64>,
}

/// The values of a breakdown.
#[derive(Clone, Debug)]
pub struct Values {
    /// The word of the breakdown's dimension.
    by: &'static str,
    /// Each value, in display order.
    each: Vec<(String, Amount)>,
    /// Whether the text shows the distribution of the number for each value. It shows bars instead if the
    /// values are themselves classes of that number.
    with_numbers: bool,
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Value<'a> {
            value: &'a str,
            #[serde(flatten)]
            amount: &'a Amount,
        }
        let each = self.each.iter();
        let values: Vec<Value<'_>> = each
            .map(|(value, amount)| Value { value, amount })
            .collect();
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("by", self.by)?;
        map.serialize_entry("values", &values)?;
        map.end()
    }
}

impl Amount {
    /// The I/O of a group, with the group's numbers in this unit.
    fn of(group: &Group, unit: Option<Unit>) -> Amount {
        Amount {
            count: group.count,
            bytes: group.bytes,
            numbers: unit.map(|unit| Numbers::of(&group.numbers(), unit)),
            busy: None,
        }
    }
}

impl Busy {
    /// The share in percent, or 0 if it is not known.
    fn percent(self) -> f64 {
        self.busy_percent.unwrap_or(0.0)
    }

    fn cell(self) -> String {
        self.busy_percent
            .map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1}"))
    }
}

impl Page for Stat {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }

    fn rows(&self) -> Option<Rows> {
        let by = self.values.as_ref().map(|values| values.by);
        let mut head = vec!["at_ns", "elapsed_ns"];
        head.extend(by);
        head.extend(["count", "bytes"]);
        if let Some(numbers) = &self.all.numbers {
            head.extend(numbers.columns());
        }
        if self.bars == Bars::Busy {
            head.push("busy_percent");
        }
        let rows = match &self.values {
            None => vec![self.row(None, &self.all)],
            Some(values) => {
                let each = values.each.iter();
                each.map(|(value, amount)| self.row(Some(value), amount))
                    .collect()
            }
        };
        Some(Rows { head, rows })
    }

    fn remark(&self) -> Option<String> {
        self.left_out
            .in_flight
            .line(self.mention, self.length.elapsed)
    }
}

impl Stat {
    fn row(&self, value: Option<&String>, amount: &Amount) -> Vec<String> {
        let elapsed_ns = self.length.elapsed.as_nanos().to_string();
        let mut row = vec![self.at_ns.to_string(), elapsed_ns];
        row.extend(value.cloned());
        row.extend([amount.count.to_string(), amount.bytes.to_string()]);
        if let Some(numbers) = &amount.numbers {
            let or_empty =
                |figure: Option<u64>| figure.map_or_else(String::new, |it| it.to_string());
            row.extend(numbers.figures().map(or_empty));
        }
        let percent = |busy: Busy| {
            busy.busy_percent
                .map_or_else(String::new, |it| it.to_string())
        };
        row.extend(amount.busy.map(percent));
        row
    }

    /// A line such as `10:32:01  1.00 s: 1,234 I/Os (1,234/s), 5,054,464 bytes (4.82M/s)`.
    fn summary(&self) -> String {
        let Amount { count, bytes, .. } = self.all;
        let elapsed = self.length.elapsed;
        let rate = |amount: u64| per_second(amount, elapsed).round() as u64;
        format!(
            "{}  {:.2} s: {} I/Os ({}/s), {} bytes ({}/s)",
            time_of_day(self.local_ns),
            elapsed.as_secs_f64(),
            thousands(count),
            thousands(rate(count)),
            thousands(bytes),
            nice_number(rate(bytes))
        )
    }
}

impl fmt::Display for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&prose_within(self.room, &self.summary()))?;
        if let Some(numbers) = &self.all.numbers
            && self.all.count > 0
        {
            f.write_str(&prose_within(self.room, &numbers.sentence()))?;
        }
        match &self.values {
            Some(values) if !values.each.is_empty() => {
                writeln!(f, "{}", self.table(values))
            }
            _ => Ok(()),
        }
    }
}

impl Stat {
    fn table(&self, values: &Values) -> String {
        let mut columns = vec![
            Column::Text(values.by),
            Column::Figure("I/Os"),
            Column::Figure("%"),
            Column::Figure("bytes"),
            Column::Figure("%"),
        ];
        let taken = if values.with_numbers {
            FIGURES_WIDTH + NUMBERS_WIDTH
        } else {
            FIGURES_WIDTH + 2 + BAR_WIDTH
        };
        let busy = (self.bars == Bars::Busy).then_some(Column::Figure("busy %"));
        let taken = taken + busy.map_or(0, |_| BUSY_WIDTH);
        columns.extend(busy);
        if values.with_numbers {
            columns.extend(["p50", "p90", "p99", "max"].map(Column::Figure));
        } else {
            columns.push(Column::Text(""));
        }
        let whole = table(&columns, self.rows(values, |name| name.to_owned()));
        // `taken` is the most that the figures may take: they often leave room for whole names.
        if whole
            .lines()
            .all(|line| self.room.has(line.chars().count()))
        {
            whole
        } else {
            let short = |name: &str| self.room.name_beside(taken, name);
            table_within(self.room, &columns, self.rows(values, short))
        }
    }

    fn rows(&self, values: &Values, named: impl Fn(&str) -> String) -> Vec<Vec<String>> {
        let rows = values.each.iter().map(|(value, amount)| {
            let mut row = vec![named(&visible(value))];
            row.extend(self.shares(amount));
            match (&amount.numbers, values.with_numbers) {
                (Some(numbers), true) => row.extend(numbers.cells()),
                _ => {
                    row.extend(amount.busy.map(Busy::cell));
                    row.push(self.bar(values, amount));
                }
            }
            row
        });
        rows.collect()
    }

    fn shares(&self, amount: &Amount) -> [String; 4] {
        let share = |part: u64, all: u64| match all {
            0 => "-".to_owned(),
            _ => format!("{:.1}", 100.0 * part as f64 / all as f64),
        };
        [
            thousands(amount.count),
            share(amount.count, self.all.count),
            nice_number(amount.bytes),
            share(amount.bytes, self.all.bytes),
        ]
    }

    /// A bar in proportion to the amount. The full length stands for the largest amount or, for busy time,
    /// for 100 %.
    fn bar(&self, values: &Values, amount: &Amount) -> String {
        let length = |amount: &Amount| match self.bars {
            Bars::Bytes => amount.bytes,
            Bars::Count => amount.count,
            Bars::Busy => amount.busy.map_or(0, |busy| busy.percent().round() as u64),
        };
        let most = match self.bars {
            Bars::Busy => Some(100),
            _ => values.each.iter().map(|(_, amount)| length(amount)).max(),
        };
        let part = u128::from(length(amount)) * BAR_WIDTH as u128;
        "#".repeat(part.div_ceil(u128::from(most.unwrap_or(0).max(1))) as usize)
    }
}

/// The width of the longest bar.
const BAR_WIDTH: usize = 24;
/// The width of the columns for I/Os, bytes and their shares, with the gaps before them.
const FIGURES_WIDTH: usize = 11 + 7 + 8 + 7;
/// The width of the column for a busy time, with the gap before it.
const BUSY_WIDTH: usize = 8;
/// The width of the columns for percentiles, with the gaps before them.
const NUMBERS_WIDTH: usize = 4 * 9;

/// Percentiles of times, bytes or counts.
#[derive(Clone, Debug)]
pub struct Numbers {
    percentiles: Percentiles,
    unit: Unit,
}

impl Numbers {
    /// The percentiles of a histogram whose numbers have this unit.
    pub fn of(numbers: &Histogram, unit: Unit) -> Numbers {
        Numbers {
            percentiles: Percentiles::of(numbers),
            unit,
        }
    }

    /// The names of the figures, with the unit.
    pub fn columns(&self) -> [&'static str; 6] {
        match self.unit {
            Unit::Time => ["p50_ns", "p90_ns", "p95_ns", "p99_ns", "p99_9_ns", "max_ns"],
            Unit::Bytes => [
                "p50_bytes",
                "p90_bytes",
                "p95_bytes",
                "p99_bytes",
                "p99_9_bytes",
                "max_bytes",
            ],
            Unit::Count | Unit::Name => ["p50", "p90", "p95", "p99", "p99_9", "max"],
        }
    }

    /// The figures; a figure is `None` if there are too few I/Os for it.
    pub fn figures(&self) -> [Option<u64>; 6] {
        self.percentiles.figures()
    }

    /// The median, the 90th and the 99th percentile and the greatest number, as a table shows them.
    pub fn cells(&self) -> [String; 4] {
        let [p50, p90, _, p99, _, max] = self.figures().map(|figure| shown(figure, self.unit));
        [p50, p90, p99, max]
    }

    /// A sentence such as `p50 10.0ms, p90 10.1ms, p99 -, max 10.2ms`.
    pub fn sentence(&self) -> String {
        let [p50, p90, p99, max] = self.cells();
        format!("p50 {p50}, p90 {p90}, p99 {p99}, max {max}")
    }
}

/// A figure as a table shows it.
fn shown(figure: Option<u64>, unit: Unit) -> String {
    match (figure, unit) {
        (None, _) => "-".to_owned(),
        (Some(ns), Unit::Time) => short_time(ns),
        (Some(bytes), Unit::Bytes) => nice_number(bytes),
        (Some(count), Unit::Count | Unit::Name) => count.to_string(),
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("n", &self.percentiles.n)?;
        for (name, figure) in self.columns().iter().zip(self.figures()) {
            map.serialize_entry(name, &figure)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
