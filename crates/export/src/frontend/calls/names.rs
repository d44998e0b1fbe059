//! Decides which file names belong to a disk, and searches a disk's files for another name of a file.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::Path;

use dashpot_engine::glob_matches_by;
use dashpot_rules::CallFiles;

/// Whether a path names one of the disk's files.
pub(super) fn matches(files: &CallFiles, path: &Path) -> bool {
    let Ok(path) = path.strip_prefix(&files.path) else {
        return false;
    };
    let Some(glob) = &files.glob else {
        return true;
    };
    // The glob begins with the directory's path, in which `*`, `?` and `[` stand for themselves.
    let glob = glob.strip_prefix(&files.path).unwrap_or(glob);
    let path = path.as_os_str().as_bytes();
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    let parts = |bytes| {
        let parts = <[u8]>::split(bytes, |byte| *byte == b'/');
        parts
            .filter(|part| !part.is_empty())
            .collect::<Vec<&[u8]>>()
    };
    parts_match(&parts(glob.as_os_str().as_bytes()), &parts(path))
}

/// Matches a path part by part. `*`, `?` and `[…]` stand for characters of one part, `**` for any number of
/// parts.
fn parts_match(glob: &[&[u8]], path: &[&[u8]]) -> bool {
    match (glob.split_first(), path.split_first()) {
        (Some((&b"**", glob)), rest) => {
            parts_match(glob, path) || rest.is_some_and(|(_, rest)| parts_match_on(glob, rest))
        }
        (Some((glob, globs)), Some((part, parts))) => {
            glob_matches_by(glob, part, stands_for) && parts_match(globs, parts)
        }
        (None, None) => true,
        _ => false,
    }
}

/// The length of the first element of a glob, if that element matches this byte.
fn stands_for(glob: &[u8], byte: u8) -> Option<usize> {
    match *glob.first()? {
        b'?' => Some(1),
        b'[' => match class(glob) {
            Some(class) => class.has(byte).then_some(class.length),
            None => (byte == b'[').then_some(1),
        },
        first => (first == byte).then_some(1),
    }
}

/// A class of bytes in a glob, such as `[ab]`, `[0-9]`, or `[!ab]` (all bytes but a and b).
struct Class<'a> {
    members: &'a [u8],
    is_negated: bool,
    /// The length of the class in the glob, with its brackets.
    length: usize,
}

/// The class at the beginning of a glob. `None` if the class has no end: then the bracket stands for itself.
fn class(glob: &[u8]) -> Option<Class<'_>> {
    let is_negated = matches!(glob.get(1), Some(b'!' | b'^'));
    let begin = 1 + usize::from(is_negated);
    // A closing bracket that comes first is a member of the class.
    let rest = glob.get(begin + 1..)?;
    let end = begin + 1 + rest.iter().position(|byte| *byte == b']')?;
    Some(Class {
        members: &glob[begin..end],
        is_negated,
        length: end + 1,
    })
}

impl Class<'_> {
    fn has(&self, byte: u8) -> bool {
        let mut members = self.members;
        let mut is_member = false;
        while let Some((first, rest)) = members.split_first() {
            let (last, rest) = match rest {
                [b'-', last, rest @ ..] => (last, rest),
                rest => (first, rest),
            };
            is_member |= (first..=last).contains(&&byte);
            members = rest;
        }
        is_member != self.is_negated
    }
}

/// Whether the glob matches a path, or the rest of the path after any number of its first parts.
fn parts_match_on(glob: &[&[u8]], path: &[&[u8]]) -> bool {
    (0..=path.len()).any(|from| parts_match(glob, &path[from..]))
}

/// The result of a search for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    Found,
    NotFound,
    TooLong,
}

/// Searches a disk's files for the file with this device and inode.
pub(super) fn has_name(files: &CallFiles, device: u64, inode: u64) -> Search {
    let mut left = SEARCHED_MAX;
    search(&files.path, files, (device, inode), &mut left)
}

fn search(at: &Path, files: &CallFiles, file: (u64, u64), left: &mut u32) -> Search {
    // A directory that is gone, or that this process may not read, has no names to find.
    let Ok(entries) = std::fs::read_dir(at) else {
        return Search::NotFound;
    };
    for entry in entries.flatten() {
        if *left == 0 {
            return Search::TooLong;
        }
        *left -= 1;
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            match search(&path, files, file, left) {
                Search::NotFound => {}
                result => return result,
            }
        } else if entry.ino() == file.1
            && matches(files, &path)
            && entry
                .metadata()
                .is_ok_and(|it| (it.dev(), it.ino()) == file)
        {
            return Search::Found;
        }
    }
    Search::NotFound
}

/// The suffix that `/proc` adds to the path of a file that was unlinked.
pub(super) const DELETED: &[u8] = b" (deleted)";
/// How many directory entries a search looks at before it gives up. They take some tens of milliseconds.
const SEARCHED_MAX: u32 = 50_000;

#[cfg(test)]
mod tests {
    use super::{Search, has_name, matches};
    use dashpot_engine::OpSet;
    use dashpot_rules::CallFiles;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    fn files(directory: &str, glob: Option<&str>) -> CallFiles {
        CallFiles {
            path: directory.into(),
            glob: glob.map(Into::into),
            types: OpSet::EMPTY,
        }
    }

    #[test]
    fn globs_match_parts_of_paths() {
        for (glob, path, expected) in [
            ("/a/*.db", "/a/x.db", true),
            ("/a/*.db", "/a/x.db (deleted)", true),
            ("/a/*.db", "/a/b/x.db", false),
            ("/a/**/*.db", "/a/x.db", true),
            ("/a/**/*.db", "/a/b/c/x.db", true),
            ("/a/**", "/a/b/c", true),
            ("/a/*/c?", "/a/b/c1", true),
            ("/a/*/c?", "/a/b/c", false),
            ("/a/*.db", "/ab/x.db", false),
            ("/a/*", "/a", false),
            ("/a/**", "/a", true),
            ("/a/[xy]*.db", "/a/y1.db", true),
            ("/a/[xy]*.db", "/a/z1.db", false),
            ("/a/w[0-9a-f][!0-9-]", "/a/w7x", true),
            ("/a/w[0-9a-f][!0-9-]", "/a/wgx", false),
            ("/a/w[0-9a-f][!0-9-]", "/a/w7-", false),
            ("/a/*[]]", "/a/[x]", true),
            ("/a/[[]*", "/a/[x]", true),
            ("/a/[x*", "/a/[xy", true),
            ("/a/[x*", "/a/xy", false),
            ("/a/[!x]", "/a/x", false),
        ] {
            let files = files("/a", Some(glob));
            assert_eq!(matches(&files, Path::new(path)), expected, "{glob} {path}");
        }
        let in_brackets = files("/[a]", Some("/[a]/*.db"));
        assert!(matches(&in_brackets, Path::new("/[a]/x.db")));
        assert!(matches(&files("/a", None), Path::new("/a/b")));
        assert!(!matches(&files("/a", None), Path::new("/ab")));
    }

    #[test]
    fn another_name_of_a_file_is_found() {
        let root = tempfile::tempdir().unwrap();
        let [outside, inside] = ["o", "i/j"].map(|it| root.path().join(it));
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::write(&outside, "").unwrap();
        let status = std::fs::metadata(&outside).unwrap();
        let files = files(root.path().join("i").to_str().unwrap(), None);
        let search = || has_name(&files, status.dev(), status.ino());
        assert_eq!(search(), Search::NotFound);
        std::fs::hard_link(&outside, inside.join("n")).unwrap();
        assert_eq!(search(), Search::Found);
    }
}
