//! The directory of a recording: a folder for each table, and files that appear whole.
//!
//! A file is written as a draft with a hidden name, flushed to the device, and renamed; then its folder is
//! flushed. A crash therefore leaves whole files and at most one draft, which the next recorder deletes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dashpot_sys::Trusted;
use rustix::fs::{FlockOperation, OFlags, flock};

use crate::error::RecordingError;
use crate::evict::Segment;
use crate::ios::IOS;
use crate::marks::MARKS;
use crate::seconds::SECONDS;
use crate::table::Table;

/// The directory of a recording, open for writing. No other process can write the recording meanwhile.
pub(crate) struct Directory {
    root: PathBuf,
    _lock: File,
}

/// The files and folders that [`Directory::create`] has made in a place that was no recording before.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// The directory of the recording and those around it, the innermost first.
    directories: Vec<PathBuf>,
    /// The files, the lock last.
    files: Vec<PathBuf>,
    /// The folders of the tables.
    tables: Vec<PathBuf>,
}

impl Made {
    /// The parts of a recording that this directory lacks. A directory with files lacks none: either it is a
    /// recording, or [`Directory::lock`] refuses it.
    fn missing(root: &Path) -> Made {
        let is_free = match fs::read_dir(root) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if !is_free {
            return Made::default();
        }
        let parents = root
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        Made {
            directories: parents.map(Path::to_owned).collect(),
            files: [RESERVE, LOCK].map(|name| root.join(name)).into(),
            tables: [&IOS, &SECONDS, &MARKS]
                .map(|table| root.join(table.name))
                .into(),
        }
    }

    /// Removes what was made, unless it has been used since: a directory with other files stays. The caller
    /// still has the lock, so no other recorder has begun in the meantime.
    pub(crate) fn remove(&self, _: &Directory) {
        // Errors here are ignored, because the user already gets the error that prevented the recording.
        for table in &self.tables {
            let _ = fs::remove_dir(table);
        }
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        self.remove_empty();
    }

