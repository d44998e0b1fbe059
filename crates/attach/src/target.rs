//! The target of `detach`: the name of a disk or a volume, or any path of its device.

use std::fs;
use std::path::{Path, PathBuf, absolute};

use dashpot_export::store::device_numbers;

use crate::place::Record;

/// A word that names attachments.
pub(crate) struct Target<'a> {
    word: &'a str,
    /// The word as a path.
    path: PathBuf,
    /// The major and the minor number of the block device at the path.
    numbers: Option<(u32, u32)>,
    directory: Option<PathBuf>,
}

impl Target<'_> {
    pub(crate) fn of(word: &str) -> Target<'_> {
        let is_directory = fs::metadata(word).is_ok_and(|found| found.is_dir());
        Target {
            word,
            path: resolved(Path::new(word)),
            numbers: device_numbers(word),
            directory: is_directory.then(|| fs::canonicalize(word).ok()).flatten(),
        }
    }

    /// Whether the word is a path of an attachment: its node, its link, another path to the node or the link,
    /// or the directory where dashpot has mounted the attachment's file system.
    pub(crate) fn is_path_of(&self, record: &Record) -> bool {
        let is_named = Path::new(&record.node) == self.path
            || record.link.as_ref() == Some(&self.path)
            || self.numbers.is_some() && device_numbers(&record.node) == self.numbers;
        is_named || self.directory.is_some() && record.mounted == self.directory
    }

    /// Whether the word is the name of an attachment's disk or volume.
    pub(crate) fn is_name_of(&self, record: &Record) -> bool {
        record.disk == self.word
    }
}

/// The path with all links in its directories resolved. The last part of the path may be a link to a node
/// that is gone.
fn resolved(path: &Path) -> PathBuf {
    let whole = absolute(path).unwrap_or_else(|_| path.to_owned());
    match (whole.parent(), whole.file_name()) {
        (Some(parent), Some(name)) => match fs::canonicalize(parent) {
            Ok(parent) => parent.join(name),
            Err(_) => whole,
        },
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::resolved;
    use std::path::Path;

    #[test]
    fn the_directories_of_a_path_have_no_links_and_detours() {
        for (word, path) in [
            ("/dev/nothing", "/dev/nothing"),
            ("/dev/../dev/./nothing/", "/dev/nothing"),
            ("//dev//nothing", "/dev/nothing"),
            ("/proc/self/../../dev/nothing", "/dev/nothing"),
            ("/nowhere/a/../b", "/nowhere/a/../b"),
            ("/", "/"),
        ] {
            assert_eq!(resolved(Path::new(word)), Path::new(path), "{word}");
        }
    }
}
