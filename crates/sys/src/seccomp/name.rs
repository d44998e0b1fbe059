//! Names that a thread uses for files. A thread may have a different root from this process. Absolute links
//! then start at the thread's root, and `..` does not lead out of it.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::facts::{DIRECTORY, PLACE, PathTarget, Status, link};

/// A name that a thread uses for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The root of the thread. Absolute links start at it, and `..` does not lead out of it.
    pub root: String,
    /// The directory of the thread from which the name starts.
    pub base: String,
    pub name: Vec<u8>,
    /// Whether to follow the last part of the name. If not, or if the whole name leads to no file, the place
    /// is the path of the directory that the other parts lead to, followed by the last part.
    pub follows: bool,
}

impl Name {
    /// The place to which the name leads when the thread uses it.
    pub fn place(&self) -> Result<PathTarget, Errno> {
        let mut start = Start::of(&self.root, &self.base)?;
        let mut name = trimmed(&self.name).to_vec();
        if self.follows || is_dots(&name) {
            // Ends, because the kernel follows at most this many links of one name.
            for _ in 0..LINKS_MAX {
                match start.open(&name, PLACE) {
                    Ok(found) => return PathTarget::of(&found, None),
                    Err(Errno::NOENT) => {}
                    Err(error) => return Err(error),
                }
                // If the name ends with a link to a missing file, `open` makes the file there.
                let Some(target) = start.target(&name) else {
                    break;
                };
                match target.first() {
                    Some(b'/') => {
                        start = Start::of(&self.root, &self.root)?;
                        name = trimmed(&target).to_vec();
                    }
                    _ => name = [parted(&name).0, b"/", trimmed(&target)].concat(),
                }
            }
        }
        let (parent, last) = parted(&name);
        PathTarget::of(&start.open(parent, DIRECTORY)?, Some(last))
    }
}

/// The directory from which a thread's names start.
#[derive(Debug)]
struct Start {
    directory: OwnedFd,
    /// The thread's root, and the path from there to the directory. `None` if the thread's root is also the
    /// root of this process, or if the directory is not below the root.
    inside: Option<(OwnedFd, Vec<u8>)>,
}

impl Start {
    /// The directory from which names start, for a thread whose root is `root` and whose base directory is
    /// `base`. Both are paths in `/proc`.
    fn of(root: &str, base: &str) -> Result<Start, Errno> {
        let directory = open(base)?;
        let [own, its] = [Status::of("/")?, Status::of(root)?];
        let is_own = (own.device, own.inode, own.mount) == (its.device, its.inode, its.mount);
        let inside = if is_own {
            None
        } else {
            path_inside(root, base)
        };
        let inside = inside.map(|path| Ok::<_, Errno>((open(root)?, path)));
        Ok(Start {
            directory,
            inside: inside.transpose()?,
        })
    }

    /// Opens a name, which has no slash at its beginning.
    fn open(&self, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let name = match &self.inside {
            None => name,
            Some((root, path)) => match open_inside(root, &[path, name].concat(), flags) {
                // With `IN_ROOT`, the kernel refuses to follow links such as those in `/proc/TID/fd`.
                Err(Errno::XDEV | Errno::LOOP | Errno::NOSYS) => name,
                opened => return opened,
            },
        };
        openat(
            &self.directory,
            OsStr::from_bytes(name),
            flags,
            Mode::empty(),
        )
    }

    /// The target of the link at a name. `None` if there is no link.
    fn target(&self, name: &[u8]) -> Option<Vec<u8>> {
        let link = self.open(name, PLACE | OFlags::NOFOLLOW).ok()?;
        let target = readlinkat(&link, "", Vec::new()).ok()?;
        Some(target.into_bytes())
    }
}

/// The path from a thread's root to the thread's directory. A path that is not empty ends with a slash.
fn path_inside(root: &str, base: &str) -> Option<Vec<u8>> {
    let [root, base] = [link(root).ok()?, link(base).ok()?];
    let root = root.strip_suffix(b"/").unwrap_or(&root);
    let path = base.strip_prefix(root)?;
    match path {
        [] => Some(Vec::new()),
        [b'/', path @ ..] => Some([path, b"/"].concat()),
        _ => None,
    }
}

fn open_inside(root: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = OsStr::from_bytes(path);
    let open = || openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT);
    // If a directory is renamed meanwhile, the kernel cannot tell whether `..` stays inside, and fails the
    // call.
    let mut attempts = (0..ATTEMPTS).map(|_| open());
    attempts
        .find(|opened| !matches!(opened, Err(Errno::AGAIN)))
        .unwrap_or(Err(Errno::AGAIN))
}

fn open(path: &str) -> Result<OwnedFd, Errno> {
    openat(CWD, path, DIRECTORY, Mode::empty())
}