    /// Removes the directories that were made, unless they have files.
    fn remove_empty(&self) {
        for directory in &self.directories {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// The file that a recorder locks. Its presence distinguishes a recording from another directory.
const LOCK: &str = "dashpot.recording";
/// A file that the recorder deletes when the disk is full, so that there is room for a mark about the full
/// disk.
const RESERVE: &str = ".reserve";
const RESERVE_BYTES: usize = 64 << 10;
const DRAFT: &str = ".draft";
const SLOW: &str = "-slow";
const PARQUET: &str = ".parquet";

impl Directory {
    /// Makes the directory, or continues in a directory that a recorder has made. After an error, nothing that this
    /// function has made is left.
    pub(crate) fn create(root: &Path) -> Result<(Directory, Made), RecordingError> {
        let made = Made::missing(root);
        let directory = Directory::lock(root);
        if directory.is_err() {
            // Without the lock, any files there may belong to another recorder. So remove only directories
            // without files.
            made.remove_empty();
        }
        let (directory, is_new) = directory?;
        let made = if is_new { made } else { Made::default() };
        let prepared = directory.furnish();
        if prepared.is_err() {
            made.remove(&directory);
        }
        prepared.map(|()| (directory, made))
    }

    /// Locks the directory, and returns whether no recorder had locked it before.
    fn lock(root: &Path) -> Result<(Directory, bool), RecordingError> {
        fs::create_dir_all(root).map_err(RecordingError::io(root))?;
        let owner = fs::metadata(root).map_err(RecordingError::io(root))?.uid();
        if let Some(uid) = Trusted::stranger(root, owner) {
            let path = root.to_owned();
            return Err(RecordingError::OfAnother { path, uid });
        }
        let lock_path = root.join(LOCK);
        let is_empty = fs::read_dir(root)
            .map_err(RecordingError::io(root))?
            .next()
            .is_none();
        if !is_empty && !lock_path.exists() {
            return Err(RecordingError::Foreign {
                path: root.to_owned(),
            });
        }
        let made = File::create_new(&lock_path);
        let is_new = made.is_ok();
        let lock = made.or_else(|_| create(&lock_path));
        let lock = lock.map_err(RecordingError::io(&lock_path))?;
        let is_locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        // A recorder that could not begin removes its file before it releases the lock.
        if !is_locked || !is_at(&lock, &lock_path) {
            return Err(RecordingError::InUse {
                path: root.to_owned(),
            });
        }
        let directory = Directory {
            root: root.to_owned(),
            _lock: lock,
        };
        Ok((directory, is_new))
    }

    /// Makes what a recording needs in its directory.
    fn furnish(&self) -> Result<(), RecordingError> {
        for table in [&IOS, &SECONDS, &MARKS] {
            self.prepare(table)?;
        }
        let root = &self.root;
        self.write(&root.join(RESERVE), &vec![0; RESERVE_BYTES])?;
        // Without this flush, a power cut could delete the folders together with files that were flushed.
        sync(root)?;
        let absolute = fs::canonicalize(root).map_err(RecordingError::io(root))?;
        // An error here is ignored. If the parent folder belongs to another user who does not let dashpot
        // open it, only that user can flush it.
        let _ = absolute.parent().map(sync);
        Ok(())
    }

    /// Makes the folder of a table, and deletes a draft that a crash has left.
    fn prepare(&self, table: &Table) -> Result<(), RecordingError> {
        let folder = self.root.join(table.name);
        fs::create_dir_all(&folder).map_err(RecordingError::io(&folder))?;
        for name in names(&folder)? {
            if name.ends_with(DRAFT) {
                let path = folder.join(name);
                fs::remove_file(&path).map_err(RecordingError::io(&path))?;
            }
        }
        Ok(())
    }

    /// Makes a file appear as a whole, and replaces a file with the same name.
    pub(crate) fn publish(
        &self,
        table: &Table,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), RecordingError> {
        let folder = self.root.join(table.name);
        let (draft, path) = (folder.join(format!(".{name}{DRAFT}")), folder.join(name));
        let written = self.write(&draft, bytes);
        if written.is_err() {
            // An error here is ignored, because the caller already gets the error of the write.
            let _ = fs::remove_file(&draft);
        }
        written?;
        fs::rename(&draft, &path).map_err(RecordingError::io(&path))?;
        sync(&folder)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), RecordingError> {
        let write = || -> io::Result<()> {
            let mut file = create(path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(RecordingError::io(path))
    }

    /// Deletes a file.
    pub(crate) fn remove(&self, table: &Table, name: &str) -> Result<(), RecordingError> {
        let path = self.root.join(table.name).join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(RecordingError::io(&path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Deletes the reserve, which frees its bytes.
    pub(crate) fn use_reserve(&self) {
        // If this fails, the mark has no room, and the caller then reports that it cannot write the mark.
        let _ = fs::remove_file(self.root.join(RESERVE));
    }
}

/// Whether a path leads to this open file.
fn is_at(file: &File, path: &Path) -> bool {
    let place = |meta: fs::Metadata| (meta.dev(), meta.ino());
    let (own, there) = (file.metadata(), fs::metadata(path));
    own.is_ok() && own.map(place).ok() == there.map(place).ok()
}

/// Flushes the names in a folder to the device.
fn sync(folder: &Path) -> Result<(), RecordingError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(RecordingError::io(folder))
}

/// The names of the whole files of a table with their lengths, the oldest first.
pub(crate) fn files(root: &Path, table: &Table) -> Result<Vec<(String, u64)>, RecordingError> {
    let folder = root.join(table.name);
    let mut files = Vec::new();
    for name in names(&folder)? {
        if name.starts_with('.') || !name.ends_with(PARQUET) {
            continue;
        }
        // A recorder may have deleted the file since its name was read.
        if let Ok(meta) = fs::metadata(folder.join(&name)) {
            files.push((name, meta.len()));
        }
    }
    files.sort();
    Ok(files)
}

pub(crate) fn is_recording(root: &Path) -> Result<bool, RecordingError> {
    let has_lock = root.join(LOCK).try_exists();
    Ok(has_lock.map_err(RecordingError::io(root))? && root.join(IOS.name).is_dir())
}

/// Opens a file for writing, and empties it. Never follows a link, which could lead to any file of this user.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
    options.custom_flags(no_follow).open(path)
}

fn names(folder: &Path) -> Result<Vec<String>, RecordingError> {
    let entries = fs::read_dir(folder).map_err(RecordingError::io(folder))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(RecordingError::io(folder))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

/// The name of a file of I/Os. The name shows the file's period, so that a reader opens only the files that
/// it needs.
pub(crate) fn segment_name(segment: &Segment) -> String {
    let slow = if segment.is_slow { SLOW } else { "" };
    let (number, from_ns, to_ns) = (segment.number, segment.from_ns, segment.to_ns);
    format!("{number:010}-{from_ns:019}-{to_ns:019}{slow}{PARQUET}")
}

/// The file of I/Os with this name; `None` if no recorder gives such a name.
pub(crate) fn segment_of(name: &str, bytes: u64) -> Option<Segment> {
    let rest = name.strip_suffix(PARQUET)?;
    let (rest, is_slow) = match rest.strip_suffix(SLOW) {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let mut numbers = rest.split('-').map(str::parse);
    let mut next = || numbers.next()?.ok();
    let segment = Segment {
        number: next()?,
        from_ns: next()?,
        to_ns: next()?,
        is_slow,
        bytes,
    };
    numbers.next().is_none().then_some(segment)
}

/// The name of a file of seconds or of marks.
pub(crate) fn numbered_name(number: u64) -> String {
    format!("{number:010}{PARQUET}")
}

/// The number that a name begins with.
pub(crate) fn number_of(name: &str) -> u64 {
    let digits = name.split(['-', '.']).next().unwrap_or_default();
    digits.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_it_is_made_of() {
        for is_slow in [false, true] {
            let segment = Segment {
                number: 7,
                from_ns: 1_763_900_000_000_000_001,
                to_ns: u64::MAX,
                is_slow,
                bytes: 3,
            };
            let name = segment_name(&segment);
            assert_eq!((segment_of(&name, 3), number_of(&name)), (Some(segment), 7));
        }
        assert_eq!(segment_of("a-b-c.parquet", 1), None);
        assert_eq!(number_of(&numbered_name(12)), 12);
    }

    #[test]
    fn a_directory_is_made_once_and_belongs_to_one_recorder() {
        let scratch = tempfile::tempdir().expect("a directory");
        let root = scratch.path().join("rec");
        let (first, _) = Directory::create(&root).expect("a recording");
        assert!(matches!(
            Directory::create(&root),
            Err(RecordingError::InUse { .. })
        ));
        fs::write(root.join("ios/.x.draft"), "half").expect("a draft");
        first.publish(&IOS, "1.parquet", b"whole").expect("a file");
        drop(first);
        Directory::create(&root).expect("the same recording");
        assert_eq!(
            files(&root, &IOS).ok(),
            Some(vec![("1.parquet".to_owned(), 5)])
        );
        assert_eq!(
            names(&root.join("ios")).ok(),
            Some(vec!["1.parquet".to_owned()])
        );
        fs::write(scratch.path().join("file"), "x").expect("a file");
        assert!(matches!(
            Directory::create(scratch.path()),
            Err(RecordingError::Foreign { .. })
        ));
    }
}
