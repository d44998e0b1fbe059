//! A table that grows by a few rows at a time. Each seal rewrites the newest file until that file is old or
//! large; then a new file begins.

use std::path::Path;

use crate::batch::Batch;
use crate::directory::{Directory, files, number_of, numbered_name};
use crate::error::{Flaw, RecordingError};
use crate::seal::Label;
use crate::table::{GROUP_ROWS, Table};
use crate::write::Draft;

/// A table of seconds or of marks.
pub(crate) struct Growing {
    table: &'static Table,
    /// The rows of the newest file.
    groups: Vec<Batch>,
    /// Whether the newest file, as it is on the disk, lacks some of these rows.
    has_news: bool,
    /// When the newest file was begun.
    since_ns: Option<u64>,
    number: u64,
    /// The names of the earlier files and their sizes in bytes, the oldest first.
    files: Vec<(String, u64)>,
    newest_bytes: u64,
}

/// The newest file is rewritten until it is this old, or has [`GROUPS`] row groups.
const GROWS_NS: u64 = 600_000_000_000;
/// The newest file is rewritten until it has this many row groups, or is [`GROWS_NS`] old.
const GROUPS: usize = 4;

impl Growing {
    pub(crate) fn new(table: &'static Table, root: &Path) -> Result<Growing, RecordingError> {
        let files = files(root, table)?;
        Ok(Growing {
            table,
            groups: Vec::new(),
            has_news: false,
            since_ns: None,
            number: files.last().map_or(0, |(name, _)| number_of(name)) + 1,
            files,
            newest_bytes: 0,
        })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, fill: impl FnOnce(&mut Batch)) {
        if self
            .groups
            .last()
            .is_none_or(|group| group.rows() >= GROUP_ROWS)
        {
            self.groups.push(Batch::new(self.table));
        }
        if let Some(group) = self.groups.last_mut() {
            fill(group);
            self.has_news = true;
        }
    }

    /// Writes the newest file, if it has new rows.
    pub(crate) fn publish(
        &mut self,
        directory: &Directory,
        label: &Label,
        now_ns: u64,
    ) -> Result<(), RecordingError> {
        match self.news(label)? {
            Some(bytes) => self.write(directory, &bytes, now_ns),
            None => Ok(()),
        }
    }

    /// The bytes of the newest file, if it has new rows.
    pub(crate) fn news(&self, label: &Label) -> Result<Option<Vec<u8>>, RecordingError> {
        if !self.has_news {
            return Ok(None);
        }
        let bytes = self.file(label);
        let name = numbered_name(self.number);
        bytes.map(Some).map_err(|flaw| flaw.of(Path::new(&name)))
    }

    /// Writes the newest file with these bytes.
    pub(crate) fn write(
        &mut self,
        directory: &Directory,
        bytes: &[u8],
        now_ns: u64,
    ) -> Result<(), RecordingError> {
        let name = numbered_name(self.number);
        directory.publish(self.table, &name, bytes)?;
        self.has_news = false;
        self.newest_bytes = bytes.len() as u64;
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) >= GROWS_NS || self.groups.len() >= GROUPS {
            self.files
                .push((name, std::mem::take(&mut self.newest_bytes)));
            self.groups.clear();
            self.since_ns = None;
            self.number += 1;
        }
        Ok(())
    }

    fn file(&self, label: &Label) -> Result<Vec<u8>, Flaw> {
        let mut draft = Draft::new(self.table)?;
        for group in &self.groups {
            draft.add(group)?;
        }
        Ok(draft.seal(label)?)
    }

    /// Deletes the oldest files until the remaining files take at most `most` bytes, and returns how many
    /// bytes they take. The newest file is never deleted.
    pub(crate) fn shrink(
        &mut self,
        directory: &Directory,
        most: u64,
    ) -> Result<u64, RecordingError> {
        let mut bytes = self.newest_bytes + self.files.iter().map(|(_, bytes)| bytes).sum::<u64>();
        while bytes > most && !self.files.is_empty() {
            let (name, length) = self.files.remove(0);
            directory.remove(self.table, &name)?;
            bytes -= length;
        }
        Ok(bytes)
    }
}
