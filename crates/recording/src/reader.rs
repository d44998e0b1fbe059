//! Reads a recording, even while a recorder writes it.
//!
//! The reader keeps in memory the names of the files, one footer, and the requested columns of one row
//! group: about 8 MB at most.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::block::Block;
use crate::directory::{files, is_recording, segment_of};
use crate::error::{Flaw, RecordingError};
use crate::evict::Segment;
use crate::gaps::gaps;
use crate::ios::{IOS, Recorded, column};
use crate::lasting::is_carried;
use crate::marks::{MARKS, Mark};
use crate::query::Query;
use crate::read::{Source, TableFile};
use crate::seconds::{self, SECONDS, Second};
use crate::selected::Selected;
use crate::table::Table;

/// Devices, each with the word of its layer and its name.
pub type Devices = BTreeSet<(Arc<str>, Arc<str>)>;

/// A recording, with the files of I/Os that it had when the caller opened it.
#[derive(Clone, Debug)]
pub struct Recording {
    root: PathBuf,
    segments: Vec<(PathBuf, Segment)>,
}

impl Recording {
    /// Opens a recording. The recording's files are opened only when they are needed.
    pub fn open(root: &Path) -> Result<Recording, RecordingError> {
        std::fs::metadata(root).map_err(RecordingError::io(root))?;
        if is_recording(root)? {
            Ok(Recording {
                segments: segments(root)?,
                root: root.to_owned(),
            })
        } else {
            Err(RecordingError::Foreign {
                path: root.to_owned(),
            })
        }
    }

    /// When the first and the last recorded single I/Os ended, in nanoseconds since 1970. `None` if the
    /// recording has no single I/Os.
    pub fn period(&self) -> Option<(u64, u64)> {
        let segments = &self.segments;
        let from_ns = segments.iter().map(|(_, segment)| segment.from_ns).min();
        let to_ns = segments.iter().map(|(_, segment)| segment.to_ns).max();
        from_ns.zip(to_ns)
    }

    /// The name of the host whose I/Os were recorded, as the recording's last file has it.
    pub fn host(&self) -> Result<Option<String>, RecordingError> {
        match self.segments.last() {
            Some((path, _)) => Ok(TableFile::open(path, &IOS)?.host()),
            None => Ok(None),
        }
    }

    /// The I/Os of a query, in blocks and in the order in which they were recorded.
    pub fn blocks(&self, query: Query) -> Blocks {
        let mut blocks = Blocks::default();
        self.ask(query, &mut blocks);
        blocks
    }

