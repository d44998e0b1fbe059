//! The thread that makes files from rows, and deletes old files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use parquet::errors::ParquetError;

use super::job::{Job, Options, SEAL_IOS, Seal};
use super::state::{Mode, State};
use crate::batch::Batch;
use crate::clock::{Clock, Moment};
use crate::directory::{Directory, files, number_of, segment_name, segment_of};
use crate::error::{Flaw, RecordingError};
use crate::evict::{Segment, victims};
use crate::growing::{self, Growing};
use crate::ios::{self, IOS};
use crate::lasting::{Left, lasting};
use crate::marks::{self, Event, MARKS, Mark};
use crate::open::OpenFile;
use crate::seal::Label;
use crate::seconds::{self, SECONDS, Second};
use crate::table::{GROUP_ROWS, Table};

pub(super) struct Writer {
    directory: Directory,
    root: PathBuf,
    options: Options,
    clock: Arc<dyn Clock>,
    state: Arc<State>,
    open: OpenFile,
    /// How many rows of the open file belong to finished I/Os.
    finished: u64,
    next: u64,
    segments: Vec<Segment>,
    seconds: Growing,
    marks: Growing,
    /// The clock's time and the writer's CPU time at the last seal.
    used: Option<(u64, u64)>,
    /// When the recorder begins to record single I/Os again.
    resumes_ns: u64,
}

/// The seconds and the marks together may take at most [`Options::keep_bytes`] divided by this number.
const COUNTS_PART: u64 = 4;
/// The marks may take at most the bytes for seconds and marks together, divided by this number.
const MARKS_PART: u64 = 8;
/// A file of seconds grows until it has [`Options::keep_bytes`] divided by this number. It must be small,
/// because for a moment its old and its new version are both on the disk.
const SECONDS_FILES: u64 = 64;
/// A file of marks grows until it has [`Options::keep_bytes`] divided by this number.
const MARKS_FILES: u64 = COUNTS_PART * MARKS_PART * 8;
const SECOND_NS: u64 = 1_000_000_000;
/// If the writer took too much CPU time, it leaves out single I/Os for this long.
const REST_NS: u64 = 60_000_000_000;

impl Writer {
    pub(super) fn new(
        directory: Directory,
        root: &Path,
        options: Options,
        clock: Arc<dyn Clock>,
        state: Arc<State>,
    ) -> Result<Writer, RecordingError> {
        let sealed = files(root, &IOS)?;
        let segments: Vec<Segment> = sealed
            .iter()
            .filter_map(|(name, bytes)| segment_of(name, *bytes))
            .collect();
        let next = sealed.last().map_or(0, |(name, _)| number_of(name)) + 1;
        Ok(Writer {
            seconds: Growing::new(&SECONDS, root, options.keep_bytes / SECONDS_FILES)?,
            marks: Growing::new(&MARKS, root, options.keep_bytes / MARKS_FILES)?,
            directory,
            root: root.to_owned(),
            options,
            clock,
            state,
            open: OpenFile::default(),
            finished: 0,
            next,
            segments,
            used: None,
            resumes_ns: 0,
        })
    }

    /// Works until it gets `Job::End`. After an error, it still takes jobs but does not do them. Returns the
    /// directory, which stays locked until the caller drops it.
    pub(super) fn run(mut self, jobs: &Receiver<Job>, give_back: &Sender<Batch>) -> Directory {
        self.begin();
        while let Ok(job) = jobs.recv() {
            let done = match job {
                Job::End => break,
                job if self.state.mode() == Mode::Stopped => {
                    self.state.add_lost(job.ios());
                    Ok(())
                }
                Job::Rows(batch) => self.rows(batch, give_back),
                Job::Seal(seal) => self.seal(*seal, give_back),
            };
            if let Err(error) = done {
                self.stop(&error);
            }
        }
        self.directory
    }

    /// Records a mark for the beginning, with the id of this thread, so that readers can recognise the
    /// thread's own I/O.
    fn begin(&mut self) {
        let now = self.clock.now();
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        self.marks.push_mark(&Mark {
            at_ns: now.unix_ns,
            clock_ns: now.monotonic_ns,
            event: Event::Began,
            device: None,
            n: Some(id.into()),
            text: None,
        });
    }

    fn rows(&mut self, mut batch: Batch, give_back: &Sender<Batch>) -> Result<(), RecordingError> {
        self.finished += batch.rows() as u64;
        self.add(&batch)?;
        batch.clear();
        // An error here means that the recorder has ended, and needs no more batches.
        let _ = give_back.send(batch);
        if self.open.rows() >= 2 * SEAL_IOS {
            self.seal_ios(&self.clock.now(), false)
        } else {
            Ok(())
        }
    }

