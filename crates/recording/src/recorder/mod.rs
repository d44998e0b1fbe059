//! The recorder takes finished I/Os from its caller's thread, and writes them in a thread of its own.
//!
//! The caller's thread only fills columns in memory. When the columns are full, it hands them over to the
//! writer as a row group, but never waits. If the writer is already [`QUEUE`] row groups behind, the recorder
//! drops the I/Os of the new row group, counts them, and records a mark about the loss. The table of seconds
//! still counts these I/Os. At most seven row groups of about 6 MB each, and the file that is being made, are
//! in memory.

#[cfg(test)]
mod cost;
mod job;
#[cfg(test)]
mod killed;
mod slow;
mod state;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

use dashpot_observe::FinishedIo;

use crate::batch::Batch;
use crate::clock::{Clock, Jump, Moment, jumps};
use crate::directory::{Directory, Made};
use crate::error::RecordingError;
use crate::ios::{self, IOS};
use crate::marks::{Event, Mark};
use crate::seconds::{Second, Seconds};
use crate::table::GROUP_ROWS;

use job::{Job, Seal};
use slow::Slow;
use state::{Mode, State};
use writer::Writer;

pub use job::{Options, SEAL_IOS, SEAL_NS};
pub use state::Summary;

/// Writes a recording. [`Recorder::finish`] ends the recording; a recorder that is dropped before that loses
/// the rows that it has not sealed.
pub struct Recorder {
    clock: Arc<dyn Clock>,
    made: Made,
    state: Arc<State>,
    jobs: SyncSender<Job>,
    /// Empty batches that the writer gives back.
    spare: Receiver<Batch>,
    writer: Option<JoinHandle<Directory>>,
    batch: Batch,
    seconds: Seconds,
    slow: Slow,
    /// Rows of the table of seconds, which the recorder hands over with the next seal.
    rows: Vec<Second>,
    marks: Vec<Mark>,
    last: Moment,
    sealed: Moment,
    /// The number of I/Os since the last seal.
    ios: usize,
    /// How many I/Os and events were lost since the last mark about losses. The key is the text of the mark.
    lost: BTreeMap<Option<&'static str>, u64>,
    /// How many sync calls were on unknown devices since the last mark about them.
    unplaced: u64,
    is_seconds_only: bool,
    /// Whether the last seal must be tried again because the writer did not take it.
    retries: bool,
}

/// The maximum number of row groups that wait for the writer.
const QUEUE: usize = 4;
/// A seal that the writer did not take is tried again after this time.
const RETRY_NS: u64 = 100_000_000;
/// At most this many marks, and at most this many rows of seconds, wait while the writer does not take them.
const WAITING_MAX: usize = 1 << 16;

impl Recorder {
    /// Begins to record in this directory. If the directory does not exist, this function makes it.
    pub fn create(
        root: &Path,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Recorder, RecordingError> {
        let (directory, made) = Directory::create(root)?;
        let now = clock.now();
        let state = Arc::new(State::default());
        let (jobs, taken) = sync_channel(QUEUE);
        let (give_back, spare) = channel();
        let writer = Writer::new(
            directory,
            root,
            options,
            Arc::clone(&clock),
            Arc::clone(&state),
        )?;
        let writer = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || writer.run(&taken, &give_back))
            .map_err(RecordingError::io(root))?;
        Ok(Recorder {
            clock,
            made,
            state,
            jobs,
            spare,
            writer: Some(writer),
            batch: Batch::new(&IOS),
            seconds: Seconds::new(),
            slow: Slow::default(),
            rows: Vec::new(),
            marks: Vec::new(),
            last: now,
            sealed: now,
            ios: 0,
            lost: BTreeMap::new(),
            unplaced: 0,
            is_seconds_only: false,
            retries: false,
        })
    }

