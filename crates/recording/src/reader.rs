//! Reads a recording, even while a recorder writes it.
//!
//! It keeps in memory the names of the files, one footer, and the requested columns of one row group: about
//! 8 MB at most.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::alike::Shapes;
use crate::block::Block;
use crate::directory::{files, is_recording, segment_of};
use crate::error::{Flaw, RecordingError};
use crate::evict::Segment;
use crate::gaps::gaps;
use crate::ios::{IN_FLIGHT, IOS, OK, Recorded, column};
use crate::marks::{MARKS, Mark};
use crate::read::{Source, TableFile};
use crate::seconds::{self, SECONDS, Second};
use crate::table::Table;

/// A recording, with the files of I/Os that it had when it was opened.
#[derive(Clone, Debug)]
pub struct Recording {
    root: PathBuf,
    segments: Vec<(PathBuf, Segment)>,
}

/// The I/Os that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// They ended at this time or later, in nanoseconds since 1970.
    pub from_ns: u64,
    /// They ended before this time.
    pub to_ns: u64,
    /// They took at least this long.
    pub min_ns: u64,
    /// The columns of [`mod@column`] that the caller will read.
    pub columns: Vec<usize>,
}

impl Default for Query {
    /// All columns of all I/Os.
    fn default() -> Query {
        Query {
            from_ns: 0,
            to_ns: u64::MAX,
            min_ns: 0,
            columns: (0..IOS.columns.len()).collect(),
        }
    }
}

impl Recording {
    /// Opens a recording. Its files are opened when they are needed.
    pub fn open(root: &Path) -> Result<Recording, RecordingError> {
        std::fs::metadata(root).map_err(RecordingError::io(root))?;
        match is_recording(root)? {
            true => Ok(Recording {
                segments: segments(root)?,
                root: root.to_owned(),
            }),
            false => Err(RecordingError::Foreign {
                path: root.to_owned(),
            }),
        }
    }

    /// When the first and the last of the single I/Os ended, in nanoseconds since 1970. There are none if
    /// nothing was recorded.
    pub fn period(&self) -> Option<(u64, u64)> {
        let segments = &self.segments;
        let from_ns = segments.iter().map(|(_, segment)| segment.from_ns).min();
        let to_ns = segments.iter().map(|(_, segment)| segment.to_ns).max();
        from_ns.zip(to_ns)
    }

    /// The name of the host whose I/Os it has, by its last file.
    pub fn host(&self) -> Result<Option<String>, RecordingError> {
        match self.segments.last() {
            Some((path, _)) => Ok(TableFile::open(path, &IOS)?.host()),
            None => Ok(None),
        }
    }

    /// The I/Os of a query, in the order in which they were recorded, in blocks.
    pub fn blocks(&self, query: Query) -> Blocks {
        let mut blocks = Blocks::default();
        self.ask(query, &mut blocks);
        blocks
    }

    /// Begins another query with the blocks of an earlier one. If it begins in the row group that the other ended
    /// with, and asks for the same columns, these are not decoded again.
    pub fn ask(&self, query: Query, blocks: &mut Blocks) {
        let is_asked =
            |segment: &Segment| segment.to_ns >= query.from_ns && segment.from_ns < query.to_ns;
        let own = self.segments.iter();
        let asked = own.filter(|(_, segment)| is_asked(segment));
        blocks.paths = asked.map(|(path, _)| path.clone()).collect();
        blocks.query = query;
        blocks.open = None;
        blocks.selected.last_ns = 0;
    }

    /// The I/Os of a query, in the order in which they were recorded.
    #[cfg(test)]
    pub(crate) fn ios(&self, query: Query) -> Result<Vec<Recorded>, RecordingError> {
        let mut blocks = self.blocks(query);
        let mut ios = Vec::new();
        while let Some(selected) = blocks.next_block()? {
            ios.extend(selected.ios());
        }
        Ok(ios)
    }

    /// All marks, the oldest first.
    pub fn marks(&self) -> Result<Vec<Mark>, RecordingError> {
        let mut marks = Vec::new();
        self.rows(
            &MARKS,
            |_, _| true,
            |block, row| marks.extend(Mark::of_row(block, row)),
        )?;
        Ok(marks)
    }

    /// The times for which it has the counts of seconds, but not all single I/Os, in nanoseconds since
    /// 1970.
    pub fn gaps(&self) -> Result<Vec<Range<u64>>, RecordingError> {
        let segments = self.segments.iter();
        let segments: Vec<Segment> = segments.map(|(_, segment)| segment.clone()).collect();
        Ok(gaps(&segments, &self.marks()?))
    }

    /// The bytes of its files.
    pub fn bytes(&self) -> Result<u64, RecordingError> {
        let tables = [&IOS, &SECONDS, &MARKS];
        let each = tables.map(|table| files(&self.root, table));
        let each = each.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(each.iter().flatten().map(|(_, bytes)| bytes).sum())
    }

