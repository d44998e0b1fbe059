//! Opens a block device as the store of a disk, and checks that the device suits the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dashpot_rules::DiskConfig;
use rustix::fs::{OFlags, ioctl_blkpbszget, ioctl_blksszget};

use super::DeviceStore;
use super::users::{attribute, device_numbers, device_users, visible_users};
use crate::store::error::{Size, Span, StoreError};

/// The disk's demands on its device.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct DeviceRequest<'a> {
    pub(in crate::store) disk: &'a str,
    pub(in crate::store) path: &'a Path,
    /// The disk's size in bytes; `None` if the disk ends where the device ends.
    pub(in crate::store) size: Option<u64>,
    /// The offset of the disk's first byte on the device.
    pub(in crate::store) offset: u64,
    /// The size of the disk's blocks in bytes; 1 means the device's own block size.
    pub(in crate::store) block: u32,
    pub(in crate::store) read_only: bool,
}

/// An open device, and the properties that it gives to its disk.
#[derive(Debug)]
pub(in crate::store) struct OpenDevice {
    pub(in crate::store) store: DeviceStore,
    pub(in crate::store) size: u64,
    /// The smallest read or write, in bytes.
    pub(in crate::store) block: u32,
    /// The smallest write, in bytes, for which the device need not read first.
    pub(in crate::store) physical: u32,
    pub(in crate::store) read_only: bool,
}

