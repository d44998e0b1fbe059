//! A store in a file, or in a part of a longer file. The store adds nothing to the file, so a raw image stays
//! a raw image.
//!
//! The shard tries reads and writes with `RWF_NOWAIT`. If a request would block, a worker thread repeats all
//! of it. `fdatasync`, hole punching and zeroing may always have to wait for the medium, so the shard does
//! not even try them.
//!
//! **Durability.** After a FUA request, the store calls `fdatasync`; it does not use `RWF_DSYNC`. So writes,
//! zeroes and trims all become durable in the same way, and this step can fail in only one place. The price
//! is that a FUA write also waits until other dirty data of the file is on the medium.

pub(super) mod label;
pub(super) mod open;

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use dashpot_engine::{Errno, Outcome};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{ReadWriteFlags, preadv2, pwritev2, retry_on_intr};

use super::attempt::Attempt;
use super::blocking::Blocking;
use super::durability::Durability;
use super::extent::Found;

/// A piece of zeroes. The store writes such pieces if the file system cannot zero a range itself.
const ZEROES: &[u8] = &[0; 64 << 10];

/// A store in a file. The shard and the worker threads share the store.
#[derive(Debug)]
pub(crate) struct FileStore {
    file: File,
    /// The offset of the store's first byte in the file.
    start: u64,
    durability: Durability,
    /// Whether the file system has refused `RWF_NOWAIT` for writes, as ext4 and tmpfs do.
    waits_for_writes: AtomicBool,
}

/// The methods that the shard itself calls. They never wait for the medium.
impl FileStore {
    fn new(file: File, start: u64) -> FileStore {
        FileStore {
            file,
            start,
            durability: Durability::default(),
            waits_for_writes: AtomicBool::new(false),
        }
    }

    /// Reads from the page cache, without blocking. Returns `WouldBlock` even for an error, because
    /// [`FileStore::read`] will then report it.
    pub(crate) fn try_read(&self, offset: u64, into: &mut [u8]) -> Attempt {
        let mut done = 0;
        while done < into.len() {
            let part = &mut [IoSliceMut::new(&mut into[done..])];
            match preadv2(
                &self.file,
                part,
                self.start + offset + done as u64,
                ReadWriteFlags::NOWAIT,
            ) {
                Ok(count) if count > 0 => done += count,
                _ => return Attempt::WouldBlock,
            }
        }
        Attempt::Done(Ok(()))
    }

    /// Writes to the page cache, without blocking. Returns `WouldBlock` even for an error, because
    /// [`FileStore::write`] will then report it.
    pub(crate) fn try_write(&self, offset: u64, from: &[u8]) -> Attempt {
        if self.waits_for_writes.load(Ordering::Relaxed) {
            return Attempt::WouldBlock;
        }
        let mut done = 0;
        while done < from.len() {
            let part = &[IoSlice::new(&from[done..])];
            match pwritev2(
                &self.file,
                part,
                self.start + offset + done as u64,
                ReadWriteFlags::NOWAIT,
            ) {
                Ok(count) if count > 0 => done += count,
                Err(rustix::io::Errno::OPNOTSUPP) => {
                    self.waits_for_writes.store(true, Ordering::Relaxed);
                    return Attempt::WouldBlock;
                }
                _ => return Attempt::WouldBlock,
            }
        }
        Attempt::Done(Ok(()))
    }

    /// Asks the file system where holes are. If it cannot tell, the range counts as data.
    pub(crate) fn extents(&self, offset: u64, length: u64, mut found: Found<'_>) {
        let mut at = self.start + offset;
        let end = at + length;
        while at < end {
            let data = self.next_data(at, end);
            let hole = self.next_hole(data, end);
            if data > at && !found.push(data - at, true) {
                return;
            }
            if hole > data && !found.push(hole - data, false) {
                return;
            }
            at = hole;
        }
    }

    /// The offset of the first data at or after `at`, but at most `end`.
    fn next_data(&self, at: u64, end: u64) -> u64 {
        match seek(&self.file, SeekFrom::Data(at)) {
            Ok(data) => data.min(end),
            Err(rustix::io::Errno::NXIO) => end,
            Err(_) => at,
        }
    }

