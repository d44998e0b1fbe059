//! `iostat`: averages per disk over an interval.
//!
//! Source: sysstat 12's iostat, with its columns, widths and units.
//!
//! Differences: dashpot's disks never merge I/O, so their merge columns are zero. The times of dashpot's
//! disks are exact, whereas the kernel counts whole milliseconds. A line at the end mentions I/O that has
//! been in flight for the whole interval; in the first and the last report, it mentions all I/O in flight.
//! The extended reports also mention the depth, if the clients kept the same depth for nearly all of the busy
//! time. As in the kernel's statistics, writing zeroes counts as writing, and a trim is a discard.
//!
//! If a screen is too narrow for all columns, the basic report becomes sysstat's short report, and the
//! extended report shows only those columns that fit into 80 characters.

use std::fmt;
use std::time::Duration;

use clap::Args;
use dashpot_api::Depth;
use dashpot_cli::reports::{DeviceArgs, LayerArgs, OutputArgs, Pace, PeriodArgs, split_words};
use dashpot_engine::{DepthTimes, Op};
use dashpot_observe::{
    DeviceInterval, InFlight, Layer, Length, Mention, Question, Schedule, Seen, Subject,
};
use dashpot_rules::{Decimal, ParseError};
use dashpot_text::depth::bound;
use dashpot_text::surface::Surface;
use dashpot_text::table::{Room, prose_within};
use serde::{Serialize, Serializer};

use crate::asked::{Over, ReportRequest, Shared, since_start};
use crate::report::{Page, Pages, Report, Tells};

/// Show rates, sizes, waits and queues, as sysstat's iostat does
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The first report, since the kernel's boot or the daemon's start, counts as one.

Example:\n  dashpot iostat -x 1\n\
Example: the kernel's disks; this needs no root\n  dashpot iostat -x -k 1\n\
Example: two disks, every second, five times\n  dashpot iostat -y -d c1t1d0 c1t2d0 1 5")]
pub struct IostatArgs {
    /// Show waits and queues, too
    #[arg(short = 'x')]
    pub extended: bool,
    /// Show fewer columns: writes with discards; with -x, all operations together
    #[arg(short = 's')]
    pub short: bool,
    /// Leave out the first report, which covers the time since the disks' start
    #[arg(short = 'y')]
    pub no_past: bool,
    /// Show all columns and whole names, even on a narrow terminal
    #[arg(long, conflicts_with = "short")]
    pub wide: bool,
    #[command(flatten)]
    device: DeviceArgs,
    /// The layer.
    #[command(flatten)]
    pub at: LayerArgs,
    /// The recording, and the period, that the report covers.
    #[command(flatten)]
    pub period: PeriodArgs,
    /// More disks; then seconds between reports, or a time such as 500ms, and the
    /// number of reports [until Ctrl-C]
    #[arg(value_name = "DEVICE… INTERVAL COUNT", allow_negative_numbers = true)]
    words: Vec<String>,
    /// The formats and the HTML file.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl IostatArgs {
    /// The disks, with those of `-d` first, and the pace. In sysstat, `-d` takes no disk, so users write `-d
    /// 1 5`. A number after `-d` is therefore the interval; the name of a disk always has a letter.
    pub fn split(&self) -> Result<(DeviceArgs, Pace), ParseError> {
        let mut device = self.device.clone();
        let is_number = |word: &String| Decimal::parse(word).is_some();
        let mut words: Vec<String> = device
            .devices
            .extract_if(.., |word| is_number(word))
            .collect();
        words.extend_from_slice(&self.words);
        let (more, pace) = split_words(&words)?;
        device.devices.extend_from_slice(more);
        Ok((device, pace))
    }
}

