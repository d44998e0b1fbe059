//! `zpool-iostat`: the I/O of pools, by class of their disks' queues.
//!
//! Source: the columns, widths, labels and arithmetic of OpenZFS's `zpool iostat` (2.2), with `-l`,
//! `-q`, `-w` and `-r`. The averages of `-l` are computed as in ZFS, from power-of-two buckets, and are off
//! by up to a third. `--json` has exact means, and percentiles from finer buckets.
//!
//! Differences: a pool allocates a volume's space when it creates the volume, so `alloc` is the sum of the
//! volumes' sizes. There is no scrub and no rebuild, so their columns stay empty. For a daemon's pools, the
//! first report covers the time since the daemon started; in a simulation, each report covers one interval.
//! If the screen is too narrow for all groups of columns, the report shows only the most important groups.

use std::fmt;
use std::iter::repeat_n;

use clap::Args;
use dashpot_cli::reports::PoolArgs;
use dashpot_engine::histogram::{Histogram, Unit};
use dashpot_engine::pool::Class;
use dashpot_observe::{
    ClassInterval, Percentiles, PoolInterval, Question, Schedule, Seen, Subject,
};
use dashpot_rules::{ParseError, nice_number, nice_time};
use dashpot_text::surface::Surface;
use dashpot_text::table::Room;
use serde::{Serialize, Serializer};

use crate::asked::{Over, ReportRequest, Shared, since_start};
use crate::report::{Page, Pages, Report};

/// Show pools as OpenZFS's zpool iostat does
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "The first lines are averages since the start of the daemon.\n\n\
    Examples: the queues of a daemon's pools, second by second; of a simulated pool\n  \
    dashpot zpool-iostat -q 1\n  \
    dashpot sim lab.toml --report 'zpool-iostat -q 1'"
)]
pub struct ZpoolIostatArgs {
    /// Show average waits
    #[arg(short = 'l')]
    pub latency: bool,
    /// Show the queues at the end of the interval
    #[arg(short = 'q')]
    pub queues: bool,
    /// Show histograms of waits
    #[arg(short = 'w', conflicts_with_all = ["latency", "queues", "sizes"])]
    pub waits: bool,
    /// Show histograms of sizes
    #[arg(short = 'r', conflicts_with_all = ["latency", "queues"])]
    pub sizes: bool,
    /// Show all columns, even on a narrow terminal
    #[arg(long)]
    pub wide: bool,
    /// The formats, the pools, and the pace.
    #[command(flatten)]
    pub pools: PoolArgs,
}

impl ReportRequest for ZpoolIostatArgs {
    fn report(&self, _: &Over) -> Result<Box<dyn Report>, ParseError> {
        let (_, pace) = self.pools.and_pace()?;
        Ok(Box::new(ZpoolIostatReport {
            schedule: since_start(&pace),
            view: match (self.waits, self.sizes) {
                (true, _) => View::Latencies,
                (_, true) => View::Sizes,
                _ => View::Lines {
                    latency: self.latency,
                    queues: self.queues,
                },
            },
            wide: self.wide,
            titled: false,
        }))
    }

    fn shared(&self) -> Shared<'_> {
        Shared::of_pools(&self.pools)
    }
}

/// The report: the I/O of pools, once per interval.
#[derive(Clone, Debug)]
pub struct ZpoolIostatReport {
    /// The intervals of the report.
    pub schedule: Schedule,
    /// The columns that the report shows.
    pub view: View,
    /// Whether even a narrow terminal gets all columns.
    pub wide: bool,
    /// Whether the titles have been printed.
    pub titled: bool,
}

impl Report for ZpoolIostatReport {
    fn question(&self) -> Question {
        Question::of(Subject::Pools)
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let titled = !std::mem::replace(&mut self.titled, true);
        vec![Box::new(ZpoolIostat {
            view: self.view,
            titled,
            room: surface.room(self.wide),
            pools: seen.pools.clone(),
        })]
    }
}

