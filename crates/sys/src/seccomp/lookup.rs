//! Questions about the threads of a program and their files, which `/proc` answers. A process that may not
//! look into another process hands the question to a process that may.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, makedev, openat, readlink, statx};
use rustix::io::Errno;
use rustix::path::Arg;

/// A user and a group, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// A question. The texts are paths in `/proc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The target of a link.
    Link(String),
    /// The identity of a file. The answer is a [`Status`].
    Status(String),
    /// The content of a file.
    Content(String),
    /// The content of memory, from an address on, up to a length. The answer ends where the memory ends.
    Memory(String, u64, u32),
    /// The place to which a name leads that a thread uses, starting from a directory of the thread. If
    /// the last part of the name is to be followed and exists, the answer is the path of the named
    /// file. Otherwise the answer is the path of its directory, followed by the last part. The answer
    /// is a [`Place`].
    Name(String, Vec<u8>, bool),
}

/// The facts about a file by which dashpot recognises the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The number of the file's file system.
    pub device: u64,
    /// The file's number in its file system.
    pub inode: u64,
    /// How many names the file has.
    pub names: u64,
    /// The file's length in bytes.
    pub length: u64,
    /// The file's kind and permissions.
    pub mode: u32,
    /// The number of the mount through which the file was reached.
    pub mount: u64,
}

/// The place to which a name leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the file system.
    pub device: u64,
    /// The number of the mount.
    pub mount: u64,
    /// The path.
    pub path: Vec<u8>,
}

impl Lookup {
    /// Answers the question with the rights of this process.
    pub fn answer(&self) -> Result<Vec<u8>, Errno> {
        match self {
            Lookup::Link(path) => link(path),
            Lookup::Status(path) => Ok(Status::of(path)?.to_bytes()),
            Lookup::Content(path) => std::fs::read(path).map_err(|error| errno(&error)),
            Lookup::Memory(path, address, length) => memory(path, *address, *length),
            Lookup::Name(base, name, follows) => Ok(place(base, name, *follows)?.to_bytes()),
        }
    }

    /// The question in bytes, for a process of another user.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (kind, path) = match self {
            Lookup::Link(path) => (0, path),
            Lookup::Status(path) => (1, path),
            Lookup::Content(path) => (2, path),
            Lookup::Memory(path, ..) => (3, path),
            Lookup::Name(path, _, false) => (4, path),
            Lookup::Name(path, _, true) => (5, path),
        };
        bytes.push(kind);
        bytes.extend_from_slice(path.as_bytes());
        bytes.push(0);
        match self {
            Lookup::Memory(_, address, length) => {
                bytes.extend(address.to_ne_bytes());
                bytes.extend(length.to_ne_bytes());
            }
            Lookup::Name(_, name, _) => bytes.extend_from_slice(name),
            _ => {}
        }
        bytes
    }

    /// The question that these bytes encode.
    pub fn from_bytes(bytes: &[u8]) -> Option<Lookup> {
        let (kind, rest) = bytes.split_first()?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (path, rest) = (
            str::from_utf8(&rest[..end]).ok()?.to_owned(),
            &rest[end + 1..],
        );
        Some(match kind {
            0 => Lookup::Link(path),
            1 => Lookup::Status(path),
            2 => Lookup::Content(path),
            3 => {
                let address = u64::from_ne_bytes(*rest.first_chunk()?);
                let length = u32::from_ne_bytes(*rest.get(8..)?.first_chunk()?);
                Lookup::Memory(path, address, length.min(MEMORY_MAX))
            }
            4 | 5 => Lookup::Name(path, rest.to_vec(), *kind == 5),
            _ => return None,
        })
    }
}

impl Status {
    /// The file at a path.
    pub fn of(path: impl Arg) -> Result<Status, Errno> {
        // With this flag, the kernel does not ask a file system whose server is away or waits for this
        // process.
        let flags = AtFlags::STATX_DONT_SYNC;
        let asked = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let found = statx(CWD, path, flags, asked)?;
        Ok(Status {
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            names: found.stx_nlink.into(),
            length: found.stx_size,
            mode: found.stx_mode.into(),
            mount: found.stx_mnt_id,
        })
    }

    fn to_bytes(self) -> Vec<u8> {
        let words = [
            self.device,
            self.inode,
            self.names,
            self.length,
            self.mode.into(),
            self.mount,
        ];
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    /// Parses an answer into the facts about a file.
    pub fn from_bytes(bytes: &[u8]) -> Option<Status> {
        let (chunks, _) = bytes.as_chunks();
        let [device, inode, names, length, mode, mount] = *chunks.first_chunk()?;
        Some(Status {
            device: u64::from_ne_bytes(device),
            inode: u64::from_ne_bytes(inode),
            names: u64::from_ne_bytes(names),
            length: u64::from_ne_bytes(length),
            mode: u64::from_ne_bytes(mode) as u32,
            mount: u64::from_ne_bytes(mount),
        })
    }
}

impl Place {
    /// The place of an open file. If there is a further part of a name, the place includes this part.
    fn of(file: &OwnedFd, last: Option<&[u8]>) -> Result<Place, Errno> {
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        let status = Status::of(&own)?;
        let mut path = link(&own)?;
        if let Some(last) = last {
            if path.last() != Some(&b'/') {
                path.push(b'/');
            }
            path.extend_from_slice(last);
        }
        Ok(Place {
            device: status.device,
            mount: status.mount,
            path,
        })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let (device, mount) = (self.device.to_ne_bytes(), self.mount.to_ne_bytes());
        [&device, &mount, self.path.as_slice()].concat()
    }