impl ReportRequest for IostatArgs {
    fn report(&self, over: &Over) -> Result<Box<dyn Report>, ParseError> {
        if self.at.layer == Layer::Store {
            return Err(ParseError::new(
                "a store has no queue that iostat could show: take iolatency or quantize",
            ));
        }
        over.check_recording(&self.period)?;
        let (_, pace) = self.split()?;
        Ok(Box::new(IostatReport {
            layer: self.at.layer,
            schedule: match over {
                // A recording has no figures for the time since the start of its devices.
                Over::Recorded(_) => over.schedule(&pace, dashpot_engine::Duration::MAX),
                Over::Live(_) | Over::Simulation if self.no_past => without_past(&pace)?,
                Over::Live(_) | Over::Simulation => since_start(&pace),
            },
            columns: match (self.extended, self.short) {
                (false, false) => Columns::Basic,
                (true, false) => Columns::Extended,
                (false, true) => Columns::BasicShort,
                (true, true) => Columns::ExtendedShort,
            },
            wide: self.wide,
        }))
    }

    fn shared(&self) -> Shared<'_> {
        Shared {
            period: Some(&self.period),
            ..Shared::of(self.split().map(|(devices, _)| devices), &self.output)
        }
    }
}

fn without_past(pace: &Pace) -> Result<Schedule, ParseError> {
    let interval = pace.interval.ok_or_else(|| {
        ParseError::new("-y leaves no report without an interval: add one, such as 'iostat -y 1 1'")
    })?;
    Ok(Schedule::every(interval, pace.count))
}

/// The report: averages of disks over intervals. If the schedule says so, an additional first interval covers
/// the time since the devices' start.
#[derive(Clone, Debug)]
pub struct IostatReport {
    /// The layer: disks or volumes.
    pub layer: Layer,
    /// The intervals of the report.
    pub schedule: Schedule,
    /// The columns that the report shows.
    pub columns: Columns,
    /// Whether even a narrow terminal gets all columns.
    pub wide: bool,
}

impl Report for IostatReport {
    fn question(&self) -> Question {
        Question::of(Subject::Averages(self.layer))
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn tells(&self) -> Tells {
        Tells::LENGTH
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        vec![Box::new(Iostat {
            columns: self.columns,
            disks: seen.at(self.layer).iter().map(disk).collect(),
            mention: seen.mention(),
            length: seen.length(),
            is_since_start: self.schedule.since_start && seen.length().asked.is_none(),
            room: surface.room(self.wide),
        })]
    }
}

/// As in the kernel's statistics, writing zeroes counts as writing, and a trim is a discard.
fn disk(interval: &DeviceInterval) -> Interval {
    Interval {
        disk: interval.device.clone(),
        elapsed: interval.elapsed,
        reads: completed(interval, &[Op::Read]),
        writes: completed(interval, &[Op::Write, Op::Zero]),
        discards: completed(interval, &[Op::Trim]),
        flushes: completed(interval, &[Op::Flush, Op::Sync]),
        depth_time: interval.depth_time_ns,
        busy: interval.busy,
        depth: interval
            .depths
            .as_ref()
            .map(DepthTimes::summary)
            .map(Depth::of),
        in_flight: interval.in_flight.clone(),
    }
}

fn completed(interval: &DeviceInterval, ops: &[Op]) -> Completed {
    let mut all = Completed::default();
    for op in interval.ops.iter().filter(|op| op.kind.is_any(ops)) {
        all = all.with(&Completed {
            zios: op.counts.completed,
            bytes: op.counts.bytes,
            time_ns: op.time_ns,
            merged: op.counts.merged,
        });
    }
    all
}

/// The I/O of a disk in an interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// The disk's name.
    pub disk: String,
    /// How much of the interval the source knows; zero if it knows nothing.
    pub elapsed: Duration,
    pub reads: Completed,
    /// Writes that completed, including writes of zeroes.
    pub writes: Completed,
    /// Trims that completed.
    pub discards: Completed,
    /// Flushes that completed. Flushes have no bytes.
    pub flushes: Completed,
    /// The integral of the number of zios in flight, in zio-nanoseconds.
    pub depth_time: u128,
    /// The time during which at least one zio was in flight.
    pub busy: Duration,
    /// The highest depth, and the depth that the disk had for the longest time; `None` for the kernel's
    /// disks, whose counters show neither.
    pub depth: Option<Depth>,
    /// The I/Os in flight at the interval's end.
    pub in_flight: InFlight,
}

