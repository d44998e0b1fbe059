//! The I/Os that a query asks for in a row group.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::alike::Shapes;
use crate::block::Block;
use crate::error::Flaw;
use crate::ios::{IN_FLIGHT, IOS, OK, Recorded, column};
use crate::query::Query;
use crate::read::TableFile;

/// The I/Os that a query asks for in a block.
pub struct Selected {
    block: Block,
    /// The rows that the query asks for.
    rows: Vec<usize>,
    shapes: Shapes,
    /// When the last I/O of this block and of all previous blocks ended.
    last_ns: u64,
    /// The file and the row group of the block.
    place: Option<(PathBuf, usize)>,
}

impl Default for Selected {
    fn default() -> Selected {
        Selected {
            block: Block::new(&IOS),
            rows: Vec::new(),
            shapes: Shapes::default(),
            last_ns: 0,
            place: None,
        }
    }
}

impl Selected {
    /// The I/Os. A field is empty if the query does not ask for its column, but I/Os in flight always have
    /// their times.
    pub fn ios(&self) -> impl Iterator<Item = Recorded> {
        let rows = self.rows.iter();
        rows.map(|row| Recorded::of_row(&self.block, *row))
    }

    /// Calls a function for each I/O, and passes a number that is the same for all I/Os of the block with the
    /// same names. The numbers begin at 0, in the order in which they first occur.
    pub fn each(&mut self, of: impl FnMut(u32, &Recorded)) {
        self.shapes.find(&self.block, &self.rows);
        self.shapes.each(&self.block, &self.rows, of);
    }

    /// Calls a function once for each set of I/Os with the same names. The function gets the first I/O of the
    /// set, the number of I/Os in the set, and the number of bytes that they moved together.
    pub fn counts(&mut self, of: impl FnMut(&Recorded, u64, u64)) {
        self.shapes.counts(&self.block, &self.rows, of);
    }

    /// Calls a function for each I/O. The function gets the I/O's number as in [`Selected::each`], the first
    /// I/O with that number, how many bytes the I/O itself moved, and its time at the device.
    pub fn times(&mut self, of: impl FnMut(u32, &Recorded, u64, u64)) {
        self.shapes.find(&self.block, &self.rows);
        self.shapes.times(&self.block, &self.rows, of);
    }

    /// Whether an older dashpot recorded any of the I/Os, so that the process of the I/O is its thread. `false`
    /// if the query does not ask for the columns with the ids of both.
    pub fn has_threads_as_processes(&self) -> bool {
        let block = &self.block;
        let has_none = |column| block.ints(column).is_empty();
        let has_all = |column| !has_none(column) && !block.has_nulls(column);
        // In most blocks, no row needs to be looked at.
        if has_none(column::PID) || has_all(column::TID) {
            return false;
        }
        let has = |column, row: &usize| block.int(column, *row).is_some();
        let mut rows = self.rows.iter();
        rows.any(|row| has(column::PID, row) && !has(column::TID, row))
    }

    /// The I/Os that were in flight when their file was sealed.
    pub fn in_flight(&self) -> impl Iterator<Item = Recorded> {
        let texts = self.block.texts(column::OUTCOME).into_iter();
        let id = texts.filter_map(|texts| texts.id_of(IN_FLIGHT)).next();
        let is_it =
            move |row: &&usize| id.is_some() && self.block.text_id(column::OUTCOME, **row) == id;
        let rows = self.rows.iter().filter(is_it);
        rows.map(|row| Recorded::of_row(&self.block, *row))
    }

    /// Begins another query.
    pub(crate) fn begin(&mut self) {
        self.last_ns = 0;
    }

    /// When the last I/O of all blocks so far ended.
    pub(crate) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Begins a row group. If the block has this row group already, the block keeps its columns.
    pub(crate) fn turn_to(&mut self, path: &Path, file: &TableFile, group: usize) {
        let is_it = |place: &(PathBuf, usize)| place.1 == group && place.0 == path;
        if self.place.as_ref().is_some_and(is_it) {
            self.block.forget_parts();
        } else {
            self.block.begin(file.rows(group));
            self.place = Some((path.to_owned(), group));
        }
    }

