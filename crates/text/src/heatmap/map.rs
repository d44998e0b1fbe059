//! A heat map that is fitted into the columns and bands for which a picture has room.

use std::ops::Range;

use super::columns::{HeatColumn, HeatMap};
use super::rows::{PER_DECADE, ROWS, end_of, round_of, row_at, start_of};

/// The maximum size of a map.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The maximum number of columns.
    pub columns: usize,
    /// The maximum number of bands that are drawn in detail. Two more bands may lie below and above these.
    pub bands: usize,
}

/// The cells of a picture, in columns. Each column has one cell for each band.
#[derive(Clone, Debug)]
pub struct Map {
    /// The bands, the lowest first.
    pub bands: Vec<Band>,
    /// The columns, the oldest first.
    pub columns: Vec<Cells>,
    /// How many columns of the heat map are joined into one column of the picture.
    pub joined: usize,
    /// The highest count of any cell.
    pub most: u64,
}

/// Latencies from `from_ns` to `to_ns`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// The first row of the band.
    pub(super) row: usize,
    /// The round latency that labels the band, if the band has a label. It is the latency at which the band
    /// begins. For the band below the rows drawn in detail, it is the latency at which the band ends.
    pub round_ns: Option<u64>,
    /// The lowest latency in the band.
    pub from_ns: u64,
    /// The highest latency in the band.
    pub to_ns: u64,
    /// The band's place relative to the rows that are drawn in detail.
    pub place: BandPlace,
}

/// The place of a band relative to the rows that are drawn in detail, which a crop may limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandPlace {
    /// Below the rows that are drawn in detail. A single band has all latencies below them.
    Below,
    /// Among the rows that are drawn in detail.
    Within,
    /// Above the rows that are drawn in detail. A single band has all latencies above them.
    Above,
}

/// A column of the picture.
#[derive(Clone, Debug)]
pub struct Cells {
    /// When the column began.
    pub start_ns: u64,
    /// The number of I/Os in each band, the lowest band first.
    pub counts: Vec<u64>,
}

impl Map {
    /// Joins neighbouring columns and neighbouring rows of a heat map until it fits into this room.
    pub fn new(heat: &HeatMap, room: Size) -> Map {
        let joined = heat.columns.len().div_ceil(room.columns.max(1)).max(1);
        let bands = bands(heat, room.bands.max(1));
        let columns: Vec<Cells> = heat
            .columns
            .chunks(joined)
            .map(|columns| Cells::of(columns, &bands))
            .collect();
        let counts = columns.iter().flat_map(|column| &column.counts);
        Map {
            most: counts.copied().max().unwrap_or(0),
            bands,
            columns,
            joined,
        }
    }
}

impl Map {
    /// Whether the label of the band below already shows the latency at which this band begins.
    pub(crate) fn is_named_below(&self, band: usize) -> bool {
        let below = band.checked_sub(1).and_then(|below| self.bands.get(below));
        below.is_some_and(|below| below.place == BandPlace::Below)
    }
}

impl Cells {
    fn of(columns: &[HeatColumn], bands: &[Band]) -> Cells {
        let mut counts = vec![0; bands.len()];
        for &(row, count) in columns.iter().flat_map(|column| &column.rows) {
            let after = bands.partition_point(|band| band.row <= row);
            counts[after.saturating_sub(1)] += count;
        }
        Cells {
            start_ns: columns.first().map_or(0, |column| column.start_ns),
            counts,
        }
    }

    /// How many I/Os the column contains.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// The bands of a map. At most `most` bands cover the rows that are drawn in detail. If the crop has a lower
/// bound, or if an I/O was faster than the lowest of these rows, one more band has all latencies below these
/// rows. If the crop has an upper bound, another band has all latencies above them.
fn bands(heat: &HeatMap, most: usize) -> Vec<Band> {
    let rows = rows_shown(heat);
    let count = |joined: usize| rows.end.div_ceil(joined) - rows.start / joined;
    let joined = JOINED.into_iter().find(|joined| count(*joined) <= most);
    let joined = joined.unwrap_or(ROWS);
    let (first, end) = (rows.start / joined, rows.end.div_ceil(joined));
    let within = |at: usize| Band::new(at * joined..(at + 1) * joined, BandPlace::Within);
    let is_below =
        heat.crop.min_ns.is_some() || rows_occupied(heat).any(|row| row < first * joined);
    let below = (is_below && first > 0).then_some(0..first * joined);
    let above = heat.crop.max_ns.map(|_| end * joined..ROWS);
    let below = below.map(|rows| Band::new(rows, BandPlace::Below));
    let above = above.map(|rows| Band::new(rows, BandPlace::Above));
    let within = (first..end).map(within);
    below.into_iter().chain(within).chain(above).collect()
}

fn rows_occupied(heat: &HeatMap) -> impl Iterator<Item = usize> {
    let rows = heat.columns.iter().flat_map(|column| &column.rows);
    rows.map(|(row, _)| *row)
}

/// The rows that are drawn in detail: those with I/Os, extended to the next round latencies and to at least a
/// factor of ten. Rows below 1 µs are left out, because only I/Os that take no time in a simulation are so
/// fast. A crop overrides these limits.
fn rows_shown(heat: &HeatMap) -> Range<usize> {
    let floor = row_at(FLOOR_NS);
    let least = rows_occupied(heat)
        .min()
        .unwrap_or(row_at(IDLE_NS.start))
        .max(floor);
    let most = rows_occupied(heat)
        .max()
        .unwrap_or(row_at(IDLE_NS.end))
        .max(floor);
    let mut start = (0..=least)
        .rfind(|row| round_of(*row).is_some())
        .unwrap_or(0);
    let mut end = (most + 1..ROWS)
        .find(|row| round_of(*row).is_some())
        .unwrap_or(most + 1);
    let missing = PER_DECADE.saturating_sub(end - start);
    start = start.saturating_sub(missing / 2).max(floor);
    end = end.max(start + PER_DECADE);
    match (heat.crop.min_ns.map(row_at), heat.crop.max_ns.map(row_at)) {
        (None, None) => start..end,
        (Some(start), None) => start..end.max(start + PER_DECADE),
        (None, Some(end)) => start.min(end.saturating_sub(PER_DECADE))..end.max(1),
        (Some(start), Some(end)) => start..end.max(start + 1),
    }
}

impl Band {
    fn new(rows: Range<usize>, place: BandPlace) -> Band {
        let round = |row: usize| {
            round_of(row).filter(|_| rows.len() == 1 || row.is_multiple_of(PER_DECADE))
        };
        Band {
            row: rows.start,
            round_ns: match place {
                BandPlace::Within => round(rows.start),
                BandPlace::Above => round_of(rows.start),
                BandPlace::Below => round_of(rows.end),
            },
            from_ns: start_of(rows.start),
            to_ns: end_of(rows.end - 1),
            place,
        }
    }
}

/// The possible numbers of rows in a band.
const JOINED: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];
/// The least latency that is drawn in detail, because no medium is faster.
const FLOOR_NS: u64 = 1_000;
/// The range of latencies that an empty map shows.
const IDLE_NS: Range<u64> = 100_000..50_000_000;