/// The completed zios of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completed {
    /// The number of zios.
    pub zios: u64,
    /// The total size of these zios, in bytes.
    pub bytes: u64,
    /// The sum of these zios' latencies in nanoseconds.
    pub time_ns: u128,
    /// How many I/Os were merged into other I/Os before they were issued.
    pub merged: u64,
}

/// The columns to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Transfers and throughput.
    Basic,
    /// Rates, latencies and sizes of each operation, and also queue and utilisation (`-x`).
    Extended,
    /// The basic columns, but with writes and discards added up in one column (`-s`).
    BasicShort,
    /// Figures of all operations together, queue and utilisation (`-xs`).
    ExtendedShort,
}

/// The report of an interval. JSON: a list with an object for each disk: `{"device": "c1t1d0",
/// "elapsed_ns": 1000000000, "missed": 0, "reads": {"n": 103, "ops_per_s": 103.0, "bytes_per_s": …,
/// "merged_per_s": …, "merged_percent": …, "mean_ns": …, "mean_bytes": …}, "writes": …, "discards":
/// …, "flushes": …, "mean_in_flight": 0.4, "busy_percent": 1.6, "depth": {"most": 4, "usual": 1,
/// "usual_percent": 90}, "in_flight": in flight}`. The JSON has the figures of all columns, not
/// rounded; `depth` is null for the kernel's disks. An average over no zios is null; the text has 0.00, as
/// sysstat does. If the source knows nothing of the interval, all figures are null, and `-` in the text.
#[derive(Clone, Debug)]
pub struct Iostat {
    /// The columns that the text shows.
    pub columns: Columns,
    /// The disks, in display order.
    pub disks: Vec<Interval>,
    /// The zios in flight that the text mentions; JSON has all zios in flight.
    pub mention: Mention,
    /// The length of the interval, and how many intervals are missing because this one ended too late.
    pub length: Length,
    /// Whether the figures cover the time since the disks' start.
    pub is_since_start: bool,
    /// The width that the text may have.
    pub room: Room,
}

impl Completed {
    /// The figures of these zios and of the `other` zios, added up.
    fn with(&self, other: &Completed) -> Completed {
        Completed {
            zios: self.zios + other.zios,
            bytes: self.bytes + other.bytes,
            time_ns: self.time_ns + other.time_ns,
            merged: self.merged + other.merged,
        }
    }

    fn kilobytes(&self) -> f64 {
        self.bytes as f64 / 1_024.0
    }

    /// A sum divided by the number of I/Os; `None` without I/Os.
    fn mean(&self, sum: f64) -> Option<f64> {
        (self.zios > 0).then(|| sum / self.zios as f64)
    }

    /// The mean latency in milliseconds.
    fn await_ms(&self) -> Option<f64> {
        Some(self.mean(self.time_ns as f64)? / 1e6)
    }

    /// The percentage of I/Os that were merged into other I/Os.
    fn merged_percent(&self) -> Option<f64> {
        let all = self.zios + self.merged;
        Some(self.merged as f64 / all.max(1) as f64 * 100.0)
    }

    /// The mean size in kilobytes.
    fn size(&self) -> Option<f64> {
        self.mean(self.kilobytes())
    }
}

impl Interval {
    /// `amount` per second; `None` if no time has passed.
    fn rate(&self, amount: f64) -> Option<f64> {
        (!self.elapsed.is_zero()).then(|| amount / self.elapsed.as_secs_f64())
    }

