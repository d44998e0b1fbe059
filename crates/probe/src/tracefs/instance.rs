//! A private instance of tracefs, with its own events, filters, buffers and clock.
//!
//! The instance must not outlast its owner, even if SIGKILL ends the owner. The owner holds a lock (`flock`)
//! on the instance's directory for as long as it lives, and the kernel always releases the lock when the
//! owner ends. If an instance has no lock, its owner is dead, and the next tracer removes the instance. A
//! process id in the name would not suffice, because another process may have that id later.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::error::TraceError;

/// An instance. Dropping this value removes the instance from the kernel, if all files of the instance have
/// been closed by then.
#[derive(Debug)]
pub(crate) struct Instance {
    path: PathBuf,
    /// The instance's directory, locked.
    _held: File,
}

/// The mount points of tracefs.
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PREFIX: &str = "dashpot-";

impl Instance {
    /// Removes the instances of dead owners, and makes a new instance.
    pub(crate) fn new() -> Result<Instance, TraceError> {
        Instance::new_in(&instances(&ROOTS)?)
    }

    /// Makes a new instance in this directory, and holds a lock on the directory meanwhile. Without that
    /// lock, another tracer could mistake the new instance, which is not locked yet, for a dead owner's.
    fn new_in(instances: &Path) -> Result<Instance, TraceError> {
        let all = open(instances).map_err(|error| refused(instances, error))?;
        flock(&all, FlockOperation::LockExclusive)
            .map_err(|error| refused(instances, error.into()))?;
        remove_dead(instances);
        let path = make(instances)?;
        hold(&path)
            .map(|held| Instance {
                path: path.clone(),
                _held: held,
            })
            .map_err(|error| {
                let _ = remove(&path);
                refused(&path, error)
            })
    }

    /// The path of one of the instance's files.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// The content of one of the instance's files.
    pub(crate) fn read(&self, file: &str) -> Result<String, TraceError> {
        let path = self.path(file);
        listen(&path).map_err(|error| refused(&path, error))
    }

    /// The paths in one of the instance's directories.
    pub(crate) fn list(&self, directory: &str) -> Result<Vec<PathBuf>, TraceError> {
        let path = self.path(directory);
        let entries = fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(|error| refused(&path, error))?;
        Ok(entries.iter().map(fs::DirEntry::path).collect())
    }

    /// Checks that no other program has set the file `switch` to 0.
    pub(crate) fn check_on(&self, switch: &str) -> Result<(), TraceError> {
        match self.read(switch)?.trim() {
            "0" => Err(TraceError::SwitchedOff {
                path: self.path(switch).display().to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// Writes to one of the instance's files.
    pub(crate) fn write(&self, file: &str, words: &str) -> Result<(), TraceError> {
        let path = self.path(file);
        tell(&path, words).map_err(|error| refused(&path, error))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = remove(&self.path);
    }
}

/// The error for a path, with a remedy if a remedy is known.
pub(crate) fn refused(path: &Path, error: io::Error) -> TraceError {
    let path = path.display().to_string();
    match error.kind() {
        ErrorKind::PermissionDenied => TraceError::NoPrivilege { path },
        _ => TraceError::Io { path, error },
    }
}

/// The directory in which instances are made.
fn instances(roots: &[&str]) -> Result<PathBuf, TraceError> {
    for root in roots {
        let path = Path::new(root).join("instances");
        match fs::metadata(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(refused(&path, error)),
        }
    }
    Err(TraceError::NoTracefs)
}

fn make(instances: &Path) -> Result<PathBuf, TraceError> {
    let pid = std::process::id();
    let mut number = 0;
    loop {
        let path = instances.join(format!("{PREFIX}{pid}-{number}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(refused(&path, error)),
        }
    }
}

/// Removes the instances of dead owners. If a program keeps an instance open, the instance cannot be removed.
/// This function then makes the instance stop recording events, and the next tracer tries again to remove it.
fn remove_dead(instances: &Path) {
    let entries = fs::read_dir(instances).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for path in ours.map(|entry| entry.path()) {
        if let Ok(_held) = hold(&path) {
            let _ = remove(&path);
        }
    }
}

/// Opens and locks an instance's directory, unless another process holds the lock.
fn hold(path: &Path) -> io::Result<File> {
    let directory = open(path)?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
    Ok(directory)
}

fn open(directory: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::DIRECTORY.bits() as i32)
        .open(directory)
}

/// Reads a file. The kernel gives some descriptions only to the first call of `read`, so the buffer for that
/// call must be large.
fn listen(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut text = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            length => text.extend_from_slice(&piece[..length]),
        }
    }
}

const PIECE: usize = 1 << 16;

fn tell(path: &Path, words: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(path)?
        .write_all(words.as_bytes())
}

/// Removes an instance. A reader that is just closing its file may keep the kernel from removing the instance
/// for a moment, so this function tries several times.
fn remove(path: &Path) -> io::Result<()> {
    let _ = tell(&path.join("tracing_on"), "0");
    let _ = tell(&path.join("events/enable"), "0");
    for _ in 0..BUSY_TRIES {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => thread::sleep(BUSY_PAUSE),
            done => return done,
        }
    }
    Err(ErrorKind::ResourceBusy.into())
}

const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
