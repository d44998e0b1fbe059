//! The columns of a table. For dashpot's own disks and volumes, the columns show the waits of each zio and
//! the rule that held the zio; for the kernel's disks, they show the process and the thread.

use dashpot_engine::{Duration, Waits};
use dashpot_observe::{FinishedIo, IoWaits, Thread, Who};
use dashpot_rules::{nice_number, short_time};

use super::table::Column;

/// A wait: its title, and the function that gives its time for a zio.
#[derive(Clone, Copy)]
pub(super) struct Wait(&'static str, fn(&Waits) -> Duration);

/// The waits, in the order in which a zio goes through them.
const WAITS: [Wait; 8] = [
    Wait("RECV", |waits| waits.recv),
    Wait("THROTTLE", |waits| waits.throttle),
    Wait("QUEUE", |waits| waits.queue),
    Wait("SUSPEND", |waits| waits.suspend),
    Wait("STORE", |waits| waits.store),
    Wait("HOLD", |waits| waits.hold),
    Wait(LATE, |waits| waits.lateness),
    Wait("REPLY", |waits| waits.reply),
];
const LATE: &str = "LATE";
/// The waits of zios on disks outside of pools.
const OF_LONE_DISKS: [&str; 6] = ["RECV", "SUSPEND", "STORE", "HOLD", LATE, "REPLY"];

impl Wait {
    /// The waits that zios on disks outside of pools can have.
    pub(super) fn of_lone_disks() -> Vec<Wait> {
        let waits = WAITS.into_iter();
        waits
            .filter(|wait| OF_LONE_DISKS.contains(&wait.0))
            .collect()
    }

    /// The waits that any of these I/Os had.
    pub(super) fn of_ios(ios: &[FinishedIo]) -> Vec<Wait> {
        let is_met = |wait: &Wait| ios.iter().any(|io| wait.of(io) > Duration::ZERO);
        WAITS.into_iter().filter(is_met).collect()
    }

    fn of(self, io: &FinishedIo) -> Duration {
        self.1(&waits(io))
    }

    /// The column of the wait. If a zio did not wait, the cell is a dash, so that actual waits stand out.
    fn column(self) -> Column {
        Column::right(self.0, LATENCY_WIDTH, move |io| match self.of(io) {
            Duration::ZERO => "-".to_owned(),
            time => short_time(time.as_nanos()),
        })
    }
}

pub(super) fn of_zios(waits: &[Wait], wide: bool) -> Vec<Column> {
    let mut columns = vec![Column::left("OP", OP_WIDTH, op)];
    if wide {
        columns.push(offset());
    }
    columns.extend([size(), total()]);
    if wide {
        columns.extend(waits.iter().map(|wait| wait.column()));
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
pub(super) fn of_kernel(wide: bool) -> Vec<Column> {
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
pub(super) fn of_calls(wide: bool) -> Vec<Column> {
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
        or_dash(thread(io).and_then(id).map(|id| id.to_string()))
    })
}

fn name(title: &'static str, name: fn(&Thread) -> Option<&str>) -> Column {
    Column::left(title, NAME_WIDTH, move |io| {
        or_dash(thread(io).and_then(name).map(str::to_owned))
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
    let longest = WAITS.iter().max_by_key(|wait| wait.of(io));
    let longest = longest.filter(|wait| wait.of(io) > Duration::ZERO);
    let title = match longest {
        None => "-",
        Some(Wait(LATE, _)) if waits(io).hold == Duration::ZERO => "SHARD",
        Some(Wait(title, _)) => title,
    };
    title.to_owned()
}

fn rule(io: &FinishedIo) -> String {
    match (io.facts.rule, io.facts.lane) {
        (Some(rule), Some(lane)) => format!("{rule}/{lane}"),
        (Some(rule), None) => rule.to_string(),
        (None, _) => "-".to_owned(),
    }
}

fn client(io: &FinishedIo) -> String {
    let client = io.who.as_ref().and_then(Who::client);
    client.unwrap_or("-").to_owned()
}

fn thread(io: &FinishedIo) -> Option<&Thread> {
    io.who.as_ref().and_then(Who::thread)
}

/// The waits of a zio. For an I/O of the kernel, all of them are zero.
fn waits(io: &FinishedIo) -> Waits {
    io.waits.zio().copied().unwrap_or_default()
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
pub(super) const SECTOR: u64 = 512;
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