    /// Whether the source knows nothing of the interval, so that no figure of it is zero.
    fn is_unknown(&self) -> bool {
        self.elapsed.is_zero()
    }

    /// The transfers as sysstat counts them, without flushes.
    fn transfers(&self) -> Completed {
        self.reads.with(&self.writes).with(&self.discards)
    }

    fn zio_rate(&self, completed: &Completed) -> Option<f64> {
        self.rate(completed.zios as f64)
    }

    fn merge_rate(&self, completed: &Completed) -> Option<f64> {
        self.rate(completed.merged as f64)
    }

    fn kilobyte_rate(&self, completed: &Completed) -> Option<f64> {
        self.rate(completed.kilobytes())
    }

    fn mean_in_flight(&self) -> Option<f64> {
        self.rate(self.depth_time as f64 / 1e9)
    }

    fn busy_percent(&self) -> Option<f64> {
        Some(self.rate(self.busy.as_secs_f64())? * 100.0)
    }

    /// A line about the depth, if the clients kept the same depth for most of the time.
    fn bound(&self) -> Option<String> {
        let zios = self.transfers().with(&self.flushes).zios;
        let bound = bound(self.depth.as_ref()?, zios)?;
        Some(format!("{}: {bound}.\n", self.disk))
    }
}

struct Column {
    title: &'static str,
    width: usize,
    decimals: usize,
    /// Whether a narrow screen shows the column.
    narrow: bool,
    /// The column's figure, or `None` for an average without I/Os.
    figure: fn(&Interval) -> Option<f64>,
}

/// A column of figures with two decimals.
const fn column(title: &'static str, width: usize, figure: fn(&Interval) -> Option<f64>) -> Column {
    Column {
        title,
        width,
        decimals: 2,
        narrow: true,
        figure,
    }
}

/// A column for wide screens only.
const fn wide(title: &'static str, width: usize, figure: fn(&Interval) -> Option<f64>) -> Column {
    Column {
        narrow: false,
        ..column(title, width, figure)
    }
}

/// A column of whole kilobytes.
const fn total(title: &'static str, figure: fn(&Interval) -> Option<f64>) -> Column {
    Column {
        decimals: 0,
        ..column(title, 10, figure)
    }
}

const BASIC: [Column; 7] = [
    column("tps", 8, |i| i.zio_rate(&i.transfers())),
    column("kB_read/s", 12, |i| i.kilobyte_rate(&i.reads)),
    column("kB_wrtn/s", 12, |i| i.kilobyte_rate(&i.writes)),
    column("kB_dscd/s", 12, |i| i.kilobyte_rate(&i.discards)),
    total("kB_read", |i| Some(i.reads.kilobytes().floor())),
    total("kB_wrtn", |i| Some(i.writes.kilobytes().floor())),
    total("kB_dscd", |i| Some(i.discards.kilobytes().floor())),
];

const BASIC_SHORT: [Column; 5] = [
    column("tps", 8, |i| i.zio_rate(&i.transfers())),
    column("kB_read/s", 12, |i| i.kilobyte_rate(&i.reads)),
    column("kB_w+d/s", 12, |i| {
        i.kilobyte_rate(&i.writes.with(&i.discards))
    }),
    total("kB_read", |i| Some(i.reads.kilobytes().floor())),
    total("kB_w+d", |i| {
        Some(i.writes.with(&i.discards).kilobytes().floor())
    }),
];

