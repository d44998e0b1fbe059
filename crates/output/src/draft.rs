//! A file that an option names, which is written as a whole or not at all.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use dashpot_api::random_word;

/// A file that is being written. Until the file is complete, it is a draft in the directory where the file
/// will be. A draft that is never published is removed.
pub struct Draft {
    option: &'static str,
    place: PathBuf,
    draft: PathBuf,
    pub out: BufWriter<File>,
}

impl Draft {
    /// Checks that the file which `option` names can be written, and begins a draft.
    pub fn create(option: &'static str, place: &Path) -> anyhow::Result<Draft> {
        let refused = || format!("{option} {}: cannot be written", place.display());
        check_replaceable(option, place)?;
        let name = place
            .file_name()
            .with_context(|| format!("{option} {}: that names no file", place.display()))?;
        let word = random_word(DRAFT_LETTERS)?;
        let draft = place.with_file_name(format!(".{}.{word}", name.to_string_lossy()));
        Ok(Draft {
            option,
            place: place.to_owned(),
            out: BufWriter::new(File::create_new(&draft).with_context(refused)?),
            draft,
        })
    }

    /// Renames the complete draft to the name of the file.
    pub fn publish(mut self) -> anyhow::Result<()> {
        let refused = || {
            format!(
                "{} {}: cannot be written",
                self.option,
                self.place.display()
            )
        };
        self.out.flush().with_context(refused)?;
        fs::rename(&self.draft, &self.place).with_context(refused)
    }
}

/// Refuses a place that exists and is not a regular file. Otherwise an option that names a device would replace the
/// device with a file, if the user may write to `/dev`.
fn check_replaceable(option: &str, place: &Path) -> anyhow::Result<()> {
    let is_other = fs::metadata(place).is_ok_and(|there| !there.is_file());
    ensure!(
        !is_other,
        "{option} {}: that is not a regular file, and dashpot would replace it: name a new file",
        place.display()
    );
    Ok(())
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After publishing, the draft no longer exists.
        let _ = fs::remove_file(&self.draft);
    }
}

/// How many random letters the name of a draft has.
const DRAFT_LETTERS: usize = 8;
