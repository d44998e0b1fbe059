//! Mounts. A directory of a file system can be mounted at several places. A file in it has another path
//! at each place.
//!
//! Each line of `/proc/PID/mountinfo` names a place, and the directory of the file system that is
//! mounted there. So dashpot can translate a path from one mount to another. See proc(5).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One mount in the list of mounts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// The file system.
    device: Vec<u8>,
    /// The directory of the file system that is mounted here.
    root: PathBuf,
    /// The place where the directory is mounted.
    point: PathBuf,
}

impl Mount {
    /// The mount with this number.
    pub(super) fn find(list: &[u8], number: u64) -> Option<Mount> {
        let number = number.to_string();
        list.split(|byte| *byte == b'\n').find_map(|line| {
            let mut words = line.split(|byte| *byte == b' ');
            if words.next()? != number.as_bytes() {
                return None;
            }
            let device = words.nth(1)?.to_vec();
            let (root, point) = (unescaped(words.next()?), unescaped(words.next()?));
            Some(Mount {
                device,
                root,
                point,
            })
        })
    }

    /// The path in this mount of the file that has the path `path` in the mount `there`.
    pub(super) fn translated(&self, path: &Path, there: &Mount) -> Option<PathBuf> {
        if self.device != there.device {
            return None;
        }
        let inner = there.root.join(path.strip_prefix(&there.point).ok()?);
        let rest = inner.strip_prefix(&self.root).ok()?;
        // A file can be mounted by itself. Joining an empty path to the mount's point would add a
        // slash.
        match rest.as_os_str().is_empty() {
            true => Some(self.point.clone()),
            false => Some(self.point.join(rest)),
        }
    }
}

/// A word in which the kernel has written spaces and the like as three octal digits.
fn unescaped(word: &[u8]) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), word);
    while let Some((first, others)) = rest.split_first() {
        let octal = others.first_chunk::<3>().filter(|_| *first == b'\\');
        let digits = octal.and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => (bytes, rest) = ([&bytes[..], &[byte]].concat(), &others[3..]),
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
    use super::Mount;
    use std::path::Path;

    const LIST: &[u8] = b"\
21 1 254:0 / / rw,relatime - ext4 /dev/root rw
40 21 0:35 / /tmp rw - tmpfs tmpfs rw
41 21 254:0 /var/lib/db /mnt/a\\040b rw - ext4 /dev/root rw
42 21 254:0 /var/lib/db/wal/f /srv/f rw - ext4 /dev/root rw
";

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
}
