//! Questions that `/proc` answers about the threads of a program and their files. A process that may not look
//! into another process sends its question to a process that may.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;

use super::facts::{Status, link};
use super::name::Name;

/// The numbers of a user and of the user's groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The number of the user's group.
    pub gid: u32,
    /// The numbers of the user's supplementary groups.
    pub groups: Vec<u32>,
}

/// A question to `/proc`. Each string is a path in `/proc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The target of a link.
    Link(String),
    /// The identity of a file. The answer is a [`Status`].
    Status(String),
    /// The content of a file.
    Content(String),
    /// Bytes of a file such as `/proc/PID/mem`. The first number is the address of the first byte, and the
    /// second is the largest number of bytes. The answer is shorter if the memory ends earlier.
    Memory(String, u64, u32),
    /// The place to which a file's name leads when a thread uses the name. The answer is a
    /// [`Place`](super::facts::Place).
    Name(Name),
}

impl Lookup {
    /// Answers the question with the rights of this process.
    pub fn answer(&self) -> Result<Vec<u8>, Errno> {
        match self {
            Lookup::Link(path) => link(path),
            Lookup::Status(path) => Ok(Status::of(path)?.to_bytes()),
            Lookup::Content(path) => std::fs::read(path).map_err(|error| errno(&error)),
            Lookup::Memory(path, address, length) => memory(path, *address, *length),
            Lookup::Name(name) => Ok(name.place()?.to_bytes()),
        }
    }

    /// Encodes the question, to send it to a process of another user.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (kind, path) = match self {
            Lookup::Link(path) => (0, path),
            Lookup::Status(path) => (1, path),
            Lookup::Content(path) => (2, path),
            Lookup::Memory(path, ..) => (3, path),
            Lookup::Name(it) => (if it.follows { 5 } else { 4 }, &it.base),
        };
        bytes.push(kind);
        bytes.extend_from_slice(path.as_bytes());
        bytes.push(0);
        match self {
            Lookup::Memory(_, address, length) => {
                bytes.extend(address.to_ne_bytes());
                bytes.extend(length.to_ne_bytes());
            }
            Lookup::Name(it) => {
                bytes.extend_from_slice(it.root.as_bytes());
                bytes.push(0);
                bytes.extend_from_slice(&it.name);
            }
            _ => {}
        }
        bytes
    }

    /// The question that these bytes encode.
    pub fn from_bytes(bytes: &[u8]) -> Option<Lookup> {
        let (kind, rest) = bytes.split_first()?;
        let (path, rest) = text(rest)?;
        Some(match kind {
            0 => Lookup::Link(path),
            1 => Lookup::Status(path),
            2 => Lookup::Content(path),
            3 => {
                let address = u64::from_ne_bytes(*rest.first_chunk()?);
                let length = u32::from_ne_bytes(*rest.get(8..)?.first_chunk()?);
                Lookup::Memory(path, address, length.min(MEMORY_MAX))
            }
            4 | 5 => {
                let (root, name) = text(rest)?;
                Lookup::Name(Name {
                    root,
                    base: path,
                    name: name.to_vec(),
                    follows: *kind == 5,
                })
            }
            _ => return None,
        })
    }
}

/// The text before the first zero byte, and the bytes after it.
fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = str::from_utf8(&bytes[..end]).ok()?;
    Some((text.to_owned(), &bytes[end + 1..]))
}

fn memory(path: &str, address: u64, length: u32) -> Result<Vec<u8>, Errno> {
    let file = File::open(path).map_err(|error| errno(&error))?;
    let mut bytes = vec![0; length.min(MEMORY_MAX) as usize];
    let read = file.read_at(&mut bytes, address);
    let read = read.map_err(|error| errno(&error))?;
    bytes.truncate(read);
    Ok(bytes)
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The most bytes of memory that one question asks for: the length of the longest list of buffers that a call
/// takes.
const MEMORY_MAX: u32 = 1024 * 16;

#[cfg(test)]
mod tests {
    use super::super::facts::Place;
    use super::{Lookup, Name, Status};

    fn name(root: &str, base: &str, name: &[u8], follows: bool) -> Lookup {
        Lookup::Name(Name {
            root: root.to_owned(),
            base: base.to_owned(),
            name: name.to_vec(),
            follows,
        })
    }

    #[test]
    fn questions_survive_their_bytes() {
        let text = "/proc/1/fd/2".to_owned();
        for lookup in [
            Lookup::Link(text.clone()),
            Lookup::Status(text.clone()),
            Lookup::Content(text.clone()),
            Lookup::Memory(text.clone(), u64::MAX - 7, 4096),
            name("/proc/1/root", &text, b"a\xff/b", true),
            name("", &text, b"/a", false),
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
        // The status in a place must be that of the file or, if the file does not exist or its link is not
        // followed, that of the directory.
        for (word, follows, place, file) in [
            ("d/f", true, "d/f", "d/f"),
            ("l", true, "d/f", "d/f"),
            ("l", false, "l", ""),
            ("d/../d//f", true, "d/f", "d/f"),
            ("d/new", true, "d/new", "d"),
            ("d/", false, "d", ""),
            ("d/..", false, "", ""),
        ] {
            let asked = name("/", &base, word.as_bytes(), follows).answer();
            let found = Place::from_bytes(&asked.unwrap()).unwrap();
            assert_eq!(found.status, Status::of(path.join(file)).unwrap(), "{word}");
            let found = String::from_utf8(found.path).unwrap();
            assert_eq!(
                found,
                path.join(place).to_str().unwrap().trim_end_matches('/'),
                "{word}"
            );
        }
        let error = name("/", &base, b"none/f", true).answer();
        assert_eq!(error, Err(rustix::io::Errno::NOENT));
    }
}