    /// Begins another query, and reuses the blocks of an earlier one. If the new query begins in the row
    /// group in which the earlier query ended, and asks for the same columns, the reader does not decode
    /// these columns again.
    pub fn ask(&self, query: Query, blocks: &mut Blocks) {
        let is_asked =
            |segment: &Segment| segment.to_ns >= query.from_ns && segment.from_ns < query.to_ns;
        let own = self.segments.iter();
        let asked = own.filter(|(_, segment)| is_asked(segment));
        blocks.paths = asked.map(|(path, _)| path.clone()).collect();
        blocks.query = query;
        blocks.open = None;
        blocks.selected.begin();
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

    /// All marks, the oldest first. Damaged files are left out, and their errors are added to `damaged`,
    /// because a query of single I/Os works without marks.
    pub fn marks(&self, damaged: &mut Vec<RecordingError>) -> Result<Vec<Mark>, RecordingError> {
        let mut marks = Vec::new();
        self.rows(
            &MARKS,
            damaged,
            |_, _| true,
            |block, row| marks.extend(Mark::of_row(block, row)),
        )?;
        // While a recorder carries marks over into a later file, both files have them; a crash leaves both.
        let mut carried = HashSet::new();
        marks.retain(|mark| !is_carried(mark) || carried.insert(mark.clone()));
        Ok(marks)
    }

    /// The times for which the recording has the counts of seconds, but not all single I/Os. The times are
    /// in nanoseconds since 1970. `marks` must be this recording's marks.
    pub fn gaps(&self, marks: &[Mark]) -> Vec<Range<u64>> {
        let segments = self.segments.iter();
        let segments: Vec<Segment> = segments.map(|(_, segment)| segment.clone()).collect();
        gaps(&segments, marks)
    }

    /// The total size of the recording's files, in bytes.
    pub fn bytes(&self) -> Result<u64, RecordingError> {
        let tables = [&IOS, &SECONDS, &MARKS];
        let each = tables.map(|table| files(&self.root, table));
        let each = each.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(each.iter().flatten().map(|(_, bytes)| bytes).sum())
    }

    /// The counts of the seconds from `from_s` up to but not including `to_s`, both in seconds since 1970.
    pub fn seconds(&self, from_s: u64, to_s: u64) -> Result<Vec<Second>, RecordingError> {
        let mut seconds = Vec::new();
        self.each_second(from_s, to_s, &mut Vec::new(), |second| seconds.push(second))?;
        Ok(seconds)
    }

    /// Calls a function for each row of these seconds. Damaged files are left out, and their errors are added
    /// to `damaged`.
    pub fn each_second(
        &self,
        from_s: u64,
        to_s: u64,
        damaged: &mut Vec<RecordingError>,
        mut of: impl FnMut(Second),
    ) -> Result<(), RecordingError> {
        let is_asked = |file: &TableFile, group| {
            let bounds = file.bounds(group, seconds::SECOND);
            bounds.is_none_or(|(first, last)| last as u64 >= from_s && (first as u64) < to_s)
        };
        self.rows(&SECONDS, damaged, is_asked, |block, row| {
            let second = Second::of_row(block, row);
            if let Some(second) = second.filter(|one| (from_s..to_s).contains(&one.second)) {
                of(second);
            }
        })
    }

    /// The devices of which the recording has counts of seconds, and the range of these seconds, counted
    /// since 1970.
    pub fn counted(
        &self,
        damaged: &mut Vec<RecordingError>,
    ) -> Result<(Devices, Range<u64>), RecordingError> {
        let columns = [seconds::SECOND, seconds::LAYER, seconds::DEVICE];
        let (mut devices, mut first, mut last) = (Devices::new(), u64::MAX, 0);
        self.row_groups(
            &SECONDS,
            &columns,
            damaged,
            |_, _| true,
            |block| {
                devices.extend(seconds::devices(block));
                for second in block.ints(seconds::SECOND) {
                    (first, last) = (first.min(*second as u64), last.max(*second as u64));
                }
            },
        )?;
        Ok((devices, first..last.saturating_add(1)))
    }

    /// Calls a function for each row of the requested row groups of a table, except the rows of damaged
    /// files.
    fn rows(
        &self,
        table: &'static Table,
        damaged: &mut Vec<RecordingError>,
        is_asked: impl Fn(&TableFile, usize) -> bool,
        mut row_of: impl FnMut(&Block, usize),
    ) -> Result<(), RecordingError> {
        let columns: Vec<usize> = (0..table.columns.len()).collect();
        self.row_groups(table, &columns, damaged, is_asked, |block| {
            (0..block.rows).for_each(|row| row_of(block, row));
        })
    }

    /// Calls a function for each of the requested row groups of a table, with these columns, except the row
    /// groups of damaged files.
    fn row_groups(
        &self,
        table: &'static Table,
        columns: &[usize],
        damaged: &mut Vec<RecordingError>,
        is_asked: impl Fn(&TableFile, usize) -> bool,
        mut of: impl FnMut(&Block),
    ) -> Result<(), RecordingError> {
        let mut block = Block::new(table);
        for (name, _) in files(&self.root, table)? {
            let path = self.root.join(table.name).join(name);
            let mut read = || -> Result<(), RecordingError> {
                let Some(file) = present(TableFile::open(&path, table))? else {
                    return Ok(());
                };
                let is_asked = |group| is_asked(&file, group);
                let read = file.each_group(columns, &mut block, is_asked, &mut of);
                read.map_err(|flaw| flaw.of(&path))
            };
            match read() {
                Err(error @ (RecordingError::Damaged { .. } | RecordingError::Foreign { .. })) => {
                    damaged.push(error);
                }
                done => done?,
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

/// Refuses a file if any of its I/Os ended outside of the times in the file's name, because the reader
/// chooses files by their names.
fn check_name(path: &Path, file: &TableFile) -> Result<(), RecordingError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(segment) = segment_of(&name, 0) else {
        return Ok(());
    };
    let named = segment.from_ns..=segment.to_ns;
    let groups = 0..file.groups();
    let mut bounds = groups.filter_map(|group| file.bounds(group, column::AT));
    if bounds.all(|(least, most)| {
        least < 0 || (named.contains(&(least as u64)) && named.contains(&(most as u64)))
    }) {
        Ok(())
    } else {
        Err(Flaw::damaged("its name says other times than its I/Os have").of(path))
    }
}

/// Returns `None` for a file that the recorder has deleted since the reader read its name.
fn present<T>(opened: Result<T, RecordingError>) -> Result<Option<T>, RecordingError> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(RecordingError::Io { refusal, .. }) if refusal.kind() == ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The blocks of a query. Only one block is in memory at a time.
#[derive(Default)]
pub struct Blocks {
    query: Query,
    paths: VecDeque<PathBuf>,
    /// The file that is being read, and its next row group.
    open: Option<(PathBuf, TableFile, usize)>,
    selected: Selected,
}

impl Blocks {
    /// The next block with I/Os that the query asks for; `None` at the end and after an error.
    ///
    /// # Errors
    ///
    /// A file is damaged or cannot be read.
    pub fn next_block(&mut self) -> Result<Option<&mut Selected>, RecordingError> {
        loop {
            match self.step() {
                Ok(Step::End) => return Ok(None),
                Ok(Step::Nothing) => {}
                Ok(Step::Block) => return Ok(Some(&mut self.selected)),
                Err(error) => {
                    self.paths.clear();
                    self.open = None;
                    self.selected = Selected::default();
                    return Err(error);
                }
            }
        }
    }

    /// When the last of the I/Os so far ended, in nanoseconds since 1970. This includes I/Os whose latency is
    /// outside of the query's range, but not I/Os outside of the query's period. I/Os in flight count as
    /// ended when their file was sealed.
    pub fn last_ns(&self) -> u64 {
        self.selected.last_ns()
    }

    fn step(&mut self) -> Result<Step, RecordingError> {
        if self.open.is_none() {
            let Some(path) = self.paths.pop_front() else {
                return Ok(Step::End);
            };
            let file = present(TableFile::open(&path, &IOS))?;
            if let Some(file) = &file {
                check_name(&path, file)?;
            }
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
        self.selected.turn_to(path, file, *group - 1);
        let selected = self.selected.select(file, *group - 1, &self.query);
        if selected.map_err(|flaw| flaw.of(path))? {
            Ok(Step::Block)
        } else {
            Ok(Step::Nothing)
        }
    }
}

/// The result of a step to the next row group.
enum Step {
    Block,
    Nothing,
    End,
}

/// The I/Os of a file in memory. This function compares no checksums, so that files that a fuzzer has changed
/// reach the decoder.
pub fn read_unverified(bytes: Vec<u8>) -> Result<Vec<Recorded>, RecordingError> {
    let read = || {
        let file = TableFile::parse(Source::Memory(bytes.into()), &IOS, false)?;
        let mut ios = Vec::new();
        let mut selected = Selected::default();
        for group in 0..file.groups() {
            selected.turn_to(Path::new(""), &file, group);
            if selected.select(&file, group, &Query::default())? {
                ios.extend(selected.ios());
            }
        }
        Ok(ios)
    };
    read().map_err(|flaw: Flaw| flaw.of(Path::new("(in memory)")))
}