    /// Adds a row group to the file.
    fn add(&mut self, batch: &Batch) -> Result<(), RecordingError> {
        let added = self.open.add(batch);
        added.map_err(refused(&self.root))
    }

    fn seal(&mut self, mut seal: Seal, give_back: &Sender<Batch>) -> Result<(), RecordingError> {
        self.finished += seal.batch.rows() as u64;
        // If the file of I/Os cannot be written, the last file of marks still has these marks.
        seal.marks
            .iter()
            .for_each(|mark| self.marks.push_mark(mark));
        for io in &seal.in_flight {
            if seal.batch.rows() >= GROUP_ROWS {
                self.add(&seal.batch)?;
                seal.batch.clear();
            }
            ios::push(&mut seal.batch, io, true);
        }
        self.add(&seal.batch)?;
        seal.batch.clear();
        // An error here means that the recorder has ended, and needs no more batches.
        let _ = give_back.send(seal.batch);
        self.seal_ios(&seal.now, seal.is_slow)?;
        seal.seconds
            .iter()
            .for_each(|second| self.seconds.push_second(second));
        self.publish_seconds(&seal.now)?;
        self.publish_marks(&seal.now)?;
        self.make_room(0)?;
        self.weigh(&seal.now);
        self.state.add_seal();
        Ok(())
    }

    fn seal_ios(&mut self, now: &Moment, is_slow: bool) -> Result<(), RecordingError> {
        let label = self.label(&IOS, now);
        let number = self.next;
        let sealed = self.open.seal(&label, number, is_slow);
        let Some((segment, bytes)) = sealed.map_err(refused(&self.root))? else {
            return Ok(());
        };
        self.next += 1;
        self.segments.push(segment);
        self.make_room(0)?;
        // If this file alone is larger than the whole recording may be, `make_room` has removed it from
        // `segments`. Then the file is not written.
        if let Some(kept) = self.segments.last().filter(|last| last.number == number) {
            let published = self.directory.publish(&IOS, &segment_name(kept), &bytes);
            if published.is_err() {
                // The file was not written, so deleting it would make no room for the mark of this error.
                self.segments.pop();
            }
            published?;
        }
        self.state.add_ios(std::mem::take(&mut self.finished));
        Ok(())
    }

    fn publish_seconds(&mut self, now: &Moment) -> Result<(), RecordingError> {
        if let Some(bytes) = self.seconds.news(&self.label(&SECONDS, now))? {
            self.make_room(bytes.len() as u64)?;
            self.seconds
                .write(&self.directory, &bytes, now.monotonic_ns)?;
        }
        Ok(())
    }

    fn publish_marks(&mut self, now: &Moment) -> Result<(), RecordingError> {
        if let Some(bytes) = self.marks.news(&self.label(&MARKS, now))? {
            self.make_room(bytes.len() as u64)?;
            self.marks
                .write(&self.directory, &bytes, now.monotonic_ns)?;
        }
        Ok(())
    }

    fn label(&self, table: &Table, now: &Moment) -> Label {
        Label {
            table: table.name.to_owned(),
            host: self.options.host.clone(),
            clock_ns: now.monotonic_ns,
            at_ns: now.unix_ns,
        }
    }

    /// Deletes files until the remaining files and `more` bytes fit: first the oldest files of seconds and marks,
    /// if these take more than their part of the size, then files of I/Os. The writer makes room before it writes
    /// a file, so that the recording never takes more than [`Options::keep_bytes`].
    fn make_room(&mut self, more: u64) -> Result<(), RecordingError> {
        let part = self.options.keep_bytes / COUNTS_PART;
        self.shrink_marks(part / MARKS_PART)?;
        let left = part.saturating_sub(self.marks.bytes());
        self.seconds.shrink(&self.directory, left)?;
        self.evict(more)
    }

    /// Deletes the oldest files of marks until the remaining files take at most `most` bytes. The marks that
    /// readers need for what is left of the recording go into the next file; if that is the newest file, they
    /// stay where they are.
    fn shrink_marks(&mut self, most: u64) -> Result<(), RecordingError> {
        while self.marks.bytes() > most {
            let mut files = self.marks.earlier();
            let (Some(oldest), next) = (files.next(), files.next()) else {
                break;
            };
            drop(files);
            // A file that cannot be read is deleted as if it had no marks to carry over.
            let old = marks::read(&oldest).unwrap_or_default();
            let mut kept = lasting(&old, &self.left(), most / 2);
            if kept.len() == old.len() && !old.is_empty() && next.is_none() {
                break;
            }
            let Some(next) = next else {
                return self.replace_marks(0, &kept);
            };
            // Without marks to carry over, the next file stays as it is, even if it cannot be read.
            if !kept.is_empty() {
                kept.extend(marks::read(&next).unwrap_or_default());
                self.replace_marks(1, &kept)?;
            }
            self.marks.remove_oldest(&self.directory)?;
        }
        Ok(())
    }

