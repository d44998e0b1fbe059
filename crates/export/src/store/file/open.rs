//! Opens a file as the store of a disk, and checks that the file suits the disk.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use dashpot_sys::Trusted;

use super::super::error::StoreError;
use super::{FileStore, label};

/// The disk's demands on its file.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct OpenRequest<'a> {
    pub(in crate::store) disk: &'a str,
    pub(in crate::store) path: &'a Path,
    /// The disk's size in bytes; `None` if the disk ends where the file ends.
    pub(in crate::store) size: Option<u64>,
    /// The offset of the disk's first byte in the file.
    pub(in crate::store) offset: u64,
    pub(in crate::store) read_only: bool,
}

impl FileStore {
    /// Opens and locks a file. Also returns the disk's size. Changes nothing.
    pub(in crate::store) fn open(request: OpenRequest<'_>) -> Result<(FileStore, u64), StoreError> {
        let length = request.length()?;
        let size = request.size_within(length)?;
        let file = request.open_file()?;
        request.check_owner(&file)?;
        request.lock(&file)?;
        request.check_label(&file)?;
        Ok((FileStore::new(file, request.offset), size))
    }

    /// Labels the file as this disk's, so that the next open can check it. Does nothing if the disk is
    /// read-only.
    pub(in crate::store) fn adopt(&self, request: OpenRequest<'_>) -> Result<(), StoreError> {
        if request.read_only {
            return Ok(());
        }
        label::write(&self.file, request.disk).map_err(|error| request.failed("labelled", error))
    }
}

impl OpenRequest<'_> {
    /// The length of the file. Must be called before opening, because opening a pipe would wait for its other
    /// end.
    fn length(&self) -> Result<u64, StoreError> {
        let metadata = fs::metadata(self.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::Missing {
                disk: self.disk.into(),
                path: self.path.into(),
                size: self.size,
            },
            _ => self.failed("opened", error),
        })?;
        if metadata.is_file() {
            return Ok(metadata.len());
        }
        Err(StoreError::NotAFile {
            disk: self.disk.into(),
            path: self.path.into(),
            kind: match metadata.file_type() {
                kind if kind.is_dir() => "a directory; name a regular file",
                kind if kind.is_block_device() => "a block device; name it as such, with dev:PATH",
                _ => "not a regular file; name one",
            },
        })
    }

    fn size_within(&self, length: u64) -> Result<u64, StoreError> {
        let rest = length.saturating_sub(self.offset);
        let size = self.size.unwrap_or(rest);
        if size > rest {
            return Err(StoreError::TooSmall {
                disk: self.disk.into(),
                path: self.path.into(),
                length,
                size,
                offset: self.offset,
            });
        }
        Ok(size)
    }

    fn open_file(&self) -> Result<File, StoreError> {
        let writable = !self.read_only;
        let opened = OpenOptions::new()
            .read(true)
            .write(writable)
            .open(self.path);
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem if writable => {
                StoreError::NotWritable {
                    disk: self.disk.into(),
                    path: self.path.into(),
                    reason: error,
                }
            }
            _ => self.failed("opened", error),
        })
    }

    /// Refuses a file that another user may have made first, in a directory where any user can make files.
    fn check_owner(&self, file: &File) -> Result<(), StoreError> {
        let found = file.metadata();
        let found = found.map_err(|error| self.failed("examined", error))?;
        match Trusted::stranger(self.path, found.uid()) {
            Some(uid) => Err(StoreError::OfAnother {
                disk: self.disk.into(),
                path: self.path.into(),
                uid,
            }),
            None => Ok(()),
        }
    }

    /// Locks a file. Disks that only read share the lock; a disk that may write has it alone. Closing the
    /// file unlocks it.
    fn lock(&self, file: &File) -> Result<(), StoreError> {
        let locked = if self.read_only {
            file.try_lock_shared()
        } else {
            file.try_lock()
        };
        locked.map_err(|error| match error {
            TryLockError::WouldBlock => StoreError::InUse {
                disk: self.disk.into(),
                path: self.path.into(),
            },
            TryLockError::Error(error) => self.failed("locked", error),
        })
    }

    fn check_label(&self, file: &File) -> Result<(), StoreError> {
        let owner = label::read(file).map_err(|error| self.failed("read", error))?;
        match owner {
            Some(owner) if owner != self.disk => Err(StoreError::OtherDisk {
                disk: self.disk.into(),
                path: self.path.into(),
                owner,
            }),
            _ => Ok(()),
        }
    }

    fn failed(&self, what: &'static str, reason: io::Error) -> StoreError {
        StoreError::File {
            disk: self.disk.into(),
            path: self.path.into(),
            what,
            reason,
        }
    }
}