    /// Records an I/O.
    pub fn add(&mut self, io: &FinishedIo) {
        if self.seconds.add(io, &mut self.rows) {
            self.slow.is("the 99th percentile rose tenfold", io);
        }
        self.slow.look(io, &mut self.seconds);
        self.ios += 1;
        if self.state.mode() == Mode::Everything {
            ios::push(&mut self.batch, io, false);
            if self.batch.rows() >= GROUP_ROWS {
                self.hand_over();
            }
        }
    }

    /// Adds a mark with the present time.
    pub fn mark(&mut self, event: Event, device: Option<&str>, n: Option<i64>, text: Option<&str>) {
        let now = self.clock.now();
        if self.marks.len() < WAITING_MAX {
            self.marks.push(Mark {
                at_ns: now.unix_ns,
                clock_ns: now.monotonic_ns,
                event,
                device: device.map(str::to_owned),
                n,
                text: text.map(str::to_owned),
            });
        }
    }

    /// Adds a mark that the user's trigger has fired for this I/O.
    pub fn trigger(&mut self, io: &FinishedIo, text: &str) {
        self.slow.is("a trigger fired", io);
        let took_ns = i64::try_from(io.total_ns()).ok();
        self.mark(Event::Trigger, Some(&io.device), took_ns, Some(text));
    }

    /// Counts I/Os or events that the source lost. `whose` is the text of their mark, if the recording has several
    /// sources.
    pub fn lost(&mut self, count: u64, whose: Option<&'static str>) {
        if count > 0 {
            *self.lost.entry(whose).or_default() += count;
        }
    }

    /// Counts sync calls on unknown devices.
    pub fn unplaced(&mut self, count: u64) {
        self.unplaced += count;
    }

    /// Reads the clocks, and returns whether the caller should seal a file. Call this function a few times a
    /// second.
    pub fn is_due(&mut self) -> bool {
        let now = self.clock.now();
        let last = std::mem::replace(&mut self.last, now);
        for jump in jumps(&last, &now) {
            match jump {
                Jump::Step(ns) => self.mark(Event::ClockStep, None, Some(ns), None),
                Jump::Suspend(ns) => self.mark(Event::Suspend, None, Some(ns as i64), None),
            }
        }
        let age_ns = now.monotonic_ns.saturating_sub(self.sealed.monotonic_ns);
        if self.retries {
            age_ns >= RETRY_NS
        } else {
            age_ns >= SEAL_NS || self.ios >= SEAL_IOS
        }
    }

    /// Seals a file, with a row for each I/O in flight. The row says that the I/O began at its `begun_ns` and
    /// ended now. If the writer is behind, a later call seals the file.
    pub fn seal(&mut self, in_flight: &[FinishedIo]) {
        let seal = self.prepare(in_flight);
        if let Err(
            TrySendError::Full(Job::Seal(seal)) | TrySendError::Disconnected(Job::Seal(seal)),
        ) = self.jobs.try_send(Job::Seal(seal))
        {
            self.take_back(*seal);
        }
    }

    /// Seals the last file, and waits for the writer.
    pub fn finish(mut self, in_flight: &[FinishedIo]) -> Summary {
        // The marks about losses must come before the mark about the end.
        self.note_losses();
        self.mark(Event::Ended, None, None, None);
        let seal = self.prepare(in_flight);
        // The writer takes all jobs up to `Job::End`, even after an error.
        let _ = self.jobs.send(Job::Seal(seal));
        drop(self.end());
        self.state.summary()
    }

    /// Ends a recording that could not begin: removes what [`Recorder::create`] has made. Does not touch a recording
    /// that was there before.
    pub fn abandon(mut self) {
        if let Some(directory) = self.end() {
            self.made.remove(&directory);
        }
    }

    /// Waits until the writer has done its jobs. Returns the directory, which is still locked.
    fn end(&mut self) -> Option<Directory> {
        let _ = self.jobs.send(Job::End);
        self.writer.take()?.join().ok()
    }

