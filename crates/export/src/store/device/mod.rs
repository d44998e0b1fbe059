//! A store on a block device, or on a part of a block device.
//!
//! The daemon opens the device exclusively and for direct I/O. The shard's ring does reads, writes and
//! flushes, so all requests that clients have in flight can reach the device at once. Trims and zeroes go to
//! the worker threads. If the kernel refuses the shard a ring, all other requests go to these threads, too.
//!
//! Direct I/O works on whole blocks of the device. So the disk's blocks are at least as large as the
//! device's, and frontends refuse requests that are not made of whole blocks.

mod early;
mod open;
mod users;

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use dashpot_engine::{Errno, Outcome};
use dashpot_sys::{Buffer, discard};
use rustix::fs::{FallocateFlags, fallocate, major, minor};
use rustix::io::retry_on_intr;

use super::blocking::Blocking;
use super::durability::Durability;
use super::file::errno;

use self::users::attribute;

pub use early::OpenDevices;
pub(super) use open::{DeviceRequest, OpenDevice};
pub use users::{
    device_file_users, device_is_on_top, device_mounts, device_numbers, device_users,
    device_users_beside,
};

/// A store on a block device. The shard and the worker threads share the store.
#[derive(Debug)]
pub(crate) struct DeviceStore {
    device: Arc<File>,
    /// The offset of the store's first byte on the device. It is a multiple of the device's block size.
    start: u64,
    durability: Durability,
}

impl DeviceStore {
    fn new(device: Arc<File>, start: u64) -> DeviceStore {
        DeviceStore {
            device,
            start,
            durability: Durability::default(),
        }
    }

    /// The open device, for the shard's ring.
    pub(crate) fn device(&self) -> &Arc<File> {
        &self.device
    }

    /// The offset on the device of the byte at `offset` in this store.
    pub(crate) fn place(&self, offset: u64) -> u64 {
        self.start + offset
    }

    /// A text that identifies the store's bytes among those of all devices that the host has had since its
    /// boot. `None` for a partition, and if the kernel gives disks no sequence numbers.
    pub(crate) fn identity(&self) -> Option<String> {
        let number = self.device.metadata().ok()?.rdev();
        let (major, minor) = (major(number), minor(number));
        let sequence = attribute((major, minor), "diskseq")?;
        Some(format!("device:{major}:{minor}:{sequence}:{}", self.start))
    }

    /// The outcome of a read or write of `length` bytes that the ring has done. If a write that had to be
    /// `durable` has failed, the device may have lost its cache, so the failure counts as a failed sync.
    pub(crate) fn moved(&self, moved: Moved, length: u32, durable: bool) -> Outcome {
        let outcome = match moved {
            Ok(bytes) if bytes == length as usize => Ok(()),
            Ok(_) => Err(Errno::Io),
            Err(error) => Err(errno(error.into())),
        };
        match (durable, outcome) {
            (true, Ok(())) => self.durability.believe(Ok(())),
            (true, Err(_)) => self.synced(moved),
            (false, outcome) => outcome,
        }
    }

    /// The outcome of a sync that the ring has done.
    pub(crate) fn synced(&self, synced: Moved) -> Outcome {
        self.durability
            .believe(synced.map(drop).map_err(std::io::Error::from))
    }

    fn sync_if(&self, fua: bool) -> Outcome {
        if fua { self.sync() } else { Ok(()) }
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, length: u64) -> rustix::io::Result<()> {
        let mode = mode | FallocateFlags::KEEP_SIZE;
        retry_on_intr(|| fallocate(&*self.device, mode, self.place(offset), length))
    }
}

impl Blocking for DeviceStore {
    fn read(&self, offset: u64, into: &mut [u8]) -> Outcome {
        let mut buffer = Buffer::default().of(into.len());
        let place = self.place(offset);
        let read = self.device.read_exact_at(buffer.bytes_mut(), place);
        read.map_err(errno)?;
        into.copy_from_slice(buffer.bytes());
        Ok(())
    }