    /// The end of the data that begins at `at`: the offset of the next hole, but at most `end`.
    fn next_hole(&self, at: u64, end: u64) -> u64 {
        match seek(&self.file, SeekFrom::Hole(at)) {
            Ok(hole) if hole > at => hole.min(end),
            _ => end,
        }
    }

    /// The label that marks the file as the side of a mirror, if it has one. Fails with
    /// [`io::ErrorKind::Unsupported`] if the file system has no extended attributes.
    pub(crate) fn mirror_label(&self) -> io::Result<Option<String>> {
        label::read_mirror(&self.file)
    }

    /// Labels the file as the side of a mirror, durably. Waits for the medium.
    pub(crate) fn set_mirror_label(&self, label: &str) -> io::Result<()> {
        label::write_mirror(&self.file, label)
    }

    /// A text that identifies the store's bytes among all bytes of the host. It consists of the file's
    /// device, inode and time of creation, and the offset in the file. The time is needed because file
    /// systems reuse the numbers of removed inodes. `None` if the file system does not store this time.
    pub(crate) fn identity(&self) -> Option<String> {
        let found = self.file.metadata().ok()?;
        let made = found.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let (device, inode, made) = (found.dev(), found.ino(), made.as_nanos());
        Some(format!("file:{device}:{inode}:{made}:{}", self.start))
    }
}

impl Blocking for FileStore {
    fn read(&self, offset: u64, into: &mut [u8]) -> Outcome {
        self.file
            .read_exact_at(into, self.start + offset)
            .map_err(errno)
    }

    fn write(&self, offset: u64, from: &[u8], fua: bool) -> Outcome {
        let place = self.start + offset;
        self.file.write_all_at(from, place).map_err(errno)?;
        self.sync_if(fua)
    }

    fn zero(&self, offset: u64, length: u64, no_hole: bool, fua: bool) -> Outcome {
        let mode = if no_hole {
            FallocateFlags::ZERO_RANGE
        } else {
            FallocateFlags::PUNCH_HOLE
        };
        match self.allocate(mode, offset, length) {
            Err(rustix::io::Errno::OPNOTSUPP) => self.write_zeroes(offset, length)?,
            result => result.map_err(|error| errno(error.into()))?,
        }
        self.sync_if(fua)
    }

    fn trim(&self, offset: u64, length: u64, fua: bool) -> Outcome {
        match self.allocate(FallocateFlags::PUNCH_HOLE, offset, length) {
            Err(rustix::io::Errno::OPNOTSUPP) => {}
            result => result.map_err(|error| errno(error.into()))?,
        }
        self.sync_if(fua)
    }

    fn sync(&self) -> Outcome {
        self.durability.sync(&self.file)
    }

    fn fault(&self) -> Option<&str> {
        self.durability.fault()
    }
}

impl FileStore {
    fn sync_if(&self, fua: bool) -> Outcome {
        if fua { self.sync() } else { Ok(()) }
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, length: u64) -> rustix::io::Result<()> {
        let mode = mode | FallocateFlags::KEEP_SIZE;
        retry_on_intr(|| fallocate(&self.file, mode, self.start + offset, length))
    }

    fn write_zeroes(&self, offset: u64, length: u64) -> Outcome {
        let mut at = self.start + offset;
        let end = at + length;
        while at < end {
            let count = (end - at).min(ZEROES.len() as u64);
            let part = &ZEROES[..count as usize];
            self.file.write_all_at(part, at).map_err(errno)?;
            at += count;
        }
        Ok(())
    }
}

/// The error that a client gets for this error of the system.
pub(super) fn errno(error: io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Errno::NoSpc,
        io::ErrorKind::FileTooLarge => Errno::NoSpc,
        io::ErrorKind::OutOfMemory => Errno::NoMem,
        _ => Errno::Io,
    }
}

#[cfg(test)]
mod tests;
