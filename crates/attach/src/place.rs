//! The private directory of an attachment: its mount point and its record.
//!
//! The directory proves that dashpot made the attachment, because only root can have made the directory. The
//! record names the node and the daemon. Every user can read the record, for `status`; only root can lock the
//! directory.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use dashpot_api::{LayerWord, MechanismWord, random_word};
use serde::{Deserialize, Serialize};

use crate::process::Process;
use crate::sysfs::Before;

/// The parent of the directories of all attachments.
pub(crate) const BASE: &str = "/run/dashpot-attached";
const LOCK: &str = "lock";
const RECORD: &str = "record";
const CHANGES: &str = "changes";
/// The name of the lock file until it is locked.
const LOCK_UNNAMED: &str = "lock.new";
/// The name of any other file until it is complete.
const UNNAMED: &str = "record.new";
/// The directory's own files.
const OWN: [&str; 5] = [LOCK, RECORD, CHANGES, LOCK_UNNAMED, UNNAMED];
/// How long a command waits for another command that has locked an attachment.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause between two attempts to lock.
const PAUSE: Duration = Duration::from_millis(5);

/// The record of an attachment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The name of the disk or the volume.
    pub(crate) disk: String,
    /// The layer of the disk or the volume. Records of older versions have no layer, and are about disks.
    #[serde(default = "disk_layer")]
    pub(crate) layer: LayerWord,
    pub(crate) node: String,
    pub(crate) mechanism: MechanismWord,
    /// The daemon that serves the device; `None` if this process cannot see that daemon.
    pub(crate) daemon: Option<Process>,
    /// The address of the API of the daemon that serves the device.
    pub(crate) api: String,
    /// The properties of the disk or the volume. Records of older versions lack this field, and then no
    /// daemon can take the device over.
    #[serde(default)]
    pub(crate) served: Served,
    /// The settings of the node that `attach` has changed, with their former values.
    pub(crate) before: Before,
    /// The user and the group that the node belonged to before dashpot gave it to another user.
    pub(crate) owner_before: Option<(u32, u32)>,
    /// The place at which dashpot has mounted the node's file system.
    pub(crate) mounted: Option<PathBuf>,
    /// The user's options of that mount.
    #[serde(default)]
    pub(crate) options: Option<String>,
    /// The link to the node.
    #[serde(default)]
    pub(crate) link: Option<PathBuf>,
    /// The sequence number that the kernel gave the device; `None` in records of older versions, and before
    /// Linux 5.15.
    #[serde(default)]
    pub(crate) sequence: Option<String>,
}

impl Record {
    /// The layer and the name by which the daemon finds the disk or the volume.
    pub(crate) fn key(&self) -> (LayerWord, &str) {
        (self.layer, &self.disk)
    }

    /// How a message names the disk or the volume.
    pub(crate) fn words(&self) -> String {
        words(self.layer, &self.disk)
    }
}

/// The settings of a node that `attach` changes. `attach` writes them down before it changes them, so that
/// dashpot knows the former values even if `attach` is killed before it has written its record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Changes {
    pub(crate) node: String,
    pub(crate) mechanism: MechanismWord,
    /// The settings, with their former values.
    pub(crate) before: Before,
}

/// How a message names a disk or a volume: `disk 'd'` or `volume 'tank/v'`.
pub(crate) fn words(layer: LayerWord, name: &str) -> String {
    match layer {
        LayerWord::Disk => format!("disk '{name}'"),
        LayerWord::Volume => format!("volume '{name}'"),
    }
}

fn disk_layer() -> LayerWord {
    LayerWord::Disk
}

/// The properties of a disk or a volume that programs rely on while they have the node open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Served {
    /// Identifies the content of the disk or the volume; `None` if some of it is lost when the daemon ends.
    pub(crate) store_id: Option<String>,
    pub(crate) size: u64,
    pub(crate) sector: u32,
    pub(crate) read_only: bool,
}

/// A directory that this process has locked. Dropping this value removes the directory, unless it is
/// [kept](LockedDirectory::keep).
#[derive(Debug)]
pub(crate) struct LockedDirectory {
    path: PathBuf,
    _lock: File,
    kept: bool,
}