    /// Replaces the marks of an earlier file. The new file needs room beside the old one for a moment.
    fn replace_marks(&mut self, at: usize, kept: &[Mark]) -> Result<(), RecordingError> {
        if kept.is_empty() {
            return self.marks.remove_oldest(&self.directory);
        }
        let mut groups = Vec::new();
        for mark in kept {
            growing::push(&mut groups, &MARKS, |batch| marks::push(batch, mark));
        }
        let label = self.label(&MARKS, &self.clock.now());
        let bytes =
            growing::file_of(&groups, &MARKS, &label).map_err(|flaw| flaw.of(&self.root))?;
        self.evict(bytes.len() as u64)?;
        self.marks.replace(&self.directory, at, &bytes)
    }

    /// The I/Os and counts that are left of the recording, for which readers need marks.
    fn left(&self) -> Left<'_> {
        let second = self.seconds.lowest(seconds::SECOND);
        let second = second.and_then(|second| u64::try_from(second).ok());
        let second_ns = second.map(|second| second.saturating_mul(SECOND_NS));
        let ios_ns = self.segments.iter().map(|segment| segment.from_ns).min();
        Left {
            since_ns: second_ns
                .into_iter()
                .chain(ios_ns)
                .min()
                .unwrap_or(u64::MAX),
            segments: &self.segments,
        }
    }

    /// Deletes files of I/Os until all files and `more` bytes fit.
    fn evict(&mut self, more: u64) -> Result<(), RecordingError> {
        let counts = self.marks.bytes() + self.seconds.bytes();
        let keep = self.options.keep_bytes;
        for number in victims(&self.segments, keep.saturating_sub(counts + more)) {
            if let Some(at) = self.segments.iter().position(|one| one.number == number) {
                self.directory
                    .remove(&IOS, &segment_name(&self.segments[at]))?;
                self.segments.remove(at);
                self.state.add_deleted();
            }
        }
        let ios: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        self.state.set_bytes(ios + counts);
        Ok(())
    }

    /// Leaves out single I/Os for a while if the writer's thread took too much CPU time.
    fn weigh(&mut self, now: &Moment) {
        let cpu_ns = self.clock.thread_cpu_ns();
        self.state.set_cpu(cpu_ns);
        let before = self.used.replace((now.monotonic_ns, cpu_ns));
        let is_too_much = before.is_some_and(|(then_ns, then_cpu_ns)| {
            let passed_ns = now.monotonic_ns.saturating_sub(then_ns);
            cpu_ns.saturating_sub(then_cpu_ns) > passed_ns / 100 * self.options.cpu_percent
        });
        if is_too_much {
            self.resumes_ns = now.monotonic_ns.saturating_add(REST_NS);
            self.state.set_mode(Mode::SecondsOnly);
        } else if now.monotonic_ns >= self.resumes_ns {
            self.state.set_mode(Mode::Everything);
        }
    }

    /// Stops recording, and writes a mark. The reserve is deleted to make room for the mark.
    fn stop(&mut self, error: &RecordingError) {
        self.state.stop(error.to_string());
        let lost = std::mem::take(&mut self.finished);
        self.state.add_lost(lost);
        self.directory.use_reserve();
        let mark = |now: &Moment, event, n, text| Mark {
            at_ns: now.unix_ns,
            clock_ns: now.monotonic_ns,
            event,
            device: None,
            n,
            text,
        };
        if lost > 0 {
            // Without this mark, the time since the last file would look idle. It must come before `Stopped`.
            let n = i64::try_from(lost).unwrap_or(i64::MAX);
            let lost = mark(&self.clock.now(), Event::Lost, Some(n), None);
            self.marks.push_mark(&lost);
        }
        let now = self.clock.now();
        let why = Some(error.to_string());
        self.marks.push_mark(&mark(&now, Event::Stopped, None, why));
        // There may still be no room for the mark, so an error here is ignored. The summary has the first
        // error in any case.
        let _ = self.publish_marks(&now);
    }
}

impl Growing {
    fn push_mark(&mut self, mark: &Mark) {
        self.push(|batch| marks::push(batch, mark));
    }

    fn push_second(&mut self, second: &Second) {
        self.push(|batch| seconds::push(batch, second));
    }
}

fn refused(root: &Path) -> impl FnOnce(ParquetError) -> RecordingError {
    let root = root.to_owned();
    move |error| Flaw::from(error).of(&root)
}
