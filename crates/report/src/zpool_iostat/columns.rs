//! The groups of columns in each view, and the choice of those groups that fit.

use dashpot_text::table::Room;

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
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) columns: &'static [&'static str],
    /// If the screen is narrow, the groups with the highest rank are left out first.
    pub(super) rank: u8,
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
    pub(super) fn groups(self) -> Vec<&'static Group> {
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
    pub(super) fn groups_upto(self, rank: u8) -> (Vec<&'static Group>, usize) {
        let mut groups = self.groups();
        groups.retain(|group| group.rank <= rank);
        let cells: usize = groups.iter().map(|group| group.columns.len()).sum();
        // The title of the last group is longer than its columns.
        let spill = if rank == EMPTY { TITLE_SPILL } else { 0 };
        (groups, cells * (CELL_WIDTH + 2) + spill)
    }

    /// The highest rank for which all groups up to this rank fit next to a short name.
    pub(super) fn rank_within(self, room: Room) -> u8 {
        let fits = |rank: &u8| room.has(NAME_WIDTH + self.groups_upto(*rank).1);
        (0..=EMPTY).rev().find(fits).unwrap_or(0)
    }
}

/// The width of a figure.
pub(super) const CELL_WIDTH: usize = 5;
/// How much wider `rebuild` and `rebuildq_write` are than their columns.
const TITLE_SPILL: usize = 2;
/// The least width of the names.
pub(super) const NAME_WIDTH: usize = 10;