    /// Parses an answer into a place.
    pub fn from_bytes(bytes: &[u8]) -> Option<Place> {
        let (device, rest) = bytes.split_first_chunk()?;
        let (mount, path) = rest.split_first_chunk()?;
        Some(Place {
            device: u64::from_ne_bytes(*device),
            mount: u64::from_ne_bytes(*mount),
            path: path.to_vec(),
        })
    }
}

fn link(path: &str) -> Result<Vec<u8>, Errno> {
    Ok(readlink(path, Vec::new())?.into_bytes())
}

fn memory(path: &str, address: u64, length: u32) -> Result<Vec<u8>, Errno> {
    let file = File::open(path).map_err(|error| errno(&error))?;
    let mut bytes = vec![0; length.min(MEMORY_MAX) as usize];
    let read = file.read_at(&mut bytes, address);
    let read = read.map_err(|error| errno(&error))?;
    bytes.truncate(read);
    Ok(bytes)
}

fn place(base: &str, name: &[u8], follows: bool) -> Result<Place, Errno> {
    let base = openat(CWD, base, DIRECTORY, Mode::empty())?;
    let name = trimmed(name);
    if follows || is_dots(name) {
        match openat(&base, OsStr::from_bytes(name), PLACE, Mode::empty()) {
            Ok(found) => return Place::of(&found, None),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    let cut = name.iter().rposition(|byte| *byte == b'/');
    let (parent, last) = match cut {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (&b"."[..], name),
    };
    let parent = openat(&base, OsStr::from_bytes(parent), DIRECTORY, Mode::empty())?;
    Place::of(&parent, Some(last))
}

/// A name without the slashes at its beginning and its end.
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

/// Whether the last part of a name is `.` or `..`, and so no entry of a directory.
fn is_dots(name: &[u8]) -> bool {
    let last = name.rsplit(|byte| *byte == b'/').next();
    matches!(last, Some(b"." | b".."))
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

const PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const DIRECTORY: OFlags = PLACE.union(OFlags::DIRECTORY);
/// The most memory that one question asks for: the longest list of buffers that a call takes.
const MEMORY_MAX: u32 = 1024 * 16;

#[cfg(test)]
mod tests {
    use super::{Lookup, Place, Status};

    #[test]
    fn questions_survive_their_bytes() {
        let text = "/proc/1/fd/2".to_owned();
        for lookup in [
            Lookup::Link(text.clone()),
            Lookup::Status(text.clone()),
            Lookup::Content(text.clone()),
            Lookup::Memory(text.clone(), u64::MAX - 7, 4096),
            Lookup::Name(text.clone(), b"a\xff/b".to_vec(), true),
            Lookup::Name(text, b"/a".to_vec(), false),
        ] {
            assert_eq!(Lookup::from_bytes(&lookup.to_bytes()), Some(lookup));
        }
        assert_eq!(Lookup::from_bytes(b"\x03/proc\x00123"), None);
        let status = Status::of("/").unwrap();
        assert_eq!(Status::from_bytes(&status.to_bytes()), Some(status));
    }

    #[test]
    fn names_lead_to_places() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        let base = path.to_str().unwrap().to_owned();
        std::fs::create_dir(path.join("d")).unwrap();
        std::fs::write(path.join("d/f"), "").unwrap();
        std::os::unix::fs::symlink("d/f", path.join("l")).unwrap();
        for (name, follows, place) in [
            ("d/f", true, "d/f"),
            ("l", true, "d/f"),
            ("l", false, "l"),
            ("d/../d//f", true, "d/f"),
            ("d/new", true, "d/new"),
            ("d/", false, "d"),
            ("d/..", false, ""),
        ] {
            let asked = Lookup::Name(base.clone(), name.into(), follows).answer();
            let found = Place::from_bytes(&asked.unwrap()).unwrap();
            let status = Status::of(&base).unwrap();
            assert_eq!((found.device, found.mount), (status.device, status.mount));
            let found = String::from_utf8(found.path).unwrap();
            assert_eq!(
                found,
                path.join(place).to_str().unwrap().trim_end_matches('/'),
                "{name}"
            );
        }
        let error = Lookup::Name(base, "none/f".into(), true).answer();
        assert_eq!(error, Err(rustix::io::Errno::NOENT));
    }
}
