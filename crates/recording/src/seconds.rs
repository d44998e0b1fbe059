//! The table of seconds: for each second, how many I/Os had a latency in each bucket, and the exact sums of
//! their latencies and lengths.
//!
//! A reader can add up the counts of several buckets, seconds, devices and hosts. A second can have several
//! rows for the same device, layer, operation and bucket, because an I/O counts for the second in which it
//! ended, but I/Os need not come in the order in which they ended.

use std::collections::HashMap;
use std::sync::Arc;

use dashpot_observe::FinishedIo;

use crate::batch::Batch;
use crate::block::Block;
use crate::buckets::{Buckets, percentile};
use crate::table::Table;

/// The table of seconds.
pub(crate) static SECONDS: Table = Table {
    name: "seconds",
    columns: column::COLUMNS,
};

/// The columns of the table of seconds.
pub(crate) mod column {
    use crate::table::{Column, columns};

    columns! { COLUMNS:
        /// The second, counted since 1970.
        SECOND = Column::number("second").bounded();
        /// The device.
        DEVICE = Column::word("device");
        /// The layer.
        LAYER = Column::word("layer");
        /// The operation.
        OP = Column::word("op");
        /// The highest latency of the bucket; null in the row with the sums.
        LE = Column::number("le_ns").optional();
        /// How many I/Os were in the bucket; 0 in the row with the sums, so that `sum(n)` counts each I/O
        /// once.
        N = Column::number("n");
        /// The sum of the latencies of all I/Os of the second.
        SUM = Column::number("sum_ns").optional();
        /// The sum of the lengths of all I/Os of the second.
        BYTES = Column::number("bytes").optional();
        /// The highest latency of the second.
        MAX = Column::number("max_ns").optional();
        /// How many I/Os of the second failed.
        ERRORS = Column::number("errors").optional();
    }
}

/// A row of the table of seconds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Second {
    /// The second, counted since 1970.
    pub second: u64,
    /// The device.
    pub device: Arc<str>,
    /// The word of the layer.
    pub layer: Arc<str>,
    /// The word of the operation.
    pub op: Arc<str>,
    /// The figures of the row.
    pub count: Count,
}

/// The figures of a row of the table of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Count {
    /// The I/Os of a bucket.
    Bucket {
        /// The highest latency of the bucket; `i64::MAX` for the last bucket.
        le_ns: i64,
        /// The number of I/Os in the bucket.
        n: u64,
    },
    /// The sums of all buckets.
    Sums {
        /// The sum of the latencies.
        sum_ns: u64,
        /// The sum of the lengths.
        bytes: u64,
        /// The highest latency.
        max_ns: u64,
        /// How many I/Os failed.
        errors: u64,
    },
}

/// Counts the I/Os of the present second, and remembers the latencies of the last hours.
pub(crate) struct Seconds {
    buckets: Buckets,
    /// For each device, by name, the indices of its entries in `series`.
    devices: HashMap<Arc<str>, Vec<usize>, foldhash::fast::RandomState>,
    series: Vec<Series>,
    hour: u64,
}

/// The I/Os of one device, operation and layer.
struct Series {
    device: Arc<str>,
    layer: Arc<str>,
    op: Arc<str>,
    second: u64,
    counts: Vec<u32>,
    n: u64,
    sum_ns: u64,
    bytes: u64,
    max_ns: u64,
    errors: u64,
    /// The counts of each bucket in this hour and in the hour before.
    hours: [Vec<u32>; 2],
}

/// In a second with fewer I/Os than this, the 99th percentile means nothing.
const SECOND_LEAST: u64 = 100;
/// In two hours with fewer I/Os than this, percentiles mean nothing.
const HOUR_LEAST: u64 = 1_000;
/// A second is slow if its 99th percentile is at least this many times the 99th percentile of the last
/// hours.
const SLOW_TIMES: u64 = 10;
const HOUR_S: u64 = 3_600;
const SECOND_NS: u64 = 1_000_000_000;

impl Seconds {
    pub(crate) fn new() -> Seconds {
        Seconds {
            buckets: Buckets::new(),
            devices: HashMap::default(),
            series: Vec::new(),
            hour: 0,
        }
    }

    /// Counts an I/O. If it is the first I/O of a new second, adds the rows of the previous second to `rows`,
    /// and returns whether that second was slow.
    pub(crate) fn add(&mut self, io: &FinishedIo, rows: &mut Vec<Second>) -> bool {
        let place = self.place(io);
        let series = &mut self.series[place];
        let second = io.at_ns / SECOND_NS;
        let was_slow = series.second != second && series.end(&self.buckets, rows);
        series.second = second;
        series.count(io, &self.buckets);
        was_slow
    }

    /// Ends the present second of all series, and returns whether the second was slow in any series.
    pub(crate) fn end(&mut self, now_ns: u64, rows: &mut Vec<Second>) -> bool {
        let mut was_slow = false;
        for series in &mut self.series {
            was_slow |= series.end(&self.buckets, rows);
        }
        let hour = now_ns / SECOND_NS / HOUR_S;
        if hour != self.hour {
            self.hour = hour;
            self.series.iter_mut().for_each(Series::next_hour);
        }
        was_slow
    }

    /// The median latency of the last hours for this kind of I/O, if there were enough I/Os.
    pub(crate) fn median_ns(&mut self, io: &FinishedIo) -> Option<u64> {
        let place = self.place(io);
        self.series[place]
            .usual(50)
            .map(|bucket| self.buckets.le_ns(bucket))
    }

