//! The order of disks in the list.

use std::cmp::Ordering;

use dashpot_observe::Layer;

use crate::frame::{DiskFrame, Done};

/// The sort key: names ascending, figures descending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SortKey {
    #[default]
    Name,
    Reads,
    Writes,
    Flushes,
    Kilobytes,
    P50,
    P99,
    Max,
    InFlight,
    Oldest,
}

impl SortKey {
    /// All keys, in the order of the table's columns.
    pub(crate) const ALL: [SortKey; 10] = [
        SortKey::Name,
        SortKey::Reads,
        SortKey::Writes,
        SortKey::Flushes,
        SortKey::Kilobytes,
        SortKey::P50,
        SortKey::P99,
        SortKey::Max,
        SortKey::InFlight,
        SortKey::Oldest,
    ];

    /// The title of the key's column.
    pub(crate) fn title(self) -> &'static str {
        match self {
            SortKey::Name => "disk",
            SortKey::Reads => "r/s",
            SortKey::Writes => "w/s",
            SortKey::Flushes => "f/s",
            SortKey::Kilobytes => "kB/s",
            SortKey::P50 => "p50",
            SortKey::P99 => "p99",
            SortKey::Max => "max",
            SortKey::InFlight => "fly",
            SortKey::Oldest => "oldest",
        }
    }

    /// The word for the key in the title of the table, such as `disks by p99`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            SortKey::Name => "name",
            SortKey::InFlight => "I/Os in flight",
            _ => self.title(),
        }
    }

    /// The key of the column that is `by` columns to the right. After the last column comes the first.
    pub(crate) fn moved(self, by: isize) -> SortKey {
        let count = SortKey::ALL.len() as isize;
        let at = SortKey::ALL.iter().position(|key| *key == self);
        let to = (at.unwrap_or_default() as isize + by).rem_euclid(count);
        SortKey::ALL[to as usize]
    }

    /// Sorts volumes before disks, and the devices of each kind by this key. The sort is stable.
    pub(crate) fn sorted(self, disks: &[DiskFrame]) -> Vec<&DiskFrame> {
        let mut sorted: Vec<&DiskFrame> = disks.iter().collect();
        match self {
            SortKey::Name => sorted.sort_by(|a, b| a.name.cmp(&b.name)),
            _ => sorted.sort_by(|a, b| self.compare(b, a)),
        }
        sorted.sort_by_key(|disk| disk.layer != Layer::Volume);
        sorted
    }

    fn compare(self, a: &DiskFrame, b: &DiskFrame) -> Ordering {
        let figure = |disk: &DiskFrame| {
            let rate = |of: fn(&Done) -> f64| disk.done.as_ref().map_or(0.0, of);
            let time = |ns: Option<u64>| ns.unwrap_or_default() as f64;
            let done = disk.done.as_ref();
            match self {
                SortKey::Name => 0.0,
                SortKey::Reads => rate(|done| done.reads),
                SortKey::Writes => rate(|done| done.writes),
                SortKey::Flushes => rate(|done| done.flushes),
                SortKey::Kilobytes => rate(|done| done.kilobytes),
                SortKey::P50 => time(done.and_then(|done| done.p50_ns)),
                SortKey::P99 => time(done.and_then(|done| done.p99_ns)),
                SortKey::Max => time(done.and_then(|done| done.max_ns)),
                SortKey::InFlight => disk.in_flight as f64,
                SortKey::Oldest => time(disk.oldest_ns),
            }
        };
        figure(a).total_cmp(&figure(b))
    }
}