/// The report of an interval. JSON: a list of pools: `{"pool": "tank", "elapsed_ns": …,
/// "alloc_bytes": …, "free_bytes": …, "reads": …, "read_bytes": …, "writes": …, "written_bytes": …,
/// "classes": [class, …]}`, and a class is `{"class": "async_write", "pending": …, "active": …,
/// "total_wait": latency, "disk_wait": latency, "queue_wait": latency, "alone": zios, "joined":
/// zios}`, with latencies as percentiles and their mean.
#[derive(Clone, Debug)]
pub struct ZpoolIostat {
    /// The columns that the text shows; JSON has all columns.
    pub view: View,
    /// Whether titles precede the lines. Tables always have titles.
    pub titled: bool,
    /// The width that the text may have.
    pub room: Room,
    /// The pools, in display order.
    pub pools: Vec<PoolInterval>,
}

impl Page for ZpoolIostat {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }
}

impl fmt::Display for ZpoolIostat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.view {
            View::Lines { latency, queues } => self.write_lines(f, latency, queues),
            View::Latencies => self.pools.iter().try_for_each(|pool| {
                self.write_table(f, pool, "latency", 0..LATENCY_ROWS, latency_rows(pool))
            }),
            View::Sizes => self.pools.iter().try_for_each(|pool| {
                self.write_table(f, pool, "req_size", SIZE_FIRST..SIZE_ROWS, size_rows(pool))
            }),
        }
    }
}

impl ZpoolIostat {
    /// The groups of columns for which the screen has room.
    fn groups(&self) -> Vec<&'static Group> {
        self.view.groups_upto(self.view.rank_within(self.room)).0
    }

    /// The cells of a line that belong to the groups for which the screen has room.
    fn shown(&self, cells: Vec<String>) -> Vec<String> {
        let rank = self.view.rank_within(self.room);
        let groups = self.view.groups().into_iter();
        let ranks = groups.flat_map(|group| repeat_n(group.rank, group.columns.len()));
        let shown = cells.into_iter().zip(ranks).filter(|(_, of)| *of <= rank);
        shown.map(|(cell, _)| cell).collect()
    }

    /// A pool's name, shortened to fit next to the groups of columns that are shown.
    fn name(&self, pool: &PoolInterval) -> String {
        let (_, taken) = self.view.groups_upto(self.view.rank_within(self.room));
        self.room.name_beside(taken, &pool.name)
    }

    fn write_lines(&self, f: &mut fmt::Formatter<'_>, latency: bool, queues: bool) -> fmt::Result {
        let groups = self.groups();
        let names = self.pools.iter().map(|pool| self.name(pool));
        let names: Vec<String> = names.collect();
        let widths = names.iter().map(|name| name.chars().count());
        let width = widths.fold(NAME_WIDTH, usize::max);
        if self.titled {
            write_head(f, &groups, width, "", "pool")?;
        }
        for (pool, name) in self.pools.iter().zip(&names) {
            let mut cells = default_cells(pool);
            if latency {
                cells.extend(latency_cells(pool));
            }
            if queues {
                cells.extend(queue_cells(pool));
            }
            write_cells(f, name, width, &self.shown(cells))?;
        }
        if self.pools.len() > 1 {
            write_dashes(f, &groups, width)?;
        }
        Ok(())
    }

    fn write_table(
        &self,
        f: &mut fmt::Formatter<'_>,
        pool: &PoolInterval,
        title: &str,
        rows: std::ops::Range<usize>,
        counts: Vec<Vec<u64>>,
    ) -> fmt::Result {
        let groups = self.groups();
        let name = self.name(pool);
        let width = name.chars().count().max(NAME_WIDTH);
        write_head(f, &groups, width, &name, title)?;
        for row in rows {
            let label = match self.view {
                View::Sizes => nice_number(1 << row),
                _ => nice_time((2 << row) - 1),
            };
            let per_second = |column: &Vec<u64>| nice_number(pool.per_second(column[row]));
            let cells: Vec<String> = counts.iter().map(per_second).collect();
            write_cells(f, &label, width, &self.shown(cells))?;
        }
        let columns: usize = groups.iter().map(|group| group.columns.len()).sum();
        writeln!(f, "{}", "-".repeat(width + columns * (CELL_WIDTH + 2)))
    }
}