impl LockedDirectory {
    /// Makes a new directory.
    pub(crate) fn new() -> anyhow::Result<LockedDirectory> {
        make_base()?;
        let path = Path::new(BASE).join(random_word(8)?);
        let made = DirBuilder::new().mode(0o711).create(&path);
        let lock = made.and_then(|()| new_lock(&path));
        let lock = lock.map_err(|error| cannot_make(&path, &error))?;
        Ok(LockedDirectory {
            path,
            _lock: lock,
            kept: false,
        })
    }

    /// All directories that no other process has locked, with their records. A half-made directory has no
    /// record. A directory whose record dashpot cannot parse belongs to another version, and is left out.
    pub(crate) fn all() -> Vec<(LockedDirectory, Option<Record>)> {
        let entries = fs::read_dir(BASE).into_iter().flatten().flatten();
        let places = entries.filter_map(|entry| LockedDirectory::locked(entry.path()));
        places
            .map(|place| {
                let record = place.record();
                (place, record)
            })
            .filter(|(place, record)| record.is_some() || !place.path.join(RECORD).exists())
            .collect()
    }

    /// Locks the attachments for which `is_meant` is true. A command that lists all attachments locks each of
    /// them for a moment, so this function waits for a lock. Fails if another command keeps an attachment
    /// locked for longer than [`PATIENCE`].
    pub(crate) fn meant(
        is_meant: impl Fn(&Record) -> bool,
    ) -> anyhow::Result<Vec<(LockedDirectory, Record)>> {
        let mut meant = Vec::new();
        for entry in fs::read_dir(BASE).into_iter().flatten().flatten() {
            let Some(seen) = record_in(&entry.path()).filter(&is_meant) else {
                continue;
            };
            let Some(place) = LockedDirectory::wait_locked(&entry.path(), &seen.node)? else {
                continue;
            };
            // The other command may have changed the record.
            if let Some(record) = place.record().filter(&is_meant) {
                meant.push((place, record));
            }
        }
        Ok(meant)
    }

    /// Locks a directory as soon as no other process has it locked. `None` if the directory is gone. Fails
    /// if the directory stays locked for longer than [`PATIENCE`].
    fn wait_locked(path: &Path, node: &str) -> anyhow::Result<Option<LockedDirectory>> {
        let begun = Instant::now();
        loop {
            if let Some(place) = LockedDirectory::locked(path.to_owned()) {
                return Ok(Some(place));
            }
            if !path.exists() {
                return Ok(None);
            }
            if begun.elapsed() > PATIENCE {
                bail!("another command attaches or detaches {node}: wait for it, or end it");
            }
            thread::sleep(PAUSE);
        }
    }

    /// Locks an existing directory, unless another process has locked it.
    fn locked(path: PathBuf) -> Option<LockedDirectory> {
        let lock = File::open(path.join(LOCK)).ok()?;
        lock.try_lock().ok()?;
        Some(LockedDirectory {
            path,
            _lock: lock,
            kept: true,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file on which a disk is mounted. `losetup` lists the name of this file.
    pub(crate) fn file(&self, disk: &str) -> PathBuf {
        file_in(&self.path, disk)
    }

    /// Whether a path lies in the directory.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.path)
    }

    /// The files on which something may be mounted.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let is_ours = |path: &PathBuf| {
            let name = path.file_name();
            name.is_some_and(|name| OWN.iter().any(|own| name == *own))
        };
        paths.filter(|path| !is_ours(path)).collect()
    }

    fn record(&self) -> Option<Record> {
        record_in(&self.path)
    }

    /// Writes the record.
    pub(crate) fn write(&self, record: &Record) -> anyhow::Result<()> {
        self.write_whole(RECORD, record)
    }

    /// Writes down the settings that `attach` is about to change.
    pub(crate) fn note(&self, changes: &Changes) -> anyhow::Result<()> {
        self.write_whole(CHANGES, changes)
    }

