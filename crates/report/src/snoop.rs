//! `snoop`: a line for each finished I/O, as in bcc's biosnoop and perf-tools' iosnoop, with the waits in
//! which the I/O spent its time. Columns have fixed widths, so that the lines are aligned although each is
//! printed as soon as its I/O finishes.

use std::fmt;

use clap::Args;
use dashpot_api::ZioWaits;
use dashpot_cli::reports::{IoArgs, LayerArgs};
use dashpot_engine::{Duration, OpSet, Waits};
use dashpot_observe::{
    Dimension, FinishedIo, IoWaits, Knows, Layer, Question, Schedule, Seen, Subject, Thread, Wanted,
};
use dashpot_rules::{
    ParseError, nice_number, parse_duration, parse_ops, parse_span, short_time, visible,
};
use dashpot_text::clock::time_of_day_ms;
use dashpot_text::surface::Surface;
use dashpot_text::table::Room;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::asked::{Over, ReportRequest, Shared};
use crate::report::{Page, Pages, Report, Tells, Words};

/// Show I/Os as they finish: their waits, and the rules behind them
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
MOSTLY is the longest of the waits that add up to TOTAL; --wide shows them all:
RECV for the payload, SUSPEND of the disk, STORE at work, HOLD by rules, LATE
after those until dashpot replied, REPLY until the client took the reply. If a
rule held the I/O, LATE is dashpot's own error, stops of the host included. If
no rule did, LATE is the work of the shard, and MOSTLY calls it SHARD. RULE has
the rule that decided, and its lane; write+f is a write with FUA. On the
kernel's disks, QUEUE is the time until the driver got the I/O, DEVICE the rest.

Example: the I/Os that take 10 ms or longer, and why
  dashpot snoop --min 10ms
Example: the next 20 writes to a disk of the kernel, with processes and threads
  sudo dashpot snoop -d /dev/vda --op write -n 20 --wide
Example: the I/Os of 10 ms or longer in a recording
  dashpot snoop --in today.rec --min 10ms")]
pub struct SnoopArgs {
    /// The layer.
    #[command(flatten)]
    pub at: LayerArgs,
    /// Only I/Os that took at least this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    #[arg(allow_hyphen_values = true)]
    pub min: Option<Duration>,
    /// Only these operations: read, write, ...
    #[arg(long, value_name = "OPS", value_parser = parse_ops)]
    pub op: Option<OpSet>,
    /// How long to watch [until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub lasts: Option<Duration>,
    /// End after this many lines
    #[arg(short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Show every wait, offset and thread; shorten no name
    #[arg(long)]
    pub wide: bool,
    /// The I/Os, and the formats.
    #[command(flatten)]
    pub of: IoArgs,
}

impl ReportRequest for SnoopArgs {
    fn report(&self, over: &Over) -> Result<Box<dyn Report>, ParseError> {
        if self.at.layer == Layer::Store {
            return Err(ParseError::new(
                "a store has no I/Os of its own: see STORE in '--layer disk'",
            ));
        }
        if self.of.period.last.is_some() && over.is_live() {
            return Err(ParseError::new(
                "--last: a daemon remembers no single I/Os: name a recording, --in REC, or serve with --record",
            ));
        }
        if self.lasts.is_some() && self.of.period.recording.is_some() {
            return Err(ParseError::new(
                "--for is about live disks: for a part of a recording, use --from, --to or --last",
            ));
        }
        let schedule = Schedule::once(self.lasts.unwrap_or(Duration::MAX));
        let wanted = wanted(self);
        let lines = lines(over, self.at.layer);
        Ok(Box::new(SnoopReport::new(
            schedule, wanted, lines, self.wide,
        )))
    }

    fn shared(&self) -> Shared<'_> {
        Shared::of_ios(&self.of)
    }
}

/// The I/Os that the user wants.
fn wanted(args: &SnoopArgs) -> Wanted {
    Wanted {
        layer: args.at.layer,
        ops: args.op,
        min_ns: args.min.unwrap_or_default().as_nanos(),
        count: args.count,
    }
}

fn lines(over: &Over, layer: Layer) -> Lines {
    match over {
        Over::Simulation => Lines::OfThePast,
        Over::Live(on) | Over::Recorded(on) => match on.knows {
            _ if layer == Layer::Fs => Lines::OfCalls(on.names.clone()),
            Knows::Kernel => Lines::OfKernel(on.names.clone()),
            Knows::Zios => Lines::OfDisks(on.names.clone()),
        },
    }
}

