//! The transport `/dev/fuse`: one read returns one message, and one write takes one reply.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, fstat, major, minor};
use rustix::io::Errno;

use super::wire::MESSAGE_MAX;
use crate::frontend::boundary::{Arrival, NotServed};

/// An open `/dev/fuse`.
#[derive(Debug)]
pub(super) struct Device(OwnedFd);

impl Device {
    pub(super) fn new(fd: OwnedFd) -> Result<Device, NotServed> {
        let found = fstat(&fd).map_err(|_| NOT_FUSE)?;
        let is_device = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice;
        if !is_device || (major(found.st_rdev), minor(found.st_rdev)) != FUSE {
            return Err(NOT_FUSE);
        }
        rustix::io::ioctl_fionbio(&fd, true).map_err(|_| NOT_FUSE)?;
        Ok(Device(fd))
    }

    /// Appends messages to the spare capacity of `into`, while there is room for the longest
    /// message.
    pub(super) fn receive(&self, into: &mut Vec<u8>) -> Arrival {
        let mut arrival = Arrival::Nothing;
        for _ in 0..MESSAGES_PER_CALL {
            if into.capacity() - into.len() < MESSAGE_MAX {
                break;
            }
            match rustix::io::read(&self.0, spare_capacity(into)) {
                Ok(1..) => arrival = Arrival::Bytes,
                // There is no message. `NOENT` means that the kernel aborted a request before it could be
                // read.
                Err(Errno::AGAIN | Errno::INTR | Errno::NOENT) => break,
                // The connection has ended. Messages that were received earlier in this call are dropped,
                // because the session can no longer reply to them.
                Ok(0) | Err(_) => return Arrival::End,
            }
        }
        arrival
    }

    /// Gives a reply to the kernel, which takes the whole reply or nothing.
    pub(super) fn send(&self, bytes: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        match rustix::io::writev(&self.0, bytes) {
            // The kernel no longer waits for this reply, so it counts as sent.
            Err(Errno::NOENT) => Ok(bytes.iter().map(|part| part.len()).sum()),
            result => result,
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The major and minor number of `/dev/fuse`, from the kernel's
/// Documentation/admin-guide/devices.txt.
const FUSE: (u32, u32) = (10, 229);
const NOT_FUSE: NotServed = NotServed::WrongDescriptor("/dev/fuse");
/// The largest number of messages that one call of [`Device::receive`] takes. Each further message in a batch
/// costs a system call, and delays the messages before it.
const MESSAGES_PER_CALL: usize = 16;

#[cfg(test)]
mod tests {
    use super::{Device, NOT_FUSE};
    use std::fs::File;

    #[test]
    fn other_descriptors_are_refused() {
        for path in ["/dev/null", "/proc/self/exe", "/"] {
            let file = File::open(path).unwrap();
            assert_eq!(Device::new(file.into()).unwrap_err(), NOT_FUSE, "{path}");
        }
    }
}