fn write_head(
    f: &mut fmt::Formatter<'_>,
    groups: &[&Group],
    width: usize,
    name: &str,
    title: &str,
) -> fmt::Result {
    let mut top = String::new();
    let mut bottom = String::new();
    for group in groups {
        if !group.title.is_empty() {
            push_centred(&mut top, group.title, group.columns.len());
        }
        for column in group.columns {
            push_centred(&mut bottom, column, 1);
        }
    }
    writeln!(f, "{name:<width$}{top}")?;
    writeln!(f, "{title:<width$}{bottom}")?;
    write_dashes(f, groups, width)
}

/// Centres a title over its columns as ZFS does. A title that is longer than its columns extends beyond them.
fn push_centred(line: &mut String, title: &str, columns: usize) {
    let whole = CELL_WIDTH * columns + 2 * (columns - 1);
    let start = (whole / columns).saturating_sub(title.len() / columns);
    line.push_str("  ");
    line.push_str(&" ".repeat(start));
    line.push_str(title);
    line.push_str(&" ".repeat(whole.saturating_sub(start + title.len())));
}

fn write_dashes(f: &mut fmt::Formatter<'_>, groups: &[&Group], width: usize) -> fmt::Result {
    let columns: usize = groups.iter().map(|group| group.columns.len()).sum();
    let cell = format!("  {}", "-".repeat(CELL_WIDTH));
    writeln!(f, "{}{}", "-".repeat(width), cell.repeat(columns))
}

fn write_cells(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    width: usize,
    cells: &[String],
) -> fmt::Result {
    write!(f, "{name:<width$}")?;
    for cell in cells {
        write!(f, "  {cell:>CELL_WIDTH$}")?;
    }
    writeln!(f)
}

/// The counts of two classes together, in ZFS's rows of latencies.
fn waits(
    pool: &PoolInterval,
    classes: [Class; 2],
    of: fn(&ClassInterval) -> &Histogram,
) -> Vec<u64> {
    let mut both = of(pool.class(classes[0])).clone();
    both.merge(of(pool.class(classes[1])));
    zfs_rows(&both, LATENCY_ROWS)
}

/// A histogram in ZFS's rows. Row `i` has the values from 2^i to less than 2^(i+1). The first row also has
/// the value zero, and the last row has all values above it, too.
fn zfs_rows(histogram: &Histogram, rows: usize) -> Vec<u64> {
    let mut counts = vec![0; rows];
    for (row, count) in histogram.log2_rows(Unit::Nanos).into_iter().enumerate() {
        counts[row.saturating_sub(1).min(rows - 1)] += count;
    }
    counts
}

/// The average of a histogram, as ZFS computes it. ZFS takes each I/O's value to be the middle of its row,
/// and rounds the average down.
fn zfs_average(rows: &[u64]) -> u64 {
    let count: u128 = rows.iter().map(|&count| u128::from(count)).sum();
    let middles = (0..rows.len()).map(|row| (1_u128 << row) + (1_u128 << row) / 2);
    let total: u128 = rows
        .iter()
        .zip(middles)
        .map(|(&count, middle)| u128::from(count) * middle)
        .sum();
    u64::try_from(total.checked_div(count).unwrap_or(0)).unwrap_or(u64::MAX)
}

fn default_cells(pool: &PoolInterval) -> Vec<String> {
    let traffic = &pool.traffic;
    let rates = [
        traffic.reads,
        traffic.writes,
        traffic.bytes_read,
        traffic.bytes_written,
    ];
    let rates = rates.map(|count| pool.per_second(count));
    let figures = [pool.allocated, pool.free].into_iter().chain(rates);
    figures.map(nice_number).collect()
}

fn latency_cells(pool: &PoolInterval) -> Vec<String> {
    let average = |rows: Vec<u64>| nice_time(zfs_average(&rows));
    latency_rows(pool).into_iter().map(average).collect()
}

/// The counts of the eleven columns of `-l` and `-w`.
fn latency_rows(pool: &PoolInterval) -> Vec<Vec<u64>> {
    const READS: [Class; 2] = [Class::SyncRead, Class::AsyncRead];
    const WRITES: [Class; 2] = [Class::SyncWrite, Class::AsyncWrite];
    let queue = |class| zfs_rows(&pool.class(class).queue_wait, LATENCY_ROWS);
    let none = || vec![0; LATENCY_ROWS];
    vec![
        waits(pool, READS, |class| &class.total_wait),
        waits(pool, WRITES, |class| &class.total_wait),
        waits(pool, READS, |class| &class.disk_wait),
        waits(pool, WRITES, |class| &class.disk_wait),
        queue(Class::SyncRead),
        queue(Class::SyncWrite),
        queue(Class::AsyncRead),
        queue(Class::AsyncWrite),
        none(),
        queue(Class::Trim),
        none(),
    ]
}

