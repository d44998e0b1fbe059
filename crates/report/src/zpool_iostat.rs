//! `zpool-iostat`: the I/O of pools, by class of their disks' queues.
//!
//! Source: the columns, widths, labels and arithmetic of OpenZFS's `zpool iostat` (2.2), with `-l`,
//! `-q`, `-w` and `-r`. Averages under `-l` are computed as in ZFS, from buckets of powers of two,
//! and are up to a third off. `--json` has percentiles of the finer buckets, and exact means.
//!
//! Differences: a pool gives space to a volume when it makes the volume, so `alloc` is the sum of
//! their sizes. There is no scrub and no rebuild, so their columns stay empty. The first report of
//! `zpool iostat` counts since the import; here each report is of one interval. If the screen is too
//! narrow for all groups of columns, the report shows the most important ones.

mod columns;

use std::fmt;
use std::iter::repeat_n;
use std::time::Duration;

use dashpot_engine::histogram::{Histogram, Unit};
use dashpot_engine::pool::{Class, Traffic};
use dashpot_observe::Percentiles;
use dashpot_rules::{nice_number, nice_time};
use serde::Serialize;

use self::columns::{CELL_WIDTH, Group, NAME_WIDTH};
use super::table::Room;

pub use self::columns::View;

/// The report of an interval. JSON: a list of pools.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct ZpoolIostat {
    /// The columns of the text; JSON has all of them.
    #[serde(skip)]
    pub view: View,
    /// Whether titles come before the lines. A table always has them.
    #[serde(skip)]
    pub titled: bool,
    /// The room for the text.
    #[serde(skip)]
    pub room: Room,
    /// The pools, in display order.
    pub pools: Vec<Pool>,
}

/// The I/O of a pool in an interval. JSON: `{"pool": "tank", "elapsed_ns": …, "alloc_bytes": …,
/// "free_bytes": …, "reads": …, "read_bytes": …, "writes": …, "written_bytes": …, "classes":
/// [class, …]}`.
#[derive(Clone, Debug, Serialize)]
pub struct Pool {
    /// Its name.
    #[serde(rename = "pool")]
    pub name: String,
    /// The length of the interval.
    #[serde(rename = "elapsed_ns", serialize_with = "super::as_nanos")]
    pub elapsed: Duration,
    /// Bytes that are allocated.
    #[serde(rename = "alloc_bytes")]
    pub allocated: u64,
    /// Bytes that are free.
    #[serde(rename = "free_bytes")]
    pub free: u64,
    /// The zios and bytes that the pool sent to its disks.
    #[serde(flatten, serialize_with = "traffic_object")]
    pub traffic: Traffic,
    /// The queues of all disks together, in the order of [`Class::ALL`].
    pub classes: [ClassInterval; Class::ALL.len()],
}

/// The I/O of one class of queues. JSON: `{"class": "async_write", "pending": …, "active": …,
/// "total_wait": latency, "disk_wait": latency, "queue_wait": latency, "alone": zios, "joined":
/// zios}`, with latencies as percentiles and their mean.
#[derive(Clone, Debug)]
pub struct ClassInterval {
    /// The class.
    pub class: Class,
    /// Number of zios in the queues at the interval's end.
    pub pending: u64,
    /// Number of zios at the disks at the interval's end.
    pub active: u64,
    /// The time from the queue to the end.
    pub total_wait: Histogram,
    /// The time at the disk.
    pub disk_wait: Histogram,
    /// The time in the queue.
    pub queue_wait: Histogram,
    /// Sizes in bytes of the zios that went to a disk alone.
    pub alone: Histogram,
    /// Sizes in bytes of the zios that the queue aggregated into one.
    pub joined: Histogram,
}

impl ClassInterval {
    /// A class without I/O.
    pub fn empty(class: Class) -> ClassInterval {
        ClassInterval {
            class,
            pending: 0,
            active: 0,
            total_wait: Histogram::default(),
            disk_wait: Histogram::default(),
            queue_wait: Histogram::default(),
            alone: Histogram::default(),
            joined: Histogram::default(),
        }
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
    /// The groups that have room.
    fn groups(&self) -> Vec<&'static Group> {
        self.view.groups_upto(self.view.rank_within(self.room)).0
    }

    /// The cells of a line that belong to these groups.
    fn shown(&self, cells: Vec<String>) -> Vec<String> {
        let rank = self.view.rank_within(self.room);
        let groups = self.view.groups().into_iter();
        let ranks = groups.flat_map(|group| repeat_n(group.rank, group.columns.len()));
        let shown = cells.into_iter().zip(ranks).filter(|(_, of)| *of <= rank);
        shown.map(|(cell, _)| cell).collect()
    }

