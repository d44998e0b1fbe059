//! Makes a new recording, a cut, from a part of another recording.
//!
//! The recorder loses I/Os if its files are not written fast enough. A cut waits for its files instead, so it
//! loses none. Its I/Os and marks keep the times that they have in the other recording.

use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::batch::Batch;
use crate::directory::{Directory, segment_name};
use crate::error::{Flaw, RecordingError};
use crate::growing::Growing;
use crate::ios::{self, IOS, Recorded};
use crate::marks::{self, MARKS, Mark};
use crate::open::OpenFile;
use crate::recorder::SEAL_IOS;
use crate::seal::Label;
use crate::seconds::{self, SECONDS, Second, Seconds};
use crate::table::{GROUP_ROWS, Table};

/// A recording that is being cut out of another recording.
pub struct Cut {
    root: PathBuf,
    directory: Directory,
    host: String,
    open: OpenFile,
    batch: Batch,
    counts: Seconds,
    rows: Vec<Second>,
    seconds: Growing,
    marks: Growing,
    next: u64,
    last_ns: u64,
    ios: u64,
    bytes: u64,
}

impl Cut {
    /// Begins a recording of I/Os of the host with this name. The directory must not be a recording yet.
    pub fn create(root: &Path, host: &str) -> Result<Cut, RecordingError> {
        let (directory, _) = Directory::create(root)?;
        Ok(Cut {
            root: root.to_owned(),
            directory,
            host: host.to_owned(),
            open: OpenFile::default(),
            batch: Batch::new(&IOS),
            counts: Seconds::new(),
            rows: Vec::new(),
            seconds: Growing::new(&SECONDS, root, u64::MAX)?,
            marks: Growing::new(&MARKS, root, u64::MAX)?,
            next: 1,
            last_ns: 0,
            ios: 0,
            bytes: 0,
        })
    }

    /// Adds an I/O.
    pub fn add(&mut self, recorded: &Recorded) -> Result<(), RecordingError> {
        let Recorded { io, is_in_flight } = recorded;
        ios::push(&mut self.batch, io, *is_in_flight);
        self.last_ns = self.last_ns.max(io.at_ns);
        if !is_in_flight {
            self.ios += 1;
            self.counts.add(io, &mut self.rows);
        }
        self.push_seconds();
        if self.batch.rows() >= GROUP_ROWS {
            self.end_group()
        } else {
            Ok(())
        }
    }

    /// Adds a mark.
    pub fn mark(&mut self, mark: &Mark) {
        self.last_ns = self.last_ns.max(mark.at_ns);
        self.marks.push(|batch| marks::push(batch, mark));
    }

    /// Writes the remaining rows. Returns the number of finished I/Os in the new recording, and the total
    /// size of its files of I/Os, in bytes.
    pub fn finish(mut self) -> Result<(u64, u64), RecordingError> {
        self.end_group()?;
        self.seal()?;
        self.counts.end(self.last_ns, &mut self.rows);
        self.push_seconds();
        self.publish_counts()?;
        Ok((self.ios, self.bytes))
    }

    fn publish_counts(&mut self) -> Result<(), RecordingError> {
        let [seconds, marks] = [&SECONDS, &MARKS].map(|table| self.label(table));
        self.seconds
            .publish(&self.directory, &seconds, self.last_ns)?;
        self.marks.publish(&self.directory, &marks, self.last_ns)
    }

    fn push_seconds(&mut self) {
        for second in self.rows.drain(..) {
            self.seconds.push(|batch| seconds::push(batch, &second));
        }
    }

    fn end_group(&mut self) -> Result<(), RecordingError> {
        let added = self.open.add(&self.batch);
        added.map_err(|error| self.refused(error))?;
        self.batch.clear();
        if self.open.rows() >= SEAL_IOS {
            self.seal()
        } else {
            Ok(())
        }
    }

    fn seal(&mut self) -> Result<(), RecordingError> {
        let label = self.label(&IOS);
        let sealed = self.open.seal(&label, self.next, false);
        let Some((segment, bytes)) = sealed.map_err(|error| self.refused(error))? else {
            return Ok(());
        };
        self.directory
            .publish(&IOS, &segment_name(&segment), &bytes)?;
        self.next += 1;
        self.bytes += segment.bytes;
        self.publish_counts()
    }

    fn label(&self, table: &Table) -> Label {
        Label {
            table: table.name.to_owned(),
            host: self.host.clone(),
            clock_ns: self.last_ns,
            at_ns: self.last_ns,
        }
    }

    fn refused(&self, error: ParquetError) -> RecordingError {
        Flaw::from(error).of(&self.root)
    }
}
