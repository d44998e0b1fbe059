//! The private directory of an attachment: its mount point, and what is known of it.
//!
//! It is how an attachment is known to be dashpot's own: only root can have made it, and it says which
//! node it is about and which daemon serves it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dashpot_daemon::http::random_word;
use serde::{Deserialize, Serialize};

use super::process::Process;

/// The directory of all of them.
const BASE: &str = "/run/dashpot-attached";
const LOCK: &str = "lock";
const RECORD: &str = "record";

/// What is known of an attachment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) disk: String,
    pub(super) node: String,
    /// The daemon that serves it, if it can be seen from here.
    pub(super) daemon: Option<Process>,
    /// Where that daemon's API is.
    pub(super) api: String,
    /// Settings of the node that were changed, with what they were before.
    pub(super) before: Vec<(String, String)>,
    /// Where dashpot itself has mounted a file system of the node.
    pub(super) mounted: Option<PathBuf>,
}

/// A directory that this process has locked. Dropped, it is removed unless it is [kept](Place::keep).
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    _lock: File,
    kept: bool,
}

impl Place {
    /// A new one.
    pub(super) fn new() -> anyhow::Result<Place> {
        make_base()?;
        let path = Path::new(BASE).join(random_word(8)?);
        let cannot = || format!("cannot make {}", path.display());
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(cannot)?;
        let lock = new_lock(&path).with_context(cannot)?;
        Ok(Place {
            path,
            _lock: lock,
            kept: false,
        })
    }

    /// All that no other process is at work on. Those that are half-made have no record.
    pub(super) fn all() -> Vec<(Place, Option<Record>)> {
        let entries = fs::read_dir(BASE).into_iter().flatten().flatten();
        let places = entries.filter_map(|entry| Place::locked(entry.path()));
        places
            .map(|place| {
                let record = place.record();
                (place, record)
            })
            .collect()
    }

    /// Locks one that is there, unless another process has.
    fn locked(path: PathBuf) -> Option<Place> {
        let lock = File::open(path.join(LOCK)).ok()?;
        lock.try_lock().ok()?;
        Some(Place {
            path,
            _lock: lock,
            kept: true,
        })
    }

    /// The file on which a disk is mounted. Its name is what `losetup` lists.
    pub(super) fn file(&self, disk: &str) -> PathBuf {
        self.path.join(dashpot_rules::segment(disk))
    }

    /// The files that something may be mounted on.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let is_ours = |path: &PathBuf| {
            let name = path.file_name();
            name.is_some_and(|name| name == LOCK || name == RECORD)
        };
        paths.filter(|path| !is_ours(path)).collect()
    }

    fn record(&self) -> Option<Record> {
        let text = fs::read_to_string(self.path.join(RECORD)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Writes down what is known. A reader finds all of it or none.
    pub(super) fn write(&self, record: &Record) -> anyhow::Result<()> {
        let (unnamed, named) = (self.path.join("record.new"), self.path.join(RECORD));
        fs::write(&unnamed, serde_json::to_vec(record)?)
            .and_then(|()| fs::rename(&unnamed, &named))
            .with_context(|| format!("cannot write {}", named.display()))
    }

    /// Leaves it behind.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }

    /// Removes it, with nothing mounted in it.
    pub(super) fn remove(mut self) {
        self.kept = false;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // A file with a mount cannot be removed, and keeps its directory: it is looked at again later.
        for file in self.files() {
            if fs::remove_file(&file).is_err() {
                return;
            }
        }
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes the directory of all, or makes sure that it is root's alone.
fn make_base() -> anyhow::Result<()> {
    match DirBuilder::new().mode(0o700).create(BASE) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(|| format!("cannot make {BASE}")),
    }
    let found = fs::symlink_metadata(BASE)?;
    let is_own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if !is_own || found.mode() & 0o077 != 0 {
        bail!("{BASE} is not a directory of this user alone: remove it");
    }
    Ok(())
}

/// The lock of a new directory. It gets its name when it is taken, so that no process finds it free
/// before.
fn new_lock(directory: &Path) -> io::Result<File> {
    let unnamed = directory.join("lock.new");
    let lock = File::create_new(&unnamed)?;
    lock.try_lock()?;
    fs::rename(&unnamed, directory.join(LOCK))?;
    Ok(lock)
}
