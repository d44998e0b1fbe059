//! The files that a call means: found afresh for each call, in `/proc`.
//!
//! A table of open descriptors would have to follow each open, dup, close, fork and exec of the program.
//! The kernel keeps that table itself, and shows it as links. A link has the present path of the file, so a
//! file that was renamed into a directory is below it, and an unlinked file is where it was.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use dashpot_sys::seccomp::{Call, SystemCall};
use rustix::fs::stat;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::export::{Follower, Lookup, User};

/// The directories of the disks.
#[derive(Debug)]
pub(super) struct Files {
    directories: Vec<Directory>,
}

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    /// The number of its file system.
    file_system: u64,
}

/// Why the file of a call is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    /// The kernel does not say.
    #[error("{0}")]
    Refused(#[from] Errno),
    /// The thread is in a namespace of processes that this process does not see.
    #[error("its process is in another namespace of processes")]
    NoThread,
}

impl Files {
    /// These are absolute paths without links in them.
    pub(super) fn new(directories: Vec<PathBuf>) -> io::Result<Files> {
        let directory = |path: PathBuf| {
            let file_system = stat(&path)?.st_dev;
            Ok(Directory { path, file_system })
        };
        let directories: io::Result<_> = directories.into_iter().map(directory).collect();
        Ok(Files {
            directories: directories?,
        })
    }

    /// The indices of the directories that have the files of a call. `follower` looks them up if this process
    /// may not.
    pub(super) fn find(
        &self,
        call: &Call,
        it: SystemCall,
        follower: &mut dyn Follower,
    ) -> Result<Vec<usize>, Unknown> {
        let thread = call.thread.ok_or(Unknown::NoThread)?.as_raw_nonzero().get();
        let lookup = match it {
            SystemCall::Sync => return Ok((0..self.directories.len()).collect()),
            SystemCall::Syncfs => Lookup::FileSystem(descriptor(thread, call)),
            SystemCall::Msync => Lookup::Content(format!("/proc/{thread}/maps")),
            SystemCall::Fsync
            | SystemCall::Fdatasync
            | SystemCall::SyncFileRange
            | SystemCall::Pwritev2 => Lookup::Link(descriptor(thread, call)),
        };
        let found = match lookup.answer() {
            Err(Errno::ACCESS | Errno::PERM) => {
                owner(thread).and_then(|owner| follower.look_up_as(owner, &lookup))
            }
            found => found,
        };
        let Some(found) = existing(found)? else {
            return Ok(Vec::new());
        };
        Ok(match lookup {
            Lookup::Link(_) => self.with_path(&found),
            Lookup::FileSystem(_) => self.with(|it| it.file_system.to_ne_bytes() == *found),
            Lookup::Content(_) => self.with_mapped(&found, call),
        })
    }

    fn with_path(&self, link: &[u8]) -> Vec<usize> {
        let path = Path::new(OsStr::from_bytes(link));
        self.with(|directory| path.starts_with(&directory.path))
    }

    /// The files that a range of memory shows.
    fn with_mapped(&self, maps: &[u8], call: &Call) -> Vec<usize> {
        let [from, length, ..] = call.arguments;
        let range = from..from.saturating_add(length);
        let mapped = maps.split(|byte| *byte == b'\n').filter_map(mapping);
        let mapped: Vec<&Path> = mapped
            .filter(|(at, _)| at.start < range.end && range.start < at.end)
            .map(|(_, path)| path)
            .collect();
        self.with(|directory| mapped.iter().any(|it| it.starts_with(&directory.path)))
    }

    fn with(&self, is_it: impl Fn(&Directory) -> bool) -> Vec<usize> {
        let numbered = self.directories.iter().enumerate();
        let found = numbered.filter(|(_, directory)| is_it(directory));
        found.map(|(index, _)| index).collect()
    }
}

/// The words that stand for a thread's process in a message.
pub(super) fn program(thread: Option<Pid>) -> String {
    let Some(thread) = thread else {
        return "a process of another namespace".to_owned();
    };
    let thread = thread.as_raw_nonzero();
    let name = std::fs::read_to_string(format!("/proc/{thread}/comm"));
    let name = name.unwrap_or_default();
    format!("{} (thread {thread})", name.trim_end())
}

/// The link of the descriptor that is the first argument.
fn descriptor(thread: i32, call: &Call) -> String {
    // The kernel looks at the lower half of the argument alone.
    let number = call.arguments[0] as u32;
    format!("/proc/{thread}/fd/{number}")
}

/// The user of a thread's process. `/proc` names root if only root may look into the process.
fn owner(thread: i32) -> Result<User, Errno> {
    let found = stat(format!("/proc/{thread}"))?;
    let (uid, gid) = (found.st_uid, found.st_gid);
    match uid {
        0 => Err(Errno::ACCESS),
        _ => Ok(User { uid, gid }),
    }
}

/// Nothing, if the thread has no such descriptor, or has ended.
fn existing<T>(found: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The addresses and the file of a line of `/proc/PID/maps`.
fn mapping(line: &[u8]) -> Option<(std::ops::Range<u64>, &Path)> {
    let path = line.iter().position(|byte| *byte == b'/')?;
    let addresses = line.split(|byte| *byte == b' ').next()?;
    let (start, end) = std::str::from_utf8(addresses).ok()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let path = Path::new(OsStr::from_bytes(&line[path..]));
    Some((address(start)?..address(end)?, path))
}

#[cfg(test)]
mod tests {
    use super::mapping;
    use std::path::Path;

    #[test]
    fn lines_of_maps_are_read() {
        let line = b"7f0a1000-7f0a3000 rw-s 00000000 fd:01 131 /a b/c (deleted)";
        let expected = (0x7f0a_1000..0x7f0a_3000, Path::new("/a b/c (deleted)"));
        assert_eq!(mapping(line), Some(expected));
        assert_eq!(
            mapping(b"7f0a1000-7f0a3000 rw-p 00000000 00:00 0 [heap]"),
            None
        );
        assert_eq!(mapping(b""), None);
    }
}