impl<'a> DeviceRequest<'a> {
    /// A disk's demands on the block device at a path.
    pub(in crate::store) fn new(disk: &'a DiskConfig, path: &'a Path) -> DeviceRequest<'a> {
        DeviceRequest {
            disk: &disk.name,
            path,
            size: disk.size,
            offset: disk.offset,
            block: disk.block,
            read_only: disk.read_only,
        }
    }

    /// Opens the device for this process alone, or takes it from the devices that were opened before. Changes
    /// nothing.
    pub(in crate::store) fn open(
        &self,
        before: Option<Arc<File>>,
    ) -> Result<OpenDevice, StoreError> {
        let device = match before {
            Some(device) => device,
            None => Arc::new(self.open_file()?),
        };
        let read_only = self.is_read_only();
        let length = (&*device).seek(SeekFrom::End(0));
        let length = length.map_err(|error| self.failed(error))?;
        let logical = ioctl_blksszget(&*device).map_err(|error| self.failed(error.into()))?;
        let physical = ioctl_blkpbszget(&*device).unwrap_or(logical);
        let block = self.block_within(logical)?;
        Ok(OpenDevice {
            size: self.size_within(length, block)?,
            block,
            physical: physical.max(block),
            read_only,
            store: DeviceStore::new(device, self.offset),
        })
    }

    /// Opens the device, but does not check its properties yet.
    pub(super) fn open_file(&self) -> Result<File, StoreError> {
        self.check_kind()?;
        self.open_device(!self.is_read_only())
    }

    fn is_read_only(&self) -> bool {
        self.read_only || is_read_only(self.path)
    }

    /// Checks that the path is a block device. The check comes before opening, because opening a pipe blocks
    /// until another process opens it, too.
    fn check_kind(&self) -> Result<(), StoreError> {
        let metadata = fs::metadata(self.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.is_no_device("not there; `lsblk -p` lists devices"),
            _ => self.failed(error),
        })?;
        match metadata.file_type() {
            kind if kind.is_block_device() => Ok(()),
            kind if kind.is_file() => {
                Err(self.is_no_device("a regular file; name it as such, with file:PATH"))
            }
            kind if kind.is_dir() => {
                Err(self.is_no_device("a directory; `lsblk -p` lists block devices"))
            }
            _ => Err(self.is_no_device("not a block device; `lsblk -p` lists these")),
        }
    }

    /// Opens the device for this process alone. The kernel closes the device of a killed process only when
    /// the last I/O has ended, and until then shows no user of the device. So while a device is busy although
    /// no user is visible, this method retries for a short time.
    fn open_device(&self, writable: bool) -> Result<File, StoreError> {
        let flags = OFlags::EXCL | OFlags::DIRECT;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(writable);
        let options = options.custom_flags(flags.bits().cast_signed());
        let mut opened = options.open(self.path);
        let begun = Instant::now();
        while self.may_be_closing(&opened) && begun.elapsed() < CLOSING {
            thread::sleep(LOOK_EVERY);
            opened = options.open(self.path);
        }
        opened.map_err(|error| self.not_opened(error))
    }

    fn may_be_closing(&self, opened: &io::Result<File>) -> bool {
        let is_busy = |error: &io::Error| error.kind() == io::ErrorKind::ResourceBusy;
        opened.as_ref().is_err_and(is_busy)
            && visible_users(&self.path.to_string_lossy(), None).is_empty()
    }

    fn not_opened(&self, error: io::Error) -> StoreError {
        match error.kind() {
            io::ErrorKind::ResourceBusy => StoreError::Busy {
                disk: self.disk.into(),
                path: self.path.into(),
                users: self.users(),
            },
            io::ErrorKind::PermissionDenied => StoreError::Forbidden {
                disk: self.disk.into(),
                path: self.path.into(),
                reason: error,
            },
            _ => self.failed(error),
        }
    }

    fn users(&self) -> Vec<String> {
        let mut users = device_users(&self.path.to_string_lossy());
        if users.is_empty() {
            users.push("a user that this process cannot see".to_owned());
        }
        users
    }

    fn block_within(&self, logical: u32) -> Result<u32, StoreError> {
        if self.block > 1 && self.block < logical {
            let (block, logical) = (Size(self.block.into()), Size(logical.into()));
            return Err(self.does_not_fit(format!(
                "blocks of {logical}, more than the disk's block of {block}; give it `block={logical}`, or leave it out"
            )));
        }
        Ok(self.block.max(logical))
    }

    fn size_within(&self, length: u64, block: u32) -> Result<u64, StoreError> {
        let rest = length.saturating_sub(self.offset);
        let size = self.size.unwrap_or(rest);
        if size > rest {
            let (span, length) = (Span(self.offset, size), Size(length));
            return Err(self.does_not_fit(format!(
                "{length}, less than the disk's {span}; give a smaller one, or leave it out"
            )));
        }
        for (name, bytes) in [("offset", self.offset), ("size", size)] {
            if !bytes.is_multiple_of(block.into()) {
                let (bytes, block) = (Size(bytes), Size(block.into()));
                return Err(self.does_not_fit(format!(
                    "blocks of {block}, and {bytes} is not a whole number of them; give another {name}"
                )));
            }
        }
        Ok(size)
    }

    fn is_no_device(&self, kind: &'static str) -> StoreError {
        StoreError::NotADevice {
            disk: self.disk.into(),
            path: self.path.into(),
            kind,
        }
    }

    fn does_not_fit(&self, why: String) -> StoreError {
        StoreError::DoesNotFit {
            disk: self.disk.into(),
            path: self.path.into(),
            why,
        }
    }

    fn failed(&self, reason: io::Error) -> StoreError {
        StoreError::File {
            disk: self.disk.into(),
            path: self.path.into(),
            what: "opened",
            reason,
        }
    }
}

/// Whether the kernel refuses writes to a device.
fn is_read_only(path: &Path) -> bool {
    let numbers = device_numbers(&path.to_string_lossy());
    numbers.is_some_and(|numbers| attribute(numbers, "ro").as_deref() == Some("1"))
}

/// How long the kernel may take to close the device of a killed process. On a busy host this can take more
/// than a second.
const CLOSING: Duration = Duration::from_secs(5);
/// The interval between attempts to open a busy device.
const LOOK_EVERY: Duration = Duration::from_millis(20);
