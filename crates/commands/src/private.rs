//! A directory of sockets that only this user can enter. The directory belongs to one process, its owner, and
//! is removed when the owner ends.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::bail;
use dashpot_api::random_word;

/// The directory. Dropping this value removes the directory with its content. If the owner is killed, the
/// next dashpot finds the lock file unlocked, and removes the directory.
pub struct PrivateDir {
    path: PathBuf,
    /// The lock is held as long as the owner lives.
    _lock: File,
}

impl PrivateDir {
    /// Makes a directory in the system's directory for temporary files.
    pub fn new() -> anyhow::Result<PrivateDir> {
        PrivateDir::below(&std::env::temp_dir())
    }

    fn below(temporary: &Path) -> anyhow::Result<PrivateDir> {
        sweep(temporary);
        let path = temporary.join(format!("{PREFIX}{}", random_word(8)?));
        let made = DirBuilder::new().mode(0o700).create(&path);
        match made.and_then(|()| locked(&path)) {
            Ok(lock) => Ok(PrivateDir { path, _lock: lock }),
            Err(error) => bail!(
                "cannot make {}: {error}; set TMPDIR to a directory that this user can write; a container with a \
                 read-only root gets one by a tmpfs (docker run --tmpfs /tmp)",
                path.display()
            ),
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Locks a new directory. The lock file gets its name after it is locked, so that no other process
/// finds it unlocked.
fn locked(directory: &Path) -> io::Result<File> {
    let unnamed = directory.join("lock.new");
    let lock = File::create_new(&unnamed)?;
    lock.try_lock()?;
    fs::rename(&unnamed, directory.join(LOCK))?;
    Ok(lock)
}

/// Removes the directories of owners that were killed.
fn sweep(temporary: &Path) {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries {
        let is_named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_named && is_left(&entry.path()) {
            // Another dashpot may remove the same directory at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a directory certainly belonged to a dashpot of this user that has ended. This is certain if the
/// lock file is unlocked and only this user can enter the directory, because then no other user can have put
/// the lock file there.
fn is_left(path: &Path) -> bool {
    let is_own = |found: &Metadata| {
        found.is_dir()
            && found.uid() == rustix::process::geteuid().as_raw()
            && found.mode() & 0o777 == 0o700
    };
    let is_free = |lock: File| lock.try_lock().is_ok();
    fs::symlink_metadata(path).is_ok_and(|found| is_own(&found))
        && File::open(path.join(LOCK)).is_ok_and(is_free)
}

const PREFIX: &str = "dashpot-";
/// The name of the lock file. Other directories with similar names, such as a daemon's default directory
/// dashpot-UID, have no such file.
const LOCK: &str = "lock";

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // If this fails, the rest of the directory stays until the system removes old temporary files.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::{LOCK, PrivateDir};

    #[test]
    fn what_a_killed_owner_has_left_goes_and_nothing_else() {
        let home = tempfile::tempdir().expect("a directory");
        let place = |name: &str| home.path().join(name);
        let make = |name: &str, mode: u32, has_lock: bool| {
            fs::create_dir(place(name)).expect("made");
            fs::set_permissions(place(name), Permissions::from_mode(mode)).expect("a mode");
            fs::write(place(name).join("nbd.sock"), "").expect("a file");
            if has_lock {
                fs::write(place(name).join(LOCK), "").expect("a lock");
            }
        };
        make("dashpot-left", 0o700, true);
        make("dashpot-begun", 0o700, false);
        make("dashpot-of-all", 0o755, true);
        make("another-one", 0o700, true);
        symlink(place("another-one"), place("dashpot-link")).expect("a link");
        let live = PrivateDir::below(home.path()).expect("a private directory");
        assert!(!place("dashpot-left").exists());
        let second = PrivateDir::below(home.path()).expect("another");
        for kept in [
            "dashpot-begun",
            "dashpot-of-all",
            "another-one",
            "dashpot-link",
        ] {
            assert!(place(kept).exists(), "{kept}");
        }
        assert!(live.path().join(LOCK).exists(), "its owner is alive");
        drop((live, second));
        assert_eq!(fs::read_dir(home.path()).expect("read").count(), 4);
    }
}