    fn place(&mut self, io: &FinishedIo) -> usize {
        let (layer, op) = (io.layer.word(), io.kind.word());
        let is_it = |series: &Series| *series.layer == *layer && *series.op == *op;
        let places = self.devices.get(&io.device).map_or(&[][..], Vec::as_slice);
        if let Some(place) = places.iter().find(|place| is_it(&self.series[**place])) {
            return *place;
        }
        let place = self.series.len();
        self.series.push(Series::new(
            Arc::clone(&io.device),
            layer,
            op,
            self.buckets.len(),
        ));
        self.devices
            .entry(Arc::clone(&io.device))
            .or_default()
            .push(place);
        place
    }
}

impl Series {
    fn new(device: Arc<str>, layer: &str, op: &str, buckets: usize) -> Series {
        Series {
            device,
            layer: layer.into(),
            op: op.into(),
            second: 0,
            counts: vec![0; buckets],
            n: 0,
            sum_ns: 0,
            bytes: 0,
            max_ns: 0,
            errors: 0,
            hours: [vec![0; buckets], vec![0; buckets]],
        }
    }

    fn count(&mut self, io: &FinishedIo, buckets: &Buckets) {
        let ns = io.at_device_ns();
        self.counts[buckets.of(ns)] += 1;
        self.n += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.bytes = self.bytes.saturating_add(io.length_bytes);
        self.max_ns = self.max_ns.max(ns);
        self.errors += u64::from(io.error.is_some());
    }

    /// Appends the rows of the second to `rows`, and begins an empty second. Returns whether the ended second
    /// was slow.
    fn end(&mut self, buckets: &Buckets, rows: &mut Vec<Second>) -> bool {
        if self.n == 0 {
            return false;
        }
        let was_slow = self.is_slow(buckets);
        let counts = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        let in_buckets = counts.map(|(bucket, n)| Count::Bucket {
            le_ns: i64::try_from(buckets.le_ns(bucket)).unwrap_or(i64::MAX),
            n: u64::from(*n),
        });
        let sums = Count::Sums {
            sum_ns: self.sum_ns,
            bytes: self.bytes,
            max_ns: self.max_ns,
            errors: self.errors,
        };
        rows.extend(in_buckets.chain([sums]).map(|count| Second {
            second: self.second,
            device: Arc::clone(&self.device),
            layer: Arc::clone(&self.layer),
            op: Arc::clone(&self.op),
            count,
        }));
        for (hour, count) in self.hours[0].iter_mut().zip(&mut self.counts) {
            *hour = hour.saturating_add(std::mem::take(count));
        }
        (self.n, self.sum_ns, self.bytes, self.max_ns, self.errors) = (0, 0, 0, 0, 0);
        was_slow
    }

    fn is_slow(&self, buckets: &Buckets) -> bool {
        let usual = self.usual(99).map(|bucket| buckets.le_ns(bucket));
        let this = buckets.le_ns(percentile(&self.counts, self.n, 99));
        self.n >= SECOND_LEAST && usual.is_some_and(|ns| this > ns.saturating_mul(SLOW_TIMES))
    }

    /// The bucket that contains this percentile of the last hours, if there were enough I/Os.
    fn usual(&self, percent: u64) -> Option<usize> {
        let both: Vec<u32> = self.hours[0]
            .iter()
            .zip(&self.hours[1])
            .map(|(now, before)| now.saturating_add(*before))
            .collect();
        let total = both.iter().map(|n| u64::from(*n)).sum();
        (total >= HOUR_LEAST).then(|| percentile(&both, total, percent))
    }

    fn next_hour(&mut self) {
        self.hours.swap(0, 1);
        self.hours[0].fill(0);
    }
}

/// Adds a row to a batch of [`SECONDS`].
pub(crate) fn push(batch: &mut Batch, second: &Second) {
    let mut row = batch.row();
    row.put(second.second as i64);
    row.put(&*second.device);
    row.put(&*second.layer);
    row.put(&*second.op);
    let (le_ns, n, sums) = match second.count {
        Count::Bucket { le_ns, n } => (Some(le_ns), n, None),
        Count::Sums {
            sum_ns,
            bytes,
            max_ns,
            errors,
        } => (None, 0, Some([sum_ns, bytes, max_ns, errors])),
    };
    row.put(le_ns);
    row.put(n as i64);
    for at in 0..4 {
        row.put(sums.map(|sums| sums[at] as i64));
    }
}

impl Second {
    /// Reads a [`Second`] from a row of a block.
    pub(crate) fn of_row(block: &Block, row: usize) -> Option<Second> {
        let text = |column| block.name(column, row).cloned();
        let number = |column| block.int(column, row).map(|value| value as u64);
        let count = match block.int(column::LE, row) {
            Some(le_ns) => Count::Bucket {
                le_ns,
                n: number(column::N)?,
            },
            None => Count::Sums {
                sum_ns: number(column::SUM)?,
                bytes: number(column::BYTES)?,
                max_ns: number(column::MAX)?,
                errors: number(column::ERRORS)?,
            },
        };
        Some(Second {
            second: number(column::SECOND)?,
            device: text(column::DEVICE)?,
            layer: text(column::LAYER)?,
            op: text(column::OP)?,
            count,
        })
    }
}

pub(crate) use column::{DEVICE, LAYER, SECOND};

/// The devices of a block, each with the word of its layer and its name. A device comes once for each run of
/// its consecutive rows, so it can come several times.
pub(crate) fn devices(block: &Block) -> impl Iterator<Item = (Arc<str>, Arc<str>)> {
    let ids = |row| (block.text_id(LAYER, row), block.text_id(DEVICE, row));
    let is_first = move |row: &usize| *row == 0 || ids(*row) != ids(row - 1);
    let named = |row| {
        let (layer, device) = (block.name(LAYER, row)?, block.name(DEVICE, row)?);
        Some((Arc::clone(layer), Arc::clone(device)))
    };
    (0..block.rows).filter(is_first).filter_map(named)
}
