//! Translates paths between mounts. A directory of a file system can be mounted at several places, and then
//! its files have a different path at each place.
//!
//! Each line of `/proc/PID/mountinfo` names a place, and the directory of a file system that is mounted at
//! this place. So with the lines of two mounts, dashpot can translate a path from one mount to the other. See
//! proc(5).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One mount in the list of mounts.
#[derive(Debug, PartialEq, Eq)]
pub struct Mount {
    /// The device number of the file system.
    pub device: (u32, u32),
    /// The mounted directory, as a path within its file system.
    root: PathBuf,
    /// The place where the directory is mounted.
    pub point: PathBuf,
    /// The device or the name that the file system was mounted from.
    pub source: PathBuf,
    /// The type of the file system, such as `ext4`.
    pub kind: String,
    /// The options of the file system, as they are in the list.
    options: Vec<u8>,
}

impl Mount {
    /// The mounts of a list. A mount covers all earlier mounts at the same place.
    pub fn all(list: &[u8]) -> impl DoubleEndedIterator<Item = Mount> {
        lines(list).filter_map(Mount::of_line)
    }

    /// The mount with this id.
    pub fn find(list: &[u8], number: u64) -> Option<Mount> {
        let head = format!("{number} ");
        let line = lines(list).find(|line| line.starts_with(head.as_bytes()))?;
        Mount::of_line(line)
    }

    fn of_line(line: &[u8]) -> Option<Mount> {
        let mut words = line.split(|byte| *byte == b' ');
        let (major, minor) = str::from_utf8(words.nth(2)?).ok()?.split_once(':')?;
        let (root, point) = (unescaped(words.next()?), unescaped(words.next()?));
        // The optional words end with a dash. The file system's type and source come after the dash.
        words.find(|word| *word == b"-")?;
        let kind = String::from_utf8_lossy(words.next()?).into_owned();
        Some(Mount {
            device: (major.parse().ok()?, minor.parse().ok()?),
            root,
            point,
            source: unescaped(words.next()?),
            kind,
            options: words.next().unwrap_or_default().to_owned(),
        })
    }

    /// Whether files of this file system may have other device numbers than the file system has: each subvolume
    /// and each layer has a number of its own.
    pub fn spans_devices(&self) -> bool {
        matches!(&*self.kind, "btrfs" | "overlay")
    }

    /// The path that is the value of an option of the file system. The kernel writes commas in it as octal digits.
    pub fn option(&self, name: &str) -> Option<PathBuf> {
        let each = self.options.split(|byte| *byte == b',');
        let mut values = each.filter_map(|each| each.strip_prefix(name.as_bytes()));
        values.find_map(|value| Some(unescaped(value.strip_prefix(b"=")?)))
    }

    /// Translates a path in the mount `there` to a path of the same file in this mount.
    pub fn translated(&self, path: &Path, there: &Mount) -> Option<PathBuf> {
        if self.device != there.device {
            return None;
        }
        let inner = there.root.join(path.strip_prefix(&there.point).ok()?);
        let rest = inner.strip_prefix(&self.root).ok()?;
        // A file can be mounted by itself. Then `rest` is empty, and joining it to the mount's point would
        // add a slash.
        if rest.as_os_str().is_empty() {
            Some(self.point.clone())
        } else {
            Some(self.point.join(rest))
        }
    }
}

fn lines(list: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    list.split(|byte| *byte == b'\n')
}

/// Decodes a word in which the kernel has written spaces and some other characters as a backslash and three
/// octal digits.
fn unescaped(word: &[u8]) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), word);
    while let Some((first, others)) = rest.split_first() {
        let octal = others.first_chunk::<3>().filter(|_| *first == b'\\');
        let digits = octal.and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[3..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use super::Mount;

    const LIST: &[u8] = b"\
21 1 254:0 / / rw,relatime - ext4 /dev/root rw
40 21 0:35 / /tmp rw - tmpfs tmpfs rw
41 21 254:0 /var/lib/db /mnt/a\\040b rw - ext4 /dev/root rw
42 21 254:0 /var/lib/db/wal/f /srv/f rw - ext4 /dev/root rw
43 21 0:40 / /merged rw shared:3 - overlay overlay rw,lowerdir=/l,upperdir=/u\\054p\\040x,workdir=/w
";

    #[test]
    fn an_option_is_found_and_decoded() {
        let overlay = Mount::find(LIST, 43).unwrap();
        assert_eq!(overlay.option("upperdir"), Some("/u,p x".into()));
        assert_eq!(overlay.option("upper"), None);
        assert!(overlay.spans_devices());
        assert_eq!(Mount::find(LIST, 21).unwrap().option("upperdir"), None);
    }

    #[test]
    fn a_path_in_one_mount_is_translated_to_another() {
        let [root, tmp, bound, file] = [21, 40, 41, 42].map(|it| Mount::find(LIST, it).unwrap());
        let at_root = |path, there| root.translated(Path::new(path), there);
        let expected = |path| Some(Path::new(path).to_owned());
        assert_eq!(
            at_root("/mnt/a b/wal/g", &bound),
            expected("/var/lib/db/wal/g")
        );
        assert_eq!(at_root("/srv/f", &file), expected("/var/lib/db/wal/f"));
        assert_eq!(at_root("/var/x", &root), expected("/var/x"));
        assert_eq!(at_root("/tmp/x", &tmp), None);
        assert_eq!(bound.translated(Path::new("/etc/x"), &root), None);
        let there = bound.translated(Path::new("/var/lib/db/x"), &root);
        assert_eq!(there, expected("/mnt/a b/x"));
        assert_eq!(Mount::find(LIST, 2), None);
    }

    #[test]
    fn a_line_with_any_bytes_hides_no_other_line() {
        let strange = b"50 21 7:3 / /mnt/\xff\\134x rw shared:1 master:2 - ext4 /dev/loop3 rw\n";
        let list = [b"garbage\n", &strange[..], b"\n", LIST].concat();
        let all: Vec<Mount> = Mount::all(&list).collect();
        assert_eq!(all.len(), 6);
        assert_eq!(all[0].point, Path::new(OsStr::from_bytes(b"/mnt/\xff\\x")));
        assert_eq!(
            (all[0].device, &*all[0].source),
            ((7, 3), Path::new("/dev/loop3"))
        );
    }
}