    /// The counts of the seconds from `from_s` on and before `to_s`, in seconds since 1970.
    pub fn seconds(&self, from_s: u64, to_s: u64) -> Result<Vec<Second>, RecordingError> {
        let mut seconds = Vec::new();
        self.each_second(from_s, to_s, |second| seconds.push(second))?;
        Ok(seconds)
    }

    /// Calls for each row of these seconds.
    pub fn each_second(
        &self,
        from_s: u64,
        to_s: u64,
        mut of: impl FnMut(Second),
    ) -> Result<(), RecordingError> {
        let is_asked = |file: &TableFile, group| {
            let bounds = file.bounds(group, seconds::SECOND);
            bounds.is_none_or(|(first, last)| last as u64 >= from_s && (first as u64) < to_s)
        };
        self.rows(&SECONDS, is_asked, |block, row| {
            let second = Second::of_row(block, row);
            if let Some(second) = second.filter(|one| (from_s..to_s).contains(&one.second)) {
                of(second);
            }
        })
    }

    /// Calls for each row of the row groups of a table that are asked for.
    fn rows(
        &self,
        table: &'static Table,
        is_asked: impl Fn(&TableFile, usize) -> bool,
        mut row_of: impl FnMut(&Block, usize),
    ) -> Result<(), RecordingError> {
        let columns: Vec<usize> = (0..table.columns.len()).collect();
        let mut block = Block::new(table);
        for (name, _) in files(&self.root, table)? {
            let path = self.root.join(table.name).join(name);
            let Some(file) = present(TableFile::open(&path, table))? else {
                continue;
            };
            for group in (0..file.groups()).filter(|group| is_asked(&file, *group)) {
                block.begin(file.rows(group));
                let loaded = file.load(group, &columns, &mut block);
                loaded.map_err(|flaw| flaw.of(&path))?;
                (0..block.rows).for_each(|row| row_of(&block, row));
            }
        }
        Ok(())
    }
}

/// The files of I/Os, in their order.
fn segments(root: &Path) -> Result<Vec<(PathBuf, Segment)>, RecordingError> {
    let folder = root.join(IOS.name);
    let segments = files(root, &IOS)?.into_iter().map(|(name, bytes)| {
        let path = folder.join(&name);
        match segment_of(&name, bytes) {
            Some(segment) => Ok((path, segment)),
            None => Err(RecordingError::Foreign { path }),
        }
    });
    segments.collect()
}

/// Nothing for a file that the recorder has deleted since its name was read.
fn present<T>(opened: Result<T, RecordingError>) -> Result<Option<T>, RecordingError> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(RecordingError::Io { refusal, .. }) if refusal.kind() == ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The blocks of a query. One is in memory.
#[derive(Default)]
pub struct Blocks {
    query: Query,
    paths: VecDeque<PathBuf>,
    /// The file that is being read, and its next row group.
    open: Option<(PathBuf, TableFile, usize)>,
    selected: Selected,
}

impl Blocks {
    /// The next block with I/Os that the query asks for; none at the end, and after an error.
    ///
    /// # Errors
    ///
    /// A file is damaged or cannot be read.
    pub fn next_block(&mut self) -> Result<Option<&Selected>, RecordingError> {
        loop {
            match self.step() {
                Ok(Step::End) => return Ok(None),
                Ok(Step::Nothing) => {}
                Ok(Step::Block) => return Ok(Some(&self.selected)),
                Err(error) => {
                    self.paths.clear();
                    self.open = None;
                    self.selected.place = None;
                    return Err(error);
                }
            }
        }
    }

    /// When the last I/O of the query's period so far ended, however long it took, in nanoseconds since
    /// 1970. I/Os in flight count at the moment at which their file was sealed.
    pub fn last_ns(&self) -> u64 {
        self.selected.last_ns
    }

    fn step(&mut self) -> Result<Step, RecordingError> {
        if self.open.is_none() {
            let Some(path) = self.paths.pop_front() else {
                return Ok(Step::End);
            };
            let file = present(TableFile::open(&path, &IOS))?;
            self.open = file.map(|file| (path, file, 0));
        }
        let Some((path, file, group)) = &mut self.open else {
            return Ok(Step::Nothing);
        };
        if *group >= file.groups() {
            self.open = None;
            return Ok(Step::Nothing);
        }
        *group += 1;
        let place = (path.clone(), *group - 1);
        if self.selected.place.as_ref() != Some(&place) {
            self.selected.block.begin(file.rows(place.1));
            self.selected.place = Some(place);
        }
        let selected = self.selected.select(file, *group - 1, &self.query);
        match selected.map_err(|flaw| flaw.of(path))? {
            true => Ok(Step::Block),
            false => Ok(Step::Nothing),
        }
    }
}