const EXTENDED: [Column; 22] = [
    column("r/s", 7, |i| i.zio_rate(&i.reads)),
    column("rkB/s", 9, |i| i.kilobyte_rate(&i.reads)),
    wide("rrqm/s", 8, |i| i.merge_rate(&i.reads)),
    wide("%rrqm", 6, |i| i.reads.merged_percent()),
    column("r_await", 7, |i| i.reads.await_ms()),
    wide("rareq-sz", 8, |i| i.reads.size()),
    column("w/s", 7, |i| i.zio_rate(&i.writes)),
    column("wkB/s", 9, |i| i.kilobyte_rate(&i.writes)),
    wide("wrqm/s", 8, |i| i.merge_rate(&i.writes)),
    wide("%wrqm", 6, |i| i.writes.merged_percent()),
    column("w_await", 7, |i| i.writes.await_ms()),
    wide("wareq-sz", 8, |i| i.writes.size()),
    wide("d/s", 7, |i| i.zio_rate(&i.discards)),
    wide("dkB/s", 9, |i| i.kilobyte_rate(&i.discards)),
    wide("drqm/s", 8, |i| i.merge_rate(&i.discards)),
    wide("%drqm", 6, |i| i.discards.merged_percent()),
    wide("d_await", 7, |i| i.discards.await_ms()),
    wide("dareq-sz", 8, |i| i.discards.size()),
    wide("f/s", 7, |i| i.zio_rate(&i.flushes)),
    wide("f_await", 7, |i| i.flushes.await_ms()),
    column("aqu-sz", 7, Interval::mean_in_flight),
    column("%util", 6, Interval::busy_percent),
];

const EXTENDED_SHORT: [Column; 7] = [
    column("tps", 8, |i| i.zio_rate(&i.transfers())),
    column("kB/s", 9, |i| i.kilobyte_rate(&i.transfers())),
    column("rqm/s", 8, |i| i.merge_rate(&i.transfers())),
    column("await", 7, |i| i.transfers().await_ms()),
    column("areq-sz", 8, |i| i.transfers().size()),
    column("aqu-sz", 7, Interval::mean_in_flight),
    column("%util", 6, Interval::busy_percent),
];

impl Columns {
    fn all(self) -> &'static [Column] {
        match self {
            Columns::Basic => &BASIC,
            Columns::Extended => &EXTENDED,
            Columns::BasicShort => &BASIC_SHORT,
            Columns::ExtendedShort => &EXTENDED_SHORT,
        }
    }

    fn is_extended(self) -> bool {
        matches!(self, Columns::Extended | Columns::ExtendedShort)
    }

    /// The columns for which there is room, but at least the first one.
    fn within(self, room: Room) -> Vec<&'static Column> {
        let fits = |columns: &[&Column]| room.has(NAME_WIDTH + width(columns));
        let all: Vec<&Column> = self.all().iter().collect();
        if fits(&all) {
            return all;
        }
        let mut fewer: Vec<&Column> = match self {
            Columns::Basic => BASIC_SHORT.iter().collect(),
            _ => all.into_iter().filter(|column| column.narrow).collect(),
        };
        while fewer.len() > 1 && !fits(&fewer) {
            fewer.pop();
        }
        fewer
    }
}

/// The width of columns, including the gaps before them.
fn width(columns: &[&Column]) -> usize {
    columns.iter().map(|column| 1 + column.width).sum()
}

/// The least width of the disks' names.
const NAME_WIDTH: usize = 13;

impl Page for Iostat {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }
}

impl fmt::Display for Iostat {
    /// Writes the titles, a line for each disk, and an empty line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns.within(self.room);
        let shortened = |name| self.room.name_beside(width(&columns), name);
        let names = self.disks.iter().map(|disk| disk.disk.as_str());
        let widest = match self.room {
            // As in sysstat, a longer name shifts the other columns of its line to the right.
            Room::UNBOUNDED => NAME_WIDTH,
            room => room.widest_name(width(&columns), names).max(NAME_WIDTH),
        };
        write!(f, "{:<widest$}", "Device")?;
        for Column { title, width, .. } in &columns {
            write!(f, " {title:>width$}")?;
        }
        writeln!(f)?;
        for disk in &self.disks {
            write!(f, "{:<widest$}", shortened(&disk.disk))?;
            let mut columns = columns.iter();
            columns.try_for_each(|column| self.write_figure(f, column, disk))?;
            writeln!(f)?;
        }
        for disk in &self.disks {
            if let Some(line) = disk.in_flight.line(self.mention, disk.elapsed) {
                f.write_str(&prose_within(self.room, &line))?;
            }
        }
        if self.columns.is_extended() {
            let bounds: String = self.disks.iter().filter_map(Interval::bound).collect();
            f.write_str(&prose_within(self.room, &bounds))?;
        }
        if self.is_since_start {
            let line = "Since the disks' start; -y leaves this report out.\n";
            f.write_str(&prose_within(self.room, line))?;
        }
        if let Some(line) = self.length.line() {
            f.write_str(&prose_within(self.room, &line))?;
        }
        writeln!(f)
    }
}