/// The report: a line for each finished I/O.
pub struct SnoopReport {
    schedule: Schedule,
    wanted: Wanted,
    lines: Lines,
    /// Whether a line shows every wait and the offset.
    wide: bool,
    /// The table, once its columns are known.
    table: Option<Table>,
}

/// The kind of I/Os for which a report has lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Zios that finish from now on, on disks with these names.
    OfDisks(Vec<String>),
    /// I/Os that finish from now on, on devices of the kernel with these names.
    OfKernel(Vec<String>),
    /// Calls of this host's processes that finish from now on, on devices with these names.
    OfCalls(Vec<String>),
    /// Zios that are all known when the table begins, so that the table can omit waits that none of them had.
    OfThePast,
}

/// A finished I/O, and its line of the table.
struct Finished {
    io: FinishedIo,
    line: String,
}

/// A count of I/Os that are missing. JSON: `{"lost": 12}`.
#[derive(Serialize)]
struct Missed {
    lost: u64,
}

/// A count of sync calls on unknown devices. JSON: `{"unplaced": 12}`.
#[derive(Serialize)]
struct Unplaced {
    unplaced: u64,
}

impl SnoopReport {
    /// Makes a report. Unless it is `wide`, its lines are shortened to fit the terminal.
    pub fn new(schedule: Schedule, wanted: Wanted, lines: Lines, wide: bool) -> SnoopReport {
        SnoopReport {
            schedule,
            wanted,
            lines,
            wide,
            table: None,
        }
    }

    /// A table with the columns that suit the report and the I/Os seen so far.
    fn table_of(&self, ios: &[FinishedIo], surface: &Surface) -> Table {
        let waits = || match &self.lines {
            Lines::OfThePast => waits_of(ios),
            _ => waits_of_lone_disks(),
        };
        let columns = match &self.lines {
            Lines::OfKernel(_) => of_kernel(self.wide),
            Lines::OfCalls(_) => of_calls(self.wide),
            _ => of_zios(waits(), self.wide),
        };
        let names: Vec<&str> = match &self.lines {
            Lines::OfDisks(names) | Lines::OfKernel(names) | Lines::OfCalls(names) => {
                names.iter().map(String::as_str).collect()
            }
            Lines::OfThePast => ios.iter().map(|io| &*io.device).collect(),
        };
        Table::new(
            names.into_iter(),
            columns,
            surface.room(self.wide),
            surface.zone_ns,
        )
    }

    /// Chooses the columns, and returns the line of titles.
    fn begin(&mut self, ios: &[FinishedIo], surface: &Surface) -> Pages {
        let table = self.table.insert(self.table_of(ios, surface));
        vec![Box::new(Words(table.header()))]
    }
}

impl Report for SnoopReport {
    fn question(&self) -> Question {
        Question::of(Subject::Ios(self.wanted))
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn tells(&self) -> Tells {
        Tells::ALL
    }

    fn open(&mut self, surface: &Surface) -> Pages {
        match self.lines {
            Lines::OfThePast => Pages::new(),
            _ => self.begin(&[], surface),
        }
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let mut pages = match self.table {
            None => self.begin(&seen.ios, surface),
            Some(_) => Pages::new(),
        };
        if let Some(table) = &self.table {
            pages.extend(seen.ios.iter().map(|io| finished(table, io)));
        }
        if seen.left_out > 0 {
            let more = format!(
                "{} more are not shown: see --min, --events.\n",
                seen.left_out
            );
            pages.push(Box::new(Words(more)));
        }
        if seen.lost > 0 {
            pages.push(Box::new(Missed { lost: seen.lost }));
        }
        if let Some(unplaced @ 1..) = seen.unplaced {
            pages.push(Box::new(Unplaced { unplaced }));
        }
        pages
    }
}

fn finished(table: &Table, io: &FinishedIo) -> Box<dyn Page> {
    Box::new(Finished {
        line: table.line(io),
        io: io.clone(),
    })
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl Serialize for Finished {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        line(&self.io).serialize(serializer)
    }
}

impl Page for Finished {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }
}

impl fmt::Display for Unplaced {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Page for Unplaced {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Page for Missed {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }

