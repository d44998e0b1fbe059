//! The columns of a heat map.

use std::time::Duration;

use dashpot_engine::histogram::{Histogram, lower_bound};
use dashpot_observe::{InFlight, Length, Stacked};
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::rows;

/// The I/Os of an interval, counted by latency. JSON: `{"start_ns": …, "elapsed_ns": …, "missed": 0, "count":
/// 812, "rows": [{"from_ns": 9915137, "to_ns": 12382911, "count": 800}, …], "in_flight": {…}, "lost": 0}`.
/// If disks are stacked, the column also has `"not_in_sums": [{"device": "loop0", "over": ["vda"]}]`. Rows without
/// I/Os are left out. A row counts the I/Os with latencies from `from_ns` to `to_ns`, both
/// included. There are ten rows for each factor of ten, the same in all columns. `start_ns` is counted from
/// 1970; in a simulation, from the simulation's beginning.
#[derive(Clone, Debug)]
pub struct HeatColumn {
    /// When the interval began.
    pub start_ns: u64,
    /// The length of the interval.
    pub elapsed: Duration,
    /// The I/Os in flight at the interval's end.
    pub in_flight: InFlight,
    /// How many of the interval's events are missing.
    lost: u64,
    /// How many sync calls were on unknown devices; `None` if the column is not about sync calls.
    unplaced: Option<u64>,
    /// The disks whose I/Os would count twice.
    not_in_sums: Vec<Stacked>,
    /// How many intervals just before this one have no column.
    missed: u64,
    /// Rows with I/Os, the lowest first, and their counts.
    pub(super) rows: Vec<(usize, u64)>,
}

/// A title, and columns in chronological order.
#[derive(Clone, Debug, Default)]
pub struct HeatMap {
    /// The title, which names the source of the latencies.
    pub title: String,
    /// The length of each column except the last.
    pub interval: dashpot_engine::Duration,
    /// The columns, the oldest first.
    pub columns: Vec<HeatColumn>,
    /// The offset of the time zone: the sum of `start_ns` and this offset is the time of day.
    pub zone_ns: i64,
    /// The range of latencies that is drawn in detail.
    pub crop: Crop,
}

impl HeatColumn {
    /// The column of an interval.
    pub fn new(
        latencies: &Histogram,
        start_ns: u64,
        elapsed: Duration,
        in_flight: InFlight,
    ) -> HeatColumn {
        let mut rows: Vec<(usize, u64)> = Vec::new();
        for (bucket, count) in latencies.buckets() {
            let row = rows::row_at(lower_bound(bucket));
            match rows.last_mut() {
                Some((last, sum)) if *last == row => *sum += count,
                _ => rows.push((row, count)),
            }
        }
        HeatColumn {
            start_ns,
            elapsed,
            in_flight,
            lost: 0,
            unplaced: None,
            not_in_sums: Vec::new(),
            missed: 0,
            rows,
        }
    }

    /// The same column, with the note that `lost` of its events are missing.
    pub fn without(self, lost: u64) -> HeatColumn {
        HeatColumn { lost, ..self }
    }

    /// The same column, with the number of sync calls on unknown devices.
    pub fn beside(self, unplaced: Option<u64>) -> HeatColumn {
        HeatColumn { unplaced, ..self }
    }

    /// The same column, with the note that it leaves out these disks.
    pub fn leaving_out(self, not_in_sums: Vec<Stacked>) -> HeatColumn {
        HeatColumn {
            not_in_sums,
            ..self
        }
    }

    /// The same column, but with this length of its interval, and this number of missed intervals before it.
    pub fn lasting(self, length: &Length) -> HeatColumn {
        HeatColumn {
            elapsed: length.elapsed,
            missed: length.missed,
            ..self
        }
    }

    /// How many events are missing in the column.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// How many I/Os the column contains.
    pub fn count(&self) -> u64 {
        self.rows.iter().map(|(_, count)| count).sum()
    }
}

impl HeatMap {
    /// The same map with only its newest `columns` columns.
    pub(crate) fn newest(&self, columns: usize) -> HeatMap {
        let first = self.columns.len().saturating_sub(columns);
        HeatMap {
            title: self.title.clone(),
            columns: self.columns[first..].to_vec(),
            ..*self
        }
    }

    /// The time that this many columns cover.
    pub fn lasts(&self, columns: usize) -> dashpot_engine::Duration {
        let interval = self.interval.as_nanos();
        dashpot_engine::Duration::from_nanos(interval.saturating_mul(columns as u64))
    }

    /// A note about intervals that have no column; empty if every interval has one.
    pub fn missed(&self) -> String {
        match self.columns.iter().map(|column| column.missed).sum() {
            0_u64 => String::new(),
            missed => format!(", {missed} missed"),
        }
    }

    /// The I/Os in flight when the last column ended.
    pub fn in_flight(&self) -> InFlight {
        let last = self.columns.last();
        last.map(|column| column.in_flight.clone())
            .unwrap_or_default()
    }
}

impl Serialize for HeatColumn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = |&(row, count): &(usize, u64)| Row {
            from_ns: rows::start_of(row),
            to_ns: rows::end_of(row),
            count,
        };
        let mut column = serializer.serialize_struct(
            "Column",
            7 + usize::from(self.unplaced.is_some()) + usize::from(!self.not_in_sums.is_empty()),
        )?;
        column.serialize_field("start_ns", &self.start_ns)?;
        column.serialize_field("elapsed_ns", &(self.elapsed.as_nanos() as u64))?;
        column.serialize_field("missed", &self.missed)?;
        column.serialize_field("count", &self.count())?;
        column.serialize_field("rows", &self.rows.iter().map(row).collect::<Vec<_>>())?;
        column.serialize_field("in_flight", &self.in_flight)?;
        column.serialize_field("lost", &self.lost)?;
        if let Some(unplaced) = &self.unplaced {
            column.serialize_field("unplaced", unplaced)?;
        }
        if !self.not_in_sums.is_empty() {
            column.serialize_field("not_in_sums", &self.not_in_sums)?;
        }
        column.end()
    }
}

/// The range of latencies that is drawn in detail. All latencies below the range share one band, and all
/// latencies above it share another, so that nothing is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crop {
    /// The lowest latency in the range; `None` for no bound.
    pub min_ns: Option<u64>,
    /// The latency at which the range ends; `None` for no bound.
    pub max_ns: Option<u64>,
}

#[derive(Serialize)]
struct Row {
    from_ns: u64,
    to_ns: u64,
    count: u64,
}