/// The result of a step to the next row group.
enum Step {
    Block,
    Nothing,
    End,
}

/// The I/Os of a block that a query asks for.
pub struct Selected {
    pub(crate) block: Block,
    /// The rows that are asked for.
    pub(crate) rows: Vec<usize>,
    /// When the last I/O of this and of all blocks before it ended.
    last_ns: u64,
    /// The file and the row group of the block.
    place: Option<(PathBuf, usize)>,
}

impl Default for Selected {
    fn default() -> Selected {
        Selected {
            block: Block::new(&IOS),
            rows: Vec::new(),
            last_ns: 0,
            place: None,
        }
    }
}

impl Selected {
    /// The I/Os. Fields whose columns were not asked for are empty, except for the times of I/Os in flight.
    pub fn ios(&self) -> impl Iterator<Item = Recorded> {
        let rows = self.rows.iter();
        rows.map(|row| Recorded::of_row(&self.block, *row))
    }

    /// Calls for each I/O, with a number. I/Os of the block with the same names have the same number, and
    /// the numbers count from 0 in the order of their first I/Os.
    pub fn each(&self, of: impl FnMut(u32, &Recorded)) {
        Shapes::of(&self.block, &self.rows).each(&self.block, &self.rows, of);
    }

    /// Calls once for all I/Os with the same names: with the first one, their number and their bytes.
    pub fn counts(&self, of: impl FnMut(&Recorded, u64, u64)) {
        Shapes::of(&self.block, &self.rows).counts(&self.block, &self.rows, of);
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

    /// Takes the rows of a row group that a query asks for. The block has begun with that row group. Returns
    /// whether there are any. It decodes the columns of the query's bounds only if the row group's own bounds
    /// do not decide, and the other columns only if any row is left.
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
        let period = Matching::of(file, group, column::AT, query.from_ns, query.to_ns);
        let latency = Matching::of(file, group, column::LATENCY, query.min_ns, u64::MAX);
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
        file.load(group, &query.columns, block)?;
        let mut outcomes = block.texts(column::OUTCOME).into_iter();
        if outcomes.any(|texts| texts.all().any(|outcome| outcome != OK)) {
            file.load(group, &UNUSUAL, block)?;
        }
        Ok(true)
    }
}

/// The columns that are needed for I/Os in flight, and for the bytes of those that failed.
const UNUSUAL: [usize; 4] = [column::AT, column::CLOCK, column::LATENCY, column::STORE];

/// How many rows of a row group have a value that the query asks for, as far as the bounds show.
#[derive(Clone, Copy)]
enum Matching {
    All,
    None,
    Some(u64, u64),
}

impl Matching {
    /// For values from `from` on and before `to`; the highest number as `to` means no bound.
    fn of(file: &TableFile, group: usize, column: usize, from: u64, to: u64) -> Matching {
        if from == 0 && to == u64::MAX {
            return Matching::All;
        }
        // Unsigned numbers keep their order only while none looks negative.
        let bounds = file.bounds(group, column).filter(|(least, _)| *least >= 0);
        match bounds.map(|(least, most)| (least as u64, most as u64)) {
            Some((least, most)) if most < from || least >= to => Matching::None,
            Some((least, most)) if least >= from && most < to => Matching::All,
            _ => Matching::Some(from, to),
        }
    }

    /// Keeps the rows whose value is asked for. Returns whether there are any.
    fn keep(
        self,
        file: &TableFile,
        group: usize,
        column: usize,
        block: &mut Block,
        rows: &mut Vec<usize>,
    ) -> Result<bool, Flaw> {
        match self {
            Matching::All => {}
            Matching::None => rows.clear(),
            Matching::Some(from, to) => {
                file.load(group, &[column], block)?;
                let is_asked = |value: i64| {
                    let value = value as u64;
                    value >= from && (value < to || to == u64::MAX)
                };
                rows.retain(|row| block.int(column, *row).is_some_and(is_asked));
            }
        }
        Ok(!rows.is_empty())
    }
}

/// The I/Os of a file in memory. It compares no checksums, so that a fuzzer reaches the decoder.
pub fn read_unverified(bytes: Vec<u8>) -> Result<Vec<Recorded>, RecordingError> {
    let read = || {
        let file = TableFile::parse(Source::Memory(bytes.into()), &IOS, false)?;
        let mut ios = Vec::new();
        let mut selected = Selected::default();
        for group in 0..file.groups() {
            selected.block.begin(file.rows(group));
            if selected.select(&file, group, &Query::default())? {
                ios.extend(selected.ios());
            }
        }
        Ok(ios)
    };
    read().map_err(|flaw: Flaw| flaw.of(Path::new("(in memory)")))
}