/// The classes in the order of ZFS's columns. ZFS has two more classes, which dashpot does not have.
const QUEUE_COLUMNS: [Option<Class>; 7] = [
    Some(Class::SyncRead),
    Some(Class::SyncWrite),
    Some(Class::AsyncRead),
    Some(Class::AsyncWrite),
    None,
    Some(Class::Trim),
    None,
];

fn queue_cells(pool: &PoolInterval) -> Vec<String> {
    let pair = |class: Option<Class>| {
        let interval = class.map(|class| pool.class(class));
        interval.map_or([0, 0], |class| [class.pending, class.active])
    };
    let pairs = QUEUE_COLUMNS.into_iter().flat_map(pair);
    pairs.map(nice_number).collect()
}

fn size_rows(pool: &PoolInterval) -> Vec<Vec<u64>> {
    let pair = |class: Option<Class>| {
        let empty = Histogram::default();
        let interval = class.map(|class| pool.class(class));
        let (alone, joined) = interval.map_or((&empty, &empty), |i| (&i.alone, &i.joined));
        [zfs_rows(alone, SIZE_ROWS), zfs_rows(joined, SIZE_ROWS)]
    };
    QUEUE_COLUMNS.into_iter().flat_map(pair).collect()
}

/// The number of rows of latencies. The last row begins at 68 s.
const LATENCY_ROWS: usize = 37;
/// The number of rows of sizes. The last row begins at 16M.
const SIZE_ROWS: usize = 25;
/// The first row of sizes that is shown: 512 bytes.
const SIZE_FIRST: usize = 9;

/// The columns to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// A line for each pool, with average waits (`-l`) and queues (`-q`) if asked for.
    Lines {
        /// Whether average waits are shown.
        latency: bool,
        /// Whether queues are shown.
        queues: bool,
    },
    /// A table of latencies for each pool (`-w`).
    Latencies,
    /// A table of sizes for each pool (`-r`).
    Sizes,
}

/// A common title, and the titles of the columns below it.
struct Group {
    title: &'static str,
    columns: &'static [&'static str],
    /// If the screen is narrow, the groups with the highest rank are left out first.
    rank: u8,
}

const READ_WRITE: &[&str] = &["read", "write"];
const QUEUE: &[&str] = &["pend", "activ"];
const REQUESTS: &[&str] = &["ind", "agg"];

