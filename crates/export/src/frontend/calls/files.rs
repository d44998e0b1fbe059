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
use rustix::fs::{readlink, stat};
use rustix::io::Errno;
use rustix::process::Pid;

/// The directories of the disks.
#[derive(Debug)]
pub(super) struct Files {
    directories: Vec<Directory>,
    /// Kept for its memory.
    link: Vec<u8>,
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
            link: Vec::new(),
        })
    }

    /// The indices of the directories that have the files of a call.
    pub(super) fn find(&mut self, call: &Call, it: SystemCall) -> Result<Vec<usize>, Unknown> {
        let thread = call.thread.ok_or(Unknown::NoThread)?.as_raw_nonzero();
        match it {
            SystemCall::Sync => Ok((0..self.directories.len()).collect()),
            SystemCall::Syncfs => self.find_file_system(&descriptor(thread.get(), call)),
            SystemCall::Msync => self.find_mapped(thread.get(), call),
            SystemCall::Fsync
            | SystemCall::Fdatasync
            | SystemCall::SyncFileRange
            | SystemCall::Pwritev2 => self.find_open(&descriptor(thread.get(), call)),
        }
    }

    fn find_open(&mut self, descriptor: &str) -> Result<Vec<usize>, Unknown> {
        let reused = std::mem::take(&mut self.link);
        let Some(link) = existing(readlink(descriptor, reused))? else {
            return Ok(Vec::new());
        };
        self.link = link.into_bytes();
        let path = Path::new(OsStr::from_bytes(&self.link));
        Ok(self.with(|directory| path.starts_with(&directory.path)))
    }

    fn find_file_system(&self, descriptor: &str) -> Result<Vec<usize>, Unknown> {
        let found = existing(stat(descriptor))?;
        let found = found.map(|found| found.st_dev);
        Ok(self.with(|directory| Some(directory.file_system) == found))
    }

    /// The files that a range of memory shows.
    fn find_mapped(&self, thread: i32, call: &Call) -> Result<Vec<usize>, Unknown> {
        let maps = std::fs::read(format!("/proc/{thread}/maps"));
        let errno = |error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let Some(maps) = existing(maps.map_err(errno))? else {
            return Ok(Vec::new());
        };
        let [from, length, ..] = call.arguments;
        let range = from..from.saturating_add(length);
        let mapped = maps.split(|byte| *byte == b'\n').filter_map(mapping);
        let mapped: Vec<&Path> = mapped
            .filter(|(at, _)| at.start < range.end && range.start < at.end)
            .map(|(_, path)| path)
            .collect();
        Ok(self.with(|directory| mapped.iter().any(|it| it.starts_with(&directory.path))))
    }

    fn with(&self, is_it: impl Fn(&Directory) -> bool) -> Vec<usize> {
        let numbered = self.directories.iter().enumerate();
        let found = numbered.filter(|(_, directory)| is_it(directory));
        found.map(|(index, _)| index).collect()
    }
}

/// What to call a thread's process in a message.
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