impl Iostat {
    /// Writes a figure. On a screen, a number that is too long for its column loses decimals.
    fn write_figure(
        &self,
        f: &mut fmt::Formatter<'_>,
        column: &Column,
        disk: &Interval,
    ) -> fmt::Result {
        let width = column.width;
        if disk.is_unknown() {
            return write!(f, " {:>width$}", "-");
        }
        let figure = (column.figure)(disk).unwrap_or(0.0);
        let with = |decimals: usize| format!("{figure:.decimals$}");
        let text = match self.room {
            Room::UNBOUNDED => with(column.decimals),
            _ => {
                let fewer = (0..=column.decimals).rev().map(with);
                let mut fitting = fewer.filter(|text| text.len() <= width);
                fitting.next().unwrap_or_else(|| format!("{figure:.0e}"))
            }
        };
        write!(f, " {text:>width$}")
    }
}

impl Serialize for Iostat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let object = |disk| DeviceObject::of(disk, &self.length);
        serializer.collect_seq(self.disks.iter().map(object))
    }
}

/// A device as JSON.
#[derive(Serialize)]
struct DeviceObject<'a> {
    device: &'a str,
    #[serde(flatten)]
    length: Length,
    reads: KindObject,
    writes: KindObject,
    discards: KindObject,
    flushes: KindObject,
    /// The mean number of zios in flight: the text's `aqu-sz`.
    mean_in_flight: Option<f64>,
    /// The share of the time in which a zio was in flight: the text's `%util`.
    busy_percent: Option<f64>,
    /// The depth while any I/O was in flight.
    depth: Option<Depth>,
    in_flight: &'a InFlight,
}

/// The completed I/O of one kind, as JSON.
#[derive(Serialize)]
struct KindObject {
    n: Option<u64>,
    ops_per_s: Option<f64>,
    bytes_per_s: Option<f64>,
    merged_per_s: Option<f64>,
    merged_percent: Option<f64>,
    mean_ns: Option<f64>,
    mean_bytes: Option<f64>,
}

impl DeviceObject<'_> {
    fn of<'a>(disk: &'a Interval, length: &Length) -> DeviceObject<'a> {
        let kind = |completed: &Completed| KindObject {
            n: (!disk.is_unknown()).then_some(completed.zios),
            ops_per_s: disk.zio_rate(completed),
            bytes_per_s: disk.rate(completed.bytes as f64),
            merged_per_s: disk.merge_rate(completed),
            merged_percent: completed.merged_percent().filter(|_| !disk.is_unknown()),
            mean_ns: completed.mean(completed.time_ns as f64),
            mean_bytes: completed.mean(completed.bytes as f64),
        };
        DeviceObject {
            device: &disk.disk,
            length: length.seen(disk.elapsed),
            reads: kind(&disk.reads),
            writes: kind(&disk.writes),
            discards: kind(&disk.discards),
            flushes: kind(&disk.flushes),
            mean_in_flight: disk.mean_in_flight(),
            busy_percent: disk.busy_percent(),
            depth: disk.depth,
            in_flight: &disk.in_flight,
        }
    }
}

#[cfg(test)]
mod tests;