    /// Finds the rows that a query asks for in a row group. The caller has begun that row group. Returns
    /// whether there are any rows. This function decodes the columns with conditions only if the row group's
    /// bounds leave the answer open, and the other columns only if any row remains.
    pub(crate) fn select(
        &mut self,
        file: &TableFile,
        group: usize,
        query: &Query,
    ) -> Result<bool, Flaw> {
        let Selected {
            block,
            rows,
            last_ns,
            ..
        } = self;
        let until_ns = query.to_ns.saturating_sub(1);
        let period = match query.to_ns {
            u64::MAX => query.from_ns..=u64::MAX,
            _ => query.from_ns..=until_ns,
        };
        let period = Matching::of(file, group, column::AT, period);
        let latency = Matching::of(file, group, column::LATENCY, query.latency_ns.clone());
        rows.clear();
        rows.extend(0..block.rows);
        if !period.keep(file, group, column::AT, block, rows)? {
            return Ok(false);
        }
        let ended_ns = match (period, file.bounds(group, column::AT)) {
            (Matching::All, Some((_, last_ns))) => last_ns as u64,
            _ => {
                file.load(group, &[column::AT], block)?;
                let each = rows.iter().filter_map(|row| block.int(column::AT, *row));
                each.map(|ns| ns as u64).max().unwrap_or_default()
            }
        };
        *last_ns = ended_ns.max(*last_ns);
        if !latency.keep(file, group, column::LATENCY, block, rows)? {
            return Ok(false);
        }
        file.load_rows(group, &query.columns, rows, block)?;
        let mut outcomes = block.texts(column::OUTCOME).into_iter();
        if outcomes.any(|texts| texts.all().any(|outcome| outcome != OK)) {
            file.load_rows(group, &UNUSUAL, rows, block)?;
        }
        Ok(true)
    }
}

/// The columns that are needed for I/Os in flight, and to find out how many bytes failed I/Os moved.
const UNUSUAL: [usize; 4] = [column::AT, column::CLOCK, column::LATENCY, column::THROTTLE];

/// Whether all, none or some rows of a row group have a value that the query asks for, as far as the row
/// group's bounds show.
#[derive(Clone)]
enum Matching {
    All,
    None,
    Some(RangeInclusive<u64>),
}

impl Matching {
    /// Whether all, none or some values of a column are in the range `asked`.
    fn of(file: &TableFile, group: usize, column: usize, asked: RangeInclusive<u64>) -> Matching {
        if asked == (0..=u64::MAX) {
            return Matching::All;
        }
        // Unsigned numbers are stored as signed numbers with the same bits, so their bounds are in order only
        // if no number looks negative.
        let bounds = file.bounds(group, column).filter(|(least, _)| *least >= 0);
        match bounds.map(|(least, most)| (least as u64, most as u64)) {
            Some((least, most)) if most < *asked.start() || least > *asked.end() => Matching::None,
            Some((least, most)) if asked.contains(&least) && asked.contains(&most) => Matching::All,
            _ => Matching::Some(asked),
        }
    }

    /// Keeps the rows whose value the query asks for. Returns whether any rows remain.
    fn keep(
        &self,
        file: &TableFile,
        group: usize,
        column: usize,
        block: &mut Block,
        rows: &mut Vec<usize>,
    ) -> Result<bool, Flaw> {
        match self {
            Matching::All => {}
            Matching::None => rows.clear(),
            Matching::Some(asked) => {
                file.load(group, &[column], block)?;
                let ints = block.ints(column);
                let is_asked = |row: &usize| {
                    ints.get(*row)
                        .is_some_and(|value| asked.contains(&(*value as u64)))
                };
                rows.retain(is_asked);
            }
        }
        Ok(!rows.is_empty())
    }
}
