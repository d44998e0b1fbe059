//! A table that grows by a few rows at a time. Each seal rewrites the newest file until that file is old or
//! large; then a new file begins.

use std::path::{Path, PathBuf};

use crate::batch::Batch;
use crate::directory::{Directory, files, number_of, numbered_name};
use crate::error::{Flaw, RecordingError};
use crate::read::TableFile;
use crate::seal::Label;
use crate::table::{GROUP_ROWS, Table};
use crate::write::Draft;

/// A table of seconds or of marks.
pub(crate) struct Growing {
    table: &'static Table,
    folder: PathBuf,
    /// The newest file is rewritten until it has this many bytes.
    grows_bytes: u64,
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
    /// Continues a table whose newest file is rewritten until it has `grows_bytes`.
    pub(crate) fn new(
        table: &'static Table,
        root: &Path,
        grows_bytes: u64,
    ) -> Result<Growing, RecordingError> {
        let files = files(root, table)?;
        Ok(Growing {
            table,
            folder: root.join(table.name),
            grows_bytes,
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
        push(&mut self.groups, self.table, fill);
        self.has_news = true;
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
        let bytes = file_of(&self.groups, self.table, label);
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
        let is_old = now_ns.saturating_sub(since_ns) >= GROWS_NS;
        if is_old || self.groups.len() >= GROUPS || self.newest_bytes >= self.grows_bytes {
            self.files
                .push((name, std::mem::take(&mut self.newest_bytes)));
            self.groups.clear();
            self.since_ns = None;
            self.number += 1;
        }
        Ok(())
    }

    /// The size of all files, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.newest_bytes + self.files.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }

    /// The paths of the earlier files, the oldest first.
    pub(crate) fn earlier(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(|(name, _)| self.folder.join(name))
    }

    /// The lowest value of a column of numbers in the oldest file.
    pub(crate) fn lowest(&self, column: usize) -> Option<i64> {
        let Some(path) = self.earlier().next() else {
            let own = self.groups.iter().map(|group| &group.columns[column].ints);
            return own.flatten().min().copied();
        };
        let file = TableFile::open(&path, self.table).ok()?;
        let bounds = (0..file.groups()).filter_map(|group| file.bounds(group, column));
        bounds.map(|(least, _)| least).min()
    }

    /// Replaces the rows of an earlier file. `bytes` are those of the new file.
    pub(crate) fn replace(
        &mut self,
        directory: &Directory,
        at: usize,
        bytes: &[u8],
    ) -> Result<(), RecordingError> {
        let (name, length) = &mut self.files[at];
        directory.publish(self.table, name, bytes)?;
        *length = bytes.len() as u64;
        Ok(())
    }

    /// Deletes the oldest file. The newest file is never deleted.
    pub(crate) fn remove_oldest(&mut self, directory: &Directory) -> Result<(), RecordingError> {
        if self.files.is_empty() {
            return Ok(());
        }
        let (name, _) = self.files.remove(0);
        directory.remove(self.table, &name)
    }

    /// Deletes the oldest files until the remaining files take at most `most` bytes.
    pub(crate) fn shrink(
        &mut self,
        directory: &Directory,
        most: u64,
    ) -> Result<(), RecordingError> {
        while self.bytes() > most && !self.files.is_empty() {
            self.remove_oldest(directory)?;
        }
        Ok(())
    }
}

/// Adds a row to the last row group, or to a new one.
pub(crate) fn push(groups: &mut Vec<Batch>, table: &'static Table, fill: impl FnOnce(&mut Batch)) {
    if groups.last().is_none_or(|group| group.rows() >= GROUP_ROWS) {
        groups.push(Batch::new(table));
    }
    if let Some(group) = groups.last_mut() {
        fill(group);
    }
}

/// The bytes of a file with these row groups.
pub(crate) fn file_of(
    groups: &[Batch],
    table: &'static Table,
    label: &Label,
) -> Result<Vec<u8>, Flaw> {
    let mut draft = Draft::new(table)?;
    for group in groups {
        draft.add(group)?;
    }
    Ok(draft.seal(label)?)
}