    /// The settings that `attach` was about to change, and perhaps has changed.
    pub(crate) fn changes(&self) -> Option<Changes> {
        let text = fs::read_to_string(self.path.join(CHANGES)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Writes a file atomically: a reader finds the whole file or none.
    fn write_whole(&self, name: &str, content: &impl Serialize) -> anyhow::Result<()> {
        let (unnamed, named) = (self.path.join(UNNAMED), self.path.join(name));
        fs::write(&unnamed, serde_json::to_vec(content)?)
            .and_then(|()| fs::rename(&unnamed, &named))
            .with_context(|| format!("cannot write {}", named.display()))
    }

    /// Lets the directory outlive this value.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }

    /// Removes the directory. Call this function only when nothing is mounted in the directory.
    pub(crate) fn remove(mut self) {
        self.kept = false;
    }
}

/// The records of this host's attachments, each with the path that the kernel keeps with the device. Any user
/// may read these records. The list may include an attachment that another process is changing.
pub(crate) fn records() -> Vec<(PathBuf, Record)> {
    let entries = fs::read_dir(BASE).into_iter().flatten().flatten();
    let records = entries.filter_map(|entry| {
        let record = record_in(&entry.path())?;
        Some((file_in(&entry.path(), &record.disk), record))
    });
    records.collect()
}

/// Changes the record of a node.
pub(crate) fn change(node: &str, change: impl FnOnce(&mut Record)) -> anyhow::Result<()> {
    let found = LockedDirectory::meant(|record| record.node == node)?.pop();
    let (place, mut record) =
        found.with_context(|| format!("{node} is not attached by dashpot any more"))?;
    change(&mut record);
    place.write(&record)
}

/// Waits until no other command is detaching an earlier device of this node. That command restores the node's
/// settings only after the node is free.
pub(crate) fn wait_until_restored(node: &str) -> anyhow::Result<()> {
    LockedDirectory::meant(|record| record.node == node).map(drop)
}

fn record_in(place: &Path) -> Option<Record> {
    let text = fs::read_to_string(place.join(RECORD)).ok()?;
    serde_json::from_str(&text).ok()
}

/// The file of a disk. If the disk has the name of one of the directory's own files, the first letter of the
/// name is percent-encoded.
fn file_in(place: &Path, disk: &str) -> PathBuf {
    let name = dashpot_rules::segment(disk);
    match (OWN.contains(&name.as_str()), name.as_bytes()) {
        (true, [first, ..]) => place.join(format!("%{first:02X}{}", &name[1..])),
        _ => place.join(name),
    }
}

impl Drop for LockedDirectory {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // If something is still mounted on a file, the file cannot be removed, and its directory stays. A
        // later cleaning tries again.
        for file in self.files() {
            if fs::remove_file(&file).is_err() {
                return;
            }
        }
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The error if a record of a device cannot be made.
pub(crate) fn cannot_make(path: &Path, error: &io::Error) -> anyhow::Error {
    let remedy = match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            "; devices are recorded below /run: a container with a read-only root needs a tmpfs there (docker run \
             --tmpfs /run)"
        }
        _ => "",
    };
    anyhow!("cannot make {}: {error}{remedy}", path.display())
}

/// Makes the parent directory, or checks that only this user can change it.
fn make_base() -> anyhow::Result<()> {
    match DirBuilder::new().mode(0o755).create(BASE) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(cannot_make(Path::new(BASE), &error)),
    }
    let found = fs::symlink_metadata(BASE)?;
    let is_own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if !is_own || found.mode() & 0o022 != 0 {
        bail!("{BASE} is not a directory that only this user can change: remove it");
    }
    Ok(())
}

/// The lock of a new directory. The lock file gets its name only after it is locked, so that no other process
/// can lock it first.
fn new_lock(directory: &Path) -> io::Result<File> {
    let unnamed = directory.join(LOCK_UNNAMED);
    let mut options = OpenOptions::new();
    let lock = options.read(true).write(true).create_new(true).mode(0o600);
    let lock = lock.open(&unnamed)?;
    lock.try_lock()?;
    fs::rename(&unnamed, directory.join(LOCK))?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::{LayerWord, OWN, Path, Record, Served, file_in};

    #[test]
    fn no_disk_has_the_file_of_its_directory() {
        let place = Path::new("/p");
        for own in OWN {
            assert_ne!(file_in(place, own), place.join(own));
        }
        assert_eq!(file_in(place, "lock"), place.join("%6Cock"));
        assert_eq!(file_in(place, "tank/v"), place.join("tank%2Fv"));
    }

    #[test]
    fn a_record_of_an_earlier_version_is_read() {
        let text = r#"{"disk":"d","node":"/dev/loop0","mechanism":"loop","daemon":null,"api":"unix:/a",
            "before":[],"mounted":null}"#;
        let record: Record = serde_json::from_str(text).expect("a record");
        assert_eq!(record.served, Served::default());
        assert_eq!(record.layer, LayerWord::Disk);
        assert_eq!((record.served.store_id, record.link), (None, None));
    }
}