    /// A pool's name beside the groups that have room.
    fn name(&self, pool: &Pool) -> String {
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
        pool: &Pool,
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
            let per_second = |column: &Vec<u64>| nice_number(pool.rate(column[row]));
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

/// Centres a title over columns as ZFS does: a long title goes over the edge.
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

impl Pool {
    /// The count of an interval as a whole number per second.
    fn rate(&self, count: u64) -> u64 {
        let elapsed = self.elapsed.as_nanos().max(1);
        let rate = u128::from(count) * 1_000_000_000 / elapsed;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    fn class(&self, class: Class) -> &ClassInterval {
        &self.classes[class as usize]
    }

    /// The counts of both classes together, in ZFS's rows of latencies.
    fn waits(&self, classes: [Class; 2], of: fn(&ClassInterval) -> &Histogram) -> Vec<u64> {
        let mut both = of(self.class(classes[0])).clone();
        both.merge(of(self.class(classes[1])));
        zfs_rows(&both, LATENCY_ROWS)
    }
}

/// A histogram in ZFS's rows. Row `i` has the values from 2^i to less than 2^(i+1). The first row
/// also has zero, and the last has everything above.
fn zfs_rows(histogram: &Histogram, rows: usize) -> Vec<u64> {
    let mut counts = vec![0; rows];
    for (row, count) in histogram.log2_rows(Unit::Nanos).into_iter().enumerate() {
        counts[row.saturating_sub(1).min(rows - 1)] += count;
    }
    counts
}

/// ZFS's average of a histogram: each row counts with its middle, rounded down.
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

fn default_cells(pool: &Pool) -> Vec<String> {
    let traffic = &pool.traffic;
    let rates = [
        traffic.reads,
        traffic.writes,
        traffic.bytes_read,
        traffic.bytes_written,
    ];
    let rates = rates.map(|count| pool.rate(count));
    let figures = [pool.allocated, pool.free].into_iter().chain(rates);
    figures.map(nice_number).collect()
}

fn latency_cells(pool: &Pool) -> Vec<String> {
    let average = |rows: Vec<u64>| nice_time(zfs_average(&rows));
    latency_rows(pool).into_iter().map(average).collect()
}

/// The counts of the eleven series of `-l` and `-w`.
fn latency_rows(pool: &Pool) -> Vec<Vec<u64>> {
    const READS: [Class; 2] = [Class::SyncRead, Class::AsyncRead];
    const WRITES: [Class; 2] = [Class::SyncWrite, Class::AsyncWrite];
    let queue = |class| zfs_rows(&pool.class(class).queue_wait, LATENCY_ROWS);
    let none = || vec![0; LATENCY_ROWS];
    vec![
        pool.waits(READS, |class| &class.total_wait),
        pool.waits(WRITES, |class| &class.total_wait),
        pool.waits(READS, |class| &class.disk_wait),
        pool.waits(WRITES, |class| &class.disk_wait),
        queue(Class::SyncRead),
        queue(Class::SyncWrite),
        queue(Class::AsyncRead),
        queue(Class::AsyncWrite),
        none(),
        queue(Class::Trim),
        none(),
    ]
}

/// The classes in the order of ZFS's columns. ZFS has two more, which do not exist here.
const QUEUE_COLUMNS: [Option<Class>; 7] = [
    Some(Class::SyncRead),
    Some(Class::SyncWrite),
    Some(Class::AsyncRead),
    Some(Class::AsyncWrite),
    None,
    Some(Class::Trim),
    None,
];

fn queue_cells(pool: &Pool) -> Vec<String> {
    let pair = |class: Option<Class>| {
        let interval = class.map(|class| pool.class(class));
        interval.map_or([0, 0], |class| [class.pending, class.active])
    };
    let pairs = QUEUE_COLUMNS.into_iter().flat_map(pair);
    pairs.map(nice_number).collect()
}

fn size_rows(pool: &Pool) -> Vec<Vec<u64>> {
    let pair = |class: Option<Class>| {
        let empty = Histogram::default();
        let interval = class.map(|class| pool.class(class));
        let (alone, joined) = interval.map_or((&empty, &empty), |i| (&i.alone, &i.joined));
        [zfs_rows(alone, SIZE_ROWS), zfs_rows(joined, SIZE_ROWS)]
    };
    QUEUE_COLUMNS.into_iter().flat_map(pair).collect()
}

/// JSON of a latency: percentiles, and the exact mean.
#[derive(Serialize)]
struct Latency {
    mean_ns: Option<u64>,
    #[serde(flatten)]
    percentiles: Percentiles,
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

impl Serialize for ClassInterval {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let latency = |histogram: &Histogram| Latency {
            mean_ns: histogram.mean(),
            percentiles: Percentiles::of(histogram),
        };
        let object = ClassObject {
            class: self.class.name(),
            pending: self.pending,
            active: self.active,
            total_wait: latency(&self.total_wait),
            disk_wait: latency(&self.disk_wait),
            queue_wait: latency(&self.queue_wait),
            alone: self.alone.count(),
            joined: self.joined.count(),
        };
        object.serialize(serializer)
    }
}

#[derive(Serialize)]
struct TrafficObject {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
}

pub(super) fn traffic_object<S: serde::Serializer>(
    traffic: &Traffic,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let object = TrafficObject {
        reads: traffic.reads,
        read_bytes: traffic.bytes_read,
        writes: traffic.writes,
        written_bytes: traffic.bytes_written,
    };
    object.serialize(serializer)
}

/// Rows of latencies: the last begins at 68 s.
const LATENCY_ROWS: usize = 37;
/// Rows of sizes: the last begins at 16M.
const SIZE_ROWS: usize = 25;
/// The first row of sizes that is shown: 512 bytes.
const SIZE_FIRST: usize = 9;

#[cfg(test)]
mod tests;