    /// The totals so far.
    pub fn summary(&self) -> Summary {
        let mut summary = self.state.summary();
        // Those that no file has yet.
        summary.ios += self.ios as u64;
        summary
    }

    fn prepare(&mut self, in_flight: &[FinishedIo]) -> Box<Seal> {
        let now = self.clock.now();
        self.slow.oldest(in_flight, now.monotonic_ns);
        let mode = self.state.mode();
        let in_flight = match mode {
            Mode::Everything => in_flight.iter().map(|io| ending(io, &now)).collect(),
            _ => Vec::new(),
        };
        self.note_mode(mode);
        if self.seconds.end(now.unix_ns, &mut self.rows) {
            self.slow.is_somewhere("the 99th percentile rose tenfold");
        }
        self.note_losses();
        let slow = self.slow.take();
        if let Some(why) = &slow {
            self.mark(Event::Slow, why.device.as_deref(), None, Some(&why.text));
        }
        (self.sealed, self.ios, self.retries) = (now, 0, false);
        let empty = self.spare();
        Box::new(Seal {
            now,
            batch: std::mem::replace(&mut self.batch, empty),
            in_flight,
            seconds: std::mem::take(&mut self.rows),
            marks: std::mem::take(&mut self.marks),
            is_slow: slow.is_some(),
        })
    }

    /// Takes back the rows and marks of a seal that the writer has not accepted. The next seal, a little
    /// later, hands them over together with the I/Os that are in flight at that time.
    fn take_back(&mut self, mut seal: Seal) {
        self.batch = seal.batch;
        self.retries = true;
        seal.seconds.append(&mut self.rows);
        seal.marks.append(&mut self.marks);
        if seal.seconds.len() <= WAITING_MAX {
            self.rows = seal.seconds;
        }
        self.marks = seal.marks;
        if seal.is_slow {
            self.slow.is_somewhere("slow before");
        }
    }

    /// Hands the rows over to the writer, or drops them if the writer is too far behind.
    fn hand_over(&mut self) {
        let empty = self.spare();
        let batch = std::mem::replace(&mut self.batch, empty);
        if let Err(
            TrySendError::Full(Job::Rows(mut batch))
            | TrySendError::Disconnected(Job::Rows(mut batch)),
        ) = self.jobs.try_send(Job::Rows(batch))
        {
            // These I/Os may be of any source, so the mark names none.
            self.lost(batch.rows() as u64, None);
            batch.clear();
            self.batch = batch;
        }
    }

    fn spare(&self) -> Batch {
        self.spare.try_recv().unwrap_or_else(|_| Batch::new(&IOS))
    }

    fn note_mode(&mut self, mode: Mode) {
        let is_seconds_only = mode == Mode::SecondsOnly;
        if is_seconds_only != self.is_seconds_only {
            self.is_seconds_only = is_seconds_only;
            let event = if is_seconds_only {
                Event::SecondsOnly
            } else {
                Event::SingleIos
            };
            self.mark(event, None, None, None);
        }
    }

    fn note_losses(&mut self) {
        for (whose, lost) in std::mem::take(&mut self.lost) {
            self.state.add_lost(lost);
            let n = i64::try_from(lost).unwrap_or(i64::MAX);
            self.mark(Event::Lost, None, Some(n), whose);
        }
        let unplaced = std::mem::take(&mut self.unplaced);
        if unplaced > 0 {
            self.state.add_unplaced(unplaced);
            let n = i64::try_from(unplaced).unwrap_or(i64::MAX);
            self.mark(Event::Unplaced, None, Some(n), None);
        }
    }
}

/// The record of an I/O in flight, which looks as if the I/O ended now.
fn ending(io: &FinishedIo, now: &Moment) -> FinishedIo {
    FinishedIo {
        ended_ns: now.monotonic_ns,
        at_ns: now.unix_ns,
        error: None,
        ..io.clone()
    }
}