/// A name without the slashes at its beginning and its end; `.` if nothing is left.
fn trimmed(name: &[u8]) -> &[u8] {
    let is_slash = |byte: &u8| *byte == b'/';
    let start = name.iter().take_while(|byte| is_slash(byte)).count();
    let rest = &name[start..];
    let end = rest.iter().rposition(|byte| !is_slash(byte));
    match end {
        Some(end) => &rest[..=end],
        None => b".",
    }
}

/// The parts of a name before its last one, and the last part.
fn parted(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (b".", name),
    }
}

/// Whether the last part of a name is `.` or `..`. These stand for directories that have other names.
fn is_dots(name: &[u8]) -> bool {
    let last = name.rsplit(|byte| *byte == b'/').next();
    matches!(last, Some(b"." | b".."))
}

/// How often dashpot tries to open a name while directories are being renamed.
const ATTEMPTS: usize = 16;
/// How many links the kernel follows for one name.
const LINKS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::{DIRECTORY, Name, PLACE, Start, Status};
    use rustix::fs::{CWD, Mode, openat};
    use rustix::io::Errno;
    use std::fs::{File, create_dir_all, read_link, write};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_stay_within_a_threads_root() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let root = top.join("root");
        create_dir_all(root.join("a/b")).unwrap();
        for file in ["a/f", "a/b/g"] {
            write(root.join(file), "").unwrap();
        }
        write(top.join("f"), "").unwrap();
        for (target, name) in [
            ("/a/f", "absolute"),
            ("../../../../a/f", "a/b/up"),
            ("/a/b", "directory"),
        ] {
            symlink(target, root.join(name)).unwrap();
        }
        let [of_root, of_base] = ["", "a/b"].map(|it| File::open(root.join(it)).unwrap());
        let [at_root, at_base] =
            [&of_root, &of_base].map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
        for (base, name, expected) in [
            (&at_root, "absolute", Ok("a/f")),
            (&at_root, "a/b/up", Ok("a/f")),
            (&at_root, "directory/g", Ok("a/b/g")),
            (&at_root, "../a/f", Ok("a/f")),
            (&at_root, "../f", Err(Errno::NOENT)),
            (&at_base, "up", Ok("a/f")),
            (&at_base, "g", Ok("a/b/g")),
            (&at_base, "../../absolute", Ok("a/f")),
            (&at_base, "../../../f", Err(Errno::NOENT)),
        ] {
            let start = Start::of(&at_root, base).unwrap();
            let opened = start.open(name.as_bytes(), PLACE);
            let found = opened
                .map(|file| read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap());
            assert_eq!(found, expected.map(|path| root.join(path)), "{name}");
        }
        let outside = openat(CWD, &top, DIRECTORY, Mode::empty()).unwrap();
        let base = format!("/proc/self/fd/{}", outside.as_raw_fd());
        let start = Start::of(&at_root, &base).unwrap();
        assert!(start.open(b"f", PLACE).is_ok());
    }

    #[test]
    fn names_lead_to_places() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        let base = path.to_str().unwrap().to_owned();
        create_dir_all(path.join("d")).unwrap();
        write(path.join("d/f"), "").unwrap();
        let absolute = format!("{base}/d/new");
        for (target, name) in [
            ("d/f", "l"),
            ("new", "d/dangling"),
            ("d/dangling", "twice"),
            (absolute.as_str(), "absolute"),
            ("itself", "itself"),
        ] {
            symlink(target, path.join(name)).unwrap();
        }
        let place = |word: &str, follows| {
            let (root, base, name) = ("/".to_owned(), base.clone(), word.as_bytes().to_vec());
            Name {
                root,
                base,
                name,
                follows,
            }
            .place()
        };
        // The status in a place must be that of the file or, if the file does not exist or its link is not
        // followed, that of the directory.
        for (word, follows, expected, file) in [
            ("d/f", true, "d/f", "d/f"),
            ("l", true, "d/f", "d/f"),
            ("l", false, "l", ""),
            ("d/../d//f", true, "d/f", "d/f"),
            ("d/new", true, "d/new", "d"),
            ("d/", false, "d", ""),
            ("d/..", false, "", ""),
            ("d/dangling", true, "d/new", "d"),
            ("twice", true, "d/new", "d"),
            ("absolute", true, "d/new", "d"),
            ("twice", false, "twice", ""),
        ] {
            let found = place(word, follows).unwrap();
            assert_eq!(found.status, Status::of(path.join(file)).unwrap(), "{word}");
            let found = String::from_utf8(found.path).unwrap();
            let expected = path.join(expected);
            let expected = expected.to_str().unwrap().trim_end_matches('/');
            assert_eq!(found, expected, "{word}");
        }
        assert_eq!(place("none/f", true), Err(Errno::NOENT));
        assert_eq!(place("itself", true), Err(Errno::LOOP));
    }
}