    fn remark(&self) -> Option<String> {
        let lost = self.lost;
        Some(format!("{lost} I/Os are missing here: they came too fast."))
    }
}

/// The waits that zios on disks outside of pools can have.
fn waits_of_lone_disks() -> Vec<Dimension> {
    let of_pools = |wait: &Dimension| matches!(wait, Dimension::Throttle | Dimension::Queue);
    let waits = Dimension::WAITS.into_iter();
    waits.filter(|wait| !of_pools(wait)).collect()
}

/// The waits that any of these I/Os had.
fn waits_of(ios: &[FinishedIo]) -> Vec<Dimension> {
    let is_met = |wait: &Dimension| ios.iter().any(|io| waited_ns(*wait, io) > 0);
    Dimension::WAITS.into_iter().filter(is_met).collect()
}

fn waited_ns(wait: Dimension, io: &FinishedIo) -> u64 {
    wait.number(io).unwrap_or(0)
}

/// The column of a wait. If a zio did not wait, the cell is a dash, so that actual waits stand out.
fn waited(wait: Dimension) -> Column {
    let title = wait.word().to_uppercase();
    Column::right(&title, LATENCY_WIDTH, move |io| match waited_ns(wait, io) {
        0 => "-".to_owned(),
        ns => short_time(ns),
    })
}

fn of_zios(waits: Vec<Dimension>, wide: bool) -> Vec<Column> {
    let mut columns = vec![Column::left("OP", OP_WIDTH, op)];
    if wide {
        columns.push(offset());
    }
    columns.extend([size(), total()]);
    if wide {
        columns.extend(waits.into_iter().map(waited));
    } else {
        columns.push(Column::left("MOSTLY", MOSTLY_WIDTH, longest_wait));
    }
    columns.extend([
        Column::right("RULE", RULE_WIDTH, rule),
        Column::name("CLIENT", CLIENT_WIDTH, client),
        error(),
    ]);
    columns
}

/// The columns for I/Os of the kernel.
fn of_kernel(wide: bool) -> Vec<Column> {
    let mut columns = vec![Column::left("TYPE", TYPE_WIDTH, |io| {
        io.letters.as_deref().unwrap_or_default().to_owned()
    })];
    if wide {
        columns.push(Column::right("SECTOR", OFFSET_WIDTH, |io| {
            (io.offset_bytes / SECTOR).to_string()
        }));
    }
    let time = |ns: Option<u64>| or_dash(ns.map(short_time));
    columns.extend([
        size(),
        total(),
        Column::right("QUEUE", LATENCY_WIDTH, move |io| time(kernel_waits(io).0)),
    ]);
    if wide {
        columns.push(Column::right("DEVICE", LATENCY_WIDTH, move |io| {
            time(kernel_waits(io).1)
        }));
    }
    columns.extend(threads(wide));
    columns.push(error());
    columns
}

/// The columns for calls that sync.
fn of_calls(wide: bool) -> Vec<Column> {
    let call = |io: &FinishedIo| io.letters.as_deref().unwrap_or_default().to_owned();
    let mut columns = vec![Column::left("CALL", CALL_WIDTH, call), total()];
    columns.extend(threads(wide));
    columns.push(error());
    columns
}

/// The process of each I/O and, in a wide table, the thread.
fn threads(wide: bool) -> Vec<Column> {
    let mut columns = vec![
        id("PID", |own| own.pid),
        name("PROCESS", |own| own.process.as_deref()),
    ];
    if wide {
        columns.push(id("TID", |own| own.tid));
        columns.push(name("THREAD", |own| own.thread.as_deref()));
    }
    columns
}

fn id(title: &'static str, id: fn(&Thread) -> Option<i32>) -> Column {
    Column::right(title, ID_WIDTH, move |io| {
        or_dash(io.thread().and_then(id).map(|id| id.to_string()))
    })
}

fn name(title: &'static str, name: fn(&Thread) -> Option<&str>) -> Column {
    Column::left(title, NAME_WIDTH, move |io| {
        or_dash(io.thread().and_then(name).map(str::to_owned))
    })
}

fn offset() -> Column {
    Column::right("OFFSET", OFFSET_WIDTH, |io| io.offset_bytes.to_string())
}

fn size() -> Column {
    Column::right("SIZE", SIZE_WIDTH, |io| nice_number(io.length_bytes))
}

fn total() -> Column {
    Column::right("TOTAL", LATENCY_WIDTH, |io| {
        or_dash(io.known_total_ns().map(short_time))
    })
}

fn error() -> Column {
    Column::left("ERROR", 0, |io| io.error.clone().unwrap_or_default())
}

fn op(io: &FinishedIo) -> String {
    // Only the calls of programs have letters here: the names of the calls.
    let word = io.letters.as_deref().unwrap_or(io.kind.word());
    format!("{word}{}", if io.fua { "+f" } else { "" })
}

/// The name of a zio's longest wait. If no rule held the zio, its `lateness` is shown as a wait for the
/// shard.
fn longest_wait(io: &FinishedIo) -> String {
    let waits = Dimension::WAITS.into_iter();
    let longest = waits.max_by_key(|wait| waited_ns(*wait, io));
    match longest.filter(|wait| waited_ns(*wait, io) > 0) {
        None => "-".to_owned(),
        Some(Dimension::Late) if waited_ns(Dimension::Hold, io) == 0 => "SHARD".to_owned(),
        Some(wait) => wait.word().to_uppercase(),
    }
}

fn rule(io: &FinishedIo) -> String {
    match (io.facts.rule, io.facts.lane) {
        (Some(rule), Some(lane)) => format!("{rule}/{lane}"),
        (Some(rule), None) => rule.to_string(),
        (None, _) => "-".to_owned(),
    }
}

fn client(io: &FinishedIo) -> String {
    io.client().unwrap_or("-").to_owned()
}

/// The time before the driver got the I/O, and the time for which the driver had it.
fn kernel_waits(io: &FinishedIo) -> (Option<u64>, Option<u64>) {
    match io.waits {
        IoWaits::Zio(_) | IoWaits::Call(_) => (None, None),
        IoWaits::Kernel {
            queue_ns,
            device_ns,
        } => (queue_ns, Some(device_ns)),
    }
}

fn or_dash(word: Option<String>) -> String {
    word.unwrap_or_else(|| "-".to_owned())
}

/// The unit in which the kernel counts offsets.
const SECTOR: u64 = 512;
/// The width of an operation: `write+f` is a write with FUA.
const OP_WIDTH: usize = 7;
/// The width of a rule and its lane: `12/31`.
const RULE_WIDTH: usize = 5;
/// The width of most clients' names: `uid=1000 pid=4711`.
const CLIENT_WIDTH: usize = 17;
/// The width of the name of a wait.
const MOSTLY_WIDTH: usize = 8;
/// The width of the kernel's letters for an operation.
const TYPE_WIDTH: usize = 4;
/// The width of a call's name: `sync_file_range`.
const CALL_WIDTH: usize = 15;
/// The width of the longest thread ids on today's largest machines.
const ID_WIDTH: usize = 7;
/// The width of the longest name that the kernel allows for a thread.
const NAME_WIDTH: usize = 15;
/// The width of the longest offset on a disk of up to a terabyte.
const OFFSET_WIDTH: usize = 12;
const SIZE_WIDTH: usize = 5;
/// The width of the longest text of [`short_time`].
const LATENCY_WIDTH: usize = 6;

/// A line of the output. `at_ns` is the time at which the I/O ended. This time is counted from 1970; in a
/// simulation, from the simulation's beginning. A zio's line has the other keys of the API's finished zios,
/// and `device` is the zio's disk.
#[derive(Serialize)]
struct Line {
    at_ns: u64,
    #[serde(flatten)]
    rest: Value,
}

/// The line of an I/O.
fn line(io: &FinishedIo) -> impl Serialize {
    Line {
        at_ns: io.at_ns,
        rest: match io.waits {
            IoWaits::Zio(waits) | IoWaits::Call(waits) => zio(io, &waits),
            IoWaits::Kernel {
                queue_ns,
                device_ns,
            } => kernel(io, queue_ns, device_ns),
        },
    }
}

fn zio(io: &FinishedIo, waits: &Waits) -> Value {
    let mut line = json!({
        "device": *io.device,
        "client": io.client(),
        "op": io.kind.word(),
        "fua": io.fua,
        "offset_bytes": io.offset_bytes,
        "length_bytes": io.length_bytes,
        "depth": io.depth,
        "error": io.error,
        "arrived_ns": io.begun_ns,
        "ended_ns": io.ended_ns,
        "total_ns": io.known_total_ns(),
        "waits": ZioWaits::of(waits, io.waits.in_store_ns().is_some()),
    });
    if let (Value::Object(line), Value::Object(facts)) = (&mut line, json!(io.facts)) {
        line.extend(facts);
    }
    line
}

fn kernel(io: &FinishedIo, queue_ns: Option<u64>, device_ns: u64) -> Value {
    let thread = io.thread();
    json!({
        "device": *io.device,
        "rwbs": io.letters.as_deref(),
        "sector": io.offset_bytes / SECTOR,
        "bytes": io.length_bytes,
        "total_ns": io.total_ns(),
        "queue_ns": queue_ns,
        "device_ns": device_ns,
        "merged": io.merged,
        "requeued": io.requeued,
        "process": thread.and_then(|own| own.process.as_deref()),
        "pid": thread.and_then(|own| own.pid),
        "thread": thread.and_then(|own| own.thread.as_deref()),
        "tid": thread.and_then(|own| own.tid),
        "cgroup": thread.and_then(|own| own.cgroup.as_deref()),
        "inode": io.inode,
        "error": io.error,
    })
}

/// The side on which a column aligns its words.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

/// A column, and the function that gives its word for an I/O.
struct Column {
    title: String,
    width: usize,
    side: Side,
    word: Word,
    /// The room for a name: a longer name loses its middle. `None` for a column whose words are never
    /// shortened.
    room: Option<Room>,
}

type Word = Box<dyn Fn(&FinishedIo) -> String>;

/// A table, whose columns keep their widths.
struct Table(Vec<Column>);

impl Column {
    fn left(title: &str, width: usize, word: impl Fn(&FinishedIo) -> String + 'static) -> Column {
        Column::new(title, width, Side::Left, Box::new(word))
    }

