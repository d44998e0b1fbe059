//! A directory of sockets that only this user can enter, and that goes when its owner does.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use dashpot_daemon::http::random_word;

/// The directory. Dropped, it is removed with all that is in it.
pub(crate) struct PrivateDir(PathBuf);

impl PrivateDir {
    /// A new one among the temporary files.
    pub(crate) fn new() -> anyhow::Result<PrivateDir> {
        let path = std::env::temp_dir().join(format!("dashpot-{}", random_word(8)?));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make {}", path.display()))?;
        Ok(PrivateDir(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // What is left then is empty, and is cleaned up with the other temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
