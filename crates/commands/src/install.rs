//! `install` and `version`: copy and describe this program, for containers without a shell.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use dashpot_api::random_word;

/// Copies this program into a directory, and returns its path there. If this program already runs from that
/// path, the running process goes on.
pub fn install(dir: &Path) -> anyhow::Result<PathBuf> {
    let cannot = || {
        let dir = dir.display();
        format!(
            "'{dir}': the program cannot be copied there: name a directory that you may write to"
        )
    };
    fs::create_dir_all(dir).with_context(cannot)?;
    let draft = dir.join(format!(".dashpot.{}", random_word(DRAFT_LETTERS)?));
    let path = dir.join("dashpot");
    let moved = copy_self(&draft).and_then(|()| fs::rename(&draft, &path));
    if moved.is_err() {
        // If even the draft could not be made, there is nothing to remove.
        let _ = fs::remove_file(&draft);
    }
    moved.with_context(cannot)?;
    Ok(path)
}

fn copy_self(place: &Path) -> io::Result<()> {
    let mut own = File::open("/proc/self/exe")?;
    let mut copy = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(place)?;
    io::copy(&mut own, &mut copy)?;
    // Let other users run the copy, too, whatever the umask of this user is.
    copy.set_permissions(Permissions::from_mode(0o755))?;
    copy.sync_all()
}

/// The version of this program, its architecture, the C library that it is linked with, and its commit.
pub fn version() -> String {
    let linked = if cfg!(target_feature = "crt-static") {
        "static"
    } else {
        "dynamic"
    };
    let library = if cfg!(target_env = "musl") {
        "musl"
    } else {
        "glibc"
    };
    let commit = option_env!("DASHPOT_COMMIT")
        .map_or_else(String::new, |commit| format!(", commit {commit}"));
    format!(
        "dashpot {}\n{}-linux, {linked} {library}{commit}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    )
}

/// How many random letters the name of a draft has.
const DRAFT_LETTERS: usize = 8;

#[cfg(test)]
mod tests {
    use super::install;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_copy_is_whole_and_runs_and_leaves_no_draft() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("new/tools");
        for _again in 0..2 {
            let path = install(&dir).unwrap();
            let own = fs::metadata("/proc/self/exe").unwrap();
            let copy = fs::metadata(&path).unwrap();
            assert_eq!(
                (copy.len(), copy.permissions().mode() & 0o777),
                (own.len(), 0o755)
            );
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    }

    #[test]
    fn a_place_that_is_no_directory_is_named() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = install(&file).unwrap_err().to_string();
        assert!(
            refused.contains("file") && refused.contains("may write"),
            "{refused}"
        );
    }
}