const fn group(title: &'static str, columns: &'static [&'static str], rank: u8) -> Group {
    Group {
        title,
        columns,
        rank,
    }
}

/// The highest rank, for groups that are always empty here.
const EMPTY: u8 = 8;

const DEFAULT: [Group; 3] = [
    group("capacity", &["alloc", "free"], 6),
    group("operations", READ_WRITE, 0),
    group("bandwidth", READ_WRITE, 3),
];

const LATENCY: [Group; 7] = [
    group("total_wait", READ_WRITE, 1),
    group("disk_wait", READ_WRITE, 2),
    group("syncq_wait", READ_WRITE, 5),
    group("asyncq_wait", READ_WRITE, 4),
    group("scrub", &["wait"], EMPTY),
    group("trim", &["wait"], 7),
    group("rebuild", &["wait"], EMPTY),
];

const QUEUES: [Group; 7] = [
    group("syncq_read", QUEUE, 2),
    group("syncq_write", QUEUE, 1),
    group("asyncq_read", QUEUE, 2),
    group("asyncq_write", QUEUE, 1),
    group("scrubq_read", QUEUE, EMPTY),
    group("trimq_write", QUEUE, 7),
    group("rebuildq_write", QUEUE, EMPTY),
];

/// In tables, the last three columns have only their own titles, and no common titles above these.
const LATENCY_TABLE: [Group; 7] = [
    group("total_wait", READ_WRITE, 0),
    group("disk_wait", READ_WRITE, 1),
    group("syncq_wait", READ_WRITE, 2),
    group("asyncq_wait", READ_WRITE, 2),
    group("", &["scrub"], EMPTY),
    group("", &["trim"], 7),
    group("", &["rebuild"], EMPTY),
];

const SIZE_TABLE: [Group; 7] = [
    group("sync_read", REQUESTS, 1),
    group("sync_write", REQUESTS, 0),
    group("async_read", REQUESTS, 2),
    group("async_write", REQUESTS, 0),
    group("scrub", REQUESTS, EMPTY),
    group("trim", REQUESTS, 7),
    group("rebuild", REQUESTS, EMPTY),
];

impl View {
    fn groups(self) -> Vec<&'static Group> {
        let lines = |latency: bool, queues: bool| {
            let latency = LATENCY.iter().filter(move |_| latency);
            let queues = QUEUES.iter().filter(move |_| queues);
            DEFAULT.iter().chain(latency).chain(queues).collect()
        };
        match self {
            View::Lines { latency, queues } => lines(latency, queues),
            View::Latencies => LATENCY_TABLE.iter().collect(),
            View::Sizes => SIZE_TABLE.iter().collect(),
        }
    }

    /// The groups up to a rank, and their width.
    fn groups_upto(self, rank: u8) -> (Vec<&'static Group>, usize) {
        let mut groups = self.groups();
        groups.retain(|group| group.rank <= rank);
        let cells: usize = groups.iter().map(|group| group.columns.len()).sum();
        // The title of the last group is longer than its columns.
        let spill = if rank == EMPTY { TITLE_SPILL } else { 0 };
        (groups, cells * (CELL_WIDTH + 2) + spill)
    }

    /// The highest rank for which all groups up to this rank fit next to a short name.
    fn rank_within(self, room: Room) -> u8 {
        let fits = |rank: &u8| room.has(NAME_WIDTH + self.groups_upto(*rank).1);
        (0..=EMPTY).rev().find(fits).unwrap_or(0)
    }
}

/// The width of a figure.
const CELL_WIDTH: usize = 5;
/// How much wider `rebuild` and `rebuildq_write` are than their columns.
const TITLE_SPILL: usize = 2;
/// The least width of the names.
const NAME_WIDTH: usize = 10;

impl Serialize for ZpoolIostat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.pools.iter().map(PoolObject::of))
    }
}

#[derive(Serialize)]
struct PoolObject<'a> {
    pool: &'a str,
    elapsed_ns: u128,
    alloc_bytes: u64,
    free_bytes: u64,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    classes: Vec<ClassObject>,
}

#[derive(Serialize)]
struct ClassObject {
    class: &'static str,
    pending: u64,
    active: u64,
    total_wait: Latency,
    disk_wait: Latency,
    queue_wait: Latency,
    alone: u64,
    joined: u64,
}

/// Percentiles of a latency, and the exact mean.
#[derive(Serialize)]
struct Latency {
    mean_ns: Option<u64>,
    #[serde(flatten)]
    percentiles: Percentiles,
}

impl PoolObject<'_> {
    fn of(pool: &PoolInterval) -> PoolObject<'_> {
        PoolObject {
            pool: &pool.name,
            elapsed_ns: pool.elapsed.as_nanos(),
            alloc_bytes: pool.allocated,
            free_bytes: pool.free,
            reads: pool.traffic.reads,
            read_bytes: pool.traffic.bytes_read,
            writes: pool.traffic.writes,
            written_bytes: pool.traffic.bytes_written,
            classes: pool.classes.iter().map(ClassObject::of).collect(),
        }
    }
}

impl ClassObject {
    fn of(class: &ClassInterval) -> ClassObject {
        ClassObject {
            class: class.class.name(),
            pending: class.pending,
            active: class.active,
            total_wait: Latency::of(&class.total_wait),
            disk_wait: Latency::of(&class.disk_wait),
            queue_wait: Latency::of(&class.queue_wait),
            alone: class.alone.count(),
            joined: class.joined.count(),
        }
    }
}

impl Latency {
    fn of(histogram: &Histogram) -> Latency {
        Latency {
            mean_ns: histogram.mean(),
            percentiles: Percentiles::of(histogram),
        }
    }
}

#[cfg(test)]
mod tests;
