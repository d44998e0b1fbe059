//! The ready file, which appears when clients can connect. Scripts and supervisors wait for this
//! file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dashpot_api::random_word;
use serde::Serialize;

use crate::instance::Export;

/// How many random letters the name of a draft has.
const DRAFT_LETTERS: usize = 8;

/// A ready file. Dropping this value removes the file. Before publication, the file is a draft in the same
/// directory, so that readers never see an incomplete file.
pub(crate) struct ReadyFile {
    place: PathBuf,
    /// The present path of the file: first that of the draft, then `place`.
    path: PathBuf,
    /// The locked file. The file of a running daemon is locked, and the file of a killed daemon is
    /// not.
    file: File,
}

#[derive(Serialize)]
struct Ready<'a> {
    pid: u32,
    /// The address of the API. If the API listens on TCP, the address contains the token.
    api: &'a str,
    /// The address of the metrics, if there is one.
    metrics: Option<&'a str>,
    exports: &'a [Export],
}

impl ReadyFile {
    /// Removes the file of a dead daemon at `place`, and checks that a new file can be written.
    pub(crate) fn claim(place: &Path) -> anyhow::Result<ReadyFile> {
        remove_stale(place)?;
        let refused = || format!("--ready-file {}: cannot be written", place.display());
        let path = draft(place)?;
        // The file will have a token, so no other user may read it.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .with_context(refused)?;
        let ready = ReadyFile {
            place: place.to_owned(),
            path,
            file,
        };
        ready.file.lock().with_context(refused)?;
        Ok(ready)
    }

    /// Writes all addresses, and moves the file to its place.
    pub(crate) fn publish(
        &mut self,
        api: &str,
        metrics: Option<&str>,
        exports: &[Export],
    ) -> anyhow::Result<()> {
        let refused = || format!("--ready-file {}: cannot be written", self.place.display());
        let ready = Ready {
            pid: std::process::id(),
            api,
            metrics,
            exports,
        };
        let text = serde_json::to_vec_pretty(&ready)?;
        self.file.write_all(&text).with_context(refused)?;
        fs::rename(&self.path, &self.place).with_context(refused)?;
        self.path.clone_from(&self.place);
        Ok(())
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        // If the user has removed the file by hand, nothing is left to do.
        let _ = fs::remove_file(&self.path);
    }
}

fn remove_stale(place: &Path) -> anyhow::Result<()> {
    let refused = || format!("--ready-file {}: cannot be replaced", place.display());
    let found = match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.with_context(refused)?,
    };
    if !found.is_file() {
        bail!(
            "--ready-file {}: this exists and is not a file; name another",
            place.display()
        );
    }
    let file = File::open(place).with_context(refused)?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        bail!(
            "--ready-file {}: a running daemon has written it; name another file, or stop that daemon",
            place.display()
        );
    }
    if !is_ready_file(file) {
        bail!(
            "--ready-file {}: this file exists, and no daemon has written it: name another, or remove it",
            place.display()
        );
    }
    fs::remove_file(place).with_context(refused)
}

/// Whether a daemon has written this file. A file of the user must not be lost.
fn is_ready_file(file: File) -> bool {
    let mut text = Vec::new();
    let read = file.take(READY_MAX).read_to_end(&mut text);
    let ready: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    let has = |key| ready.as_ref().is_some_and(|ready| ready.get(key).is_some());
    read.is_ok() && ["pid", "api", "exports"].into_iter().all(has)
}

/// No ready file has more bytes.
const READY_MAX: u64 = 16 << 20;

/// The path of the draft, in the same directory. No other user can guess its name and take it.
fn draft(place: &Path) -> anyhow::Result<PathBuf> {
    let Some(name) = place.file_name() else {
        bail!("--ready-file {}: that names no file", place.display());
    };
    let word = random_word(DRAFT_LETTERS)?;
    Ok(place.with_file_name(format!(".{}.{word}", name.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::ReadyFile;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_its_user_can_read_it_and_it_goes_with_its_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("ready");
        let mut ready = ReadyFile::claim(&place).unwrap();
        assert!(!place.exists());
        ready.publish("http://h/?token=secret", None, &[]).unwrap();
        let mode = fs::metadata(&place).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(fs::read_to_string(&place).unwrap().contains("secret"));
        drop(ready);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }

    #[test]
    fn a_dead_daemons_file_is_removed_at_once_and_a_live_ones_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("ready");
        fs::write(&place, r#"{"pid": 1, "api": "unix:/api", "exports": []}"#).unwrap();
        let mut live = ReadyFile::claim(&place).unwrap();
        assert!(!place.exists());
        live.publish("unix:/api", None, &[]).unwrap();
        let refused = ReadyFile::claim(&place).err().unwrap().to_string();
        assert!(refused.contains("a running daemon"), "{refused}");
        assert!(place.exists());
    }

    #[test]
    fn a_file_of_another_program_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("notes");
        for text in ["", "my notes", r#"{"pid": 1}"#] {
            fs::write(&place, text).unwrap();
            let refused = ReadyFile::claim(&place).err().unwrap().to_string();
            assert!(refused.contains("no daemon has written it"), "{refused}");
            assert_eq!(fs::read_to_string(&place).unwrap(), text);
        }
    }

    #[test]
    fn a_place_where_no_file_can_be_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for (place, why) in [
            (dir.path().join("missing/ready"), "cannot be written"),
            (dir.path().to_owned(), "is not a file"),
        ] {
            let refused = ReadyFile::claim(&place).err().unwrap().to_string();
            assert!(refused.contains(why), "{refused}");
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }
}