    /// A column of names, which are shortened if the line has no room for them.
    fn name(title: &str, width: usize, word: impl Fn(&FinishedIo) -> String + 'static) -> Column {
        Column {
            room: Some(Room::UNBOUNDED),
            ..Column::left(title, width, word)
        }
    }

    fn right(title: &str, width: usize, word: impl Fn(&FinishedIo) -> String + 'static) -> Column {
        Column::new(title, width, Side::Right, Box::new(word))
    }

    fn new(title: &str, width: usize, side: Side, word: Word) -> Column {
        Column {
            width: width.max(title.len()),
            title: title.to_owned(),
            side,
            word,
            room: None,
        }
    }

    /// A word in its column. A word that is too long and is not shortened shifts the words after it.
    fn pad(&self, word: &str) -> String {
        let (word, width) = (visible(word), self.width);
        let word = match self.room {
            Some(room) => room.name_beside(0, &word).into(),
            None => word,
        };
        match self.side {
            Side::Left => format!("{word:<width$}"),
            Side::Right => format!("{word:>width$}"),
        }
    }
}

impl Table {
    /// A table of I/Os on disks with these names. The time of day and the disk come before the other columns.
    fn new<'a>(
        names: impl Iterator<Item = &'a str>,
        others: Vec<Column>,
        room: Room,
        zone_ns: i64,
    ) -> Table {
        let time = move |io: &FinishedIo| time_of_day_ms(io.at_ns.saturating_add_signed(zone_ns));
        let mut columns = vec![Column::left("TIME", TIME_WIDTH, time)];
        columns.extend(others);
        let taken = width(&columns) + 1;
        let disk = move |io: &FinishedIo| room.name_beside(taken, &io.device);
        columns.insert(
            1,
            Column::left("DISK", room.widest_name(taken, names), disk),
        );
        let taken = width(&columns);
        for column in columns.iter_mut().filter(|column| column.room.is_some()) {
            column.room = Some(room.beside(taken - column.width));
        }
        Table(columns)
    }

    /// The line of titles.
    fn header(&self) -> String {
        self.joined(|column| column.pad(&column.title))
    }

    /// The line of an I/O.
    fn line(&self, io: &FinishedIo) -> String {
        self.joined(|column| column.pad(&(column.word)(io)))
    }

    fn joined(&self, word: impl Fn(&Column) -> String) -> String {
        let words: Vec<String> = self.0.iter().map(word).collect();
        let mut line = words.join(" ");
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

/// The width of the columns, including the gaps between them.
fn width(columns: &[Column]) -> usize {
    let widths = columns.iter().map(|column| column.width);
    widths.sum::<usize>() + columns.len().saturating_sub(1)
}

/// The width of a time of day with milliseconds.
const TIME_WIDTH: usize = 12;

#[cfg(test)]
mod tests;