    fn write(&self, offset: u64, from: &[u8], fua: bool) -> Outcome {
        let mut buffer = Buffer::default().of(from.len());
        buffer.bytes_mut().copy_from_slice(from);
        let written = self.device.write_all_at(buffer.bytes(), self.place(offset));
        written.map_err(errno)?;
        self.sync_if(fua)
    }

    /// If the device cannot zero a range by unmapping it, the kernel writes zeroes.
    fn zero(&self, offset: u64, length: u64, no_hole: bool, fua: bool) -> Outcome {
        let unmapped = if no_hole {
            Err(rustix::io::Errno::OPNOTSUPP)
        } else {
            self.allocate(FallocateFlags::PUNCH_HOLE, offset, length)
        };
        match unmapped {
            Err(rustix::io::Errno::OPNOTSUPP) => {
                self.allocate(FallocateFlags::ZERO_RANGE, offset, length)
            }
            other => other,
        }
        .map_err(|error| errno(error.into()))?;
        self.sync_if(fua)
    }

    fn trim(&self, offset: u64, length: u64, fua: bool) -> Outcome {
        match discard(&*self.device, self.place(offset), length) {
            Err(rustix::io::Errno::OPNOTSUPP) => {}
            result => result.map_err(|error| errno(error.into()))?,
        }
        self.sync_if(fua)
    }

    fn sync(&self) -> Outcome {
        self.durability.sync(&self.device)
    }

    fn fault(&self) -> Option<&str> {
        self.durability.fault()
    }
}

/// The number of bytes that the ring has read or written, or the kernel's error.
type Moved = Result<usize, rustix::io::Errno>;

#[cfg(test)]
mod tests {
    use dashpot_engine::Errno;

    use super::{Arc, DeviceStore};
    use crate::store::blocking::Blocking;

    fn store() -> DeviceStore {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        DeviceStore::new(Arc::new(file), 4096)
    }

    #[test]
    fn a_short_transfer_is_an_error_and_no_fault() {
        let store = store();
        assert_eq!(store.moved(Ok(512), 512, false), Ok(()));
        assert_eq!(store.moved(Ok(100), 512, false), Err(Errno::Io));
        let no_space = Err(rustix::io::Errno::NOSPC);
        assert_eq!(store.moved(no_space, 512, false), Err(Errno::NoSpc));
        assert_eq!(store.fault(), None);
    }

    #[test]
    fn after_a_failed_sync_nothing_is_durable_any_more() {
        let store = store();
        assert_eq!(store.synced(Ok(0)), Ok(()));
        assert_eq!(store.moved(Ok(512), 512, true), Ok(()));
        assert_eq!(store.synced(Err(rustix::io::Errno::IO)), Err(Errno::Io));
        assert_eq!(store.synced(Ok(0)), Err(Errno::Io));
        assert_eq!(store.moved(Ok(512), 512, true), Err(Errno::Io));
        assert_eq!(store.moved(Ok(512), 512, false), Ok(()));
        assert_eq!(store.sync(), Err(Errno::Io));
    }

    #[test]
    fn a_failed_durable_write_is_a_fault() {
        let store = store();
        let failed = Err(rustix::io::Errno::IO);
        assert_eq!(store.moved(failed, 512, true), Err(Errno::Io));
        assert!(store.fault().is_some());
    }

    #[test]
    fn a_caller_that_may_wait_reads_what_it_wrote() {
        let store = store();
        assert_eq!(store.write(512, &[7; 1024], true), Ok(()));
        assert_eq!(store.zero(512, 512, false, false), Ok(()));
        let mut bytes = [9; 1536];
        assert_eq!(store.read(0, &mut bytes), Ok(()));
        assert_eq!(
            (&bytes[..1024], &bytes[1024..]),
            (&[0; 1024][..], &[7; 512][..])
        );
    }
}
