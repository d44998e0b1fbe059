//! The transport `/dev/fuse`: one read returns one message, and one write takes one reply.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use dashpot_engine::Outcome;
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, fstat, major, minor};
use rustix::io::Errno;

use super::decode::decode;
use super::encode;
use super::wire::{MESSAGE_MAX, REPLY_MAX};
use crate::export::ExportInfo;
use crate::frontend::boundary::{
    Arrival, Decoded, Frontend, NotServed, ReceiveLimits, Request, SendLimits,
};

/// The connection to the kernel for one mount: an open `/dev/fuse`.
#[derive(Debug)]
pub(crate) struct Session(OwnedFd);

impl Session {
    /// Takes an open `/dev/fuse` whose file system is mounted.
    pub(crate) fn new(fd: OwnedFd) -> Result<Session, NotServed> {
        let found = fstat(&fd).map_err(|_| NOT_FUSE)?;
        let is_device = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice;
        if !is_device || (major(found.st_rdev), minor(found.st_rdev)) != FUSE {
            return Err(NOT_FUSE);
        }
        rustix::io::ioctl_fionbio(&fd, true).map_err(|_| NOT_FUSE)?;
        Ok(Session(fd))
    }
}

impl Frontend for Session {
    /// Appends messages to the spare capacity of `into`, while there is room for the longest
    /// message.
    fn receive(&mut self, into: &mut Vec<u8>) -> Arrival {
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

    fn receive_limits(&self) -> ReceiveLimits {
        ReceiveLimits::of_messages(MESSAGE_MAX)
    }

    #[inline]
    fn decode(&mut self, received: &[u8], export: &ExportInfo) -> Decoded {
        decode(received, export)
    }

    #[inline]
    fn put_head(&self, heads: &mut Vec<u8>, request: &Request, outcome: Outcome) {
        encode::put_head(heads, request, outcome);
    }

    /// Gives a reply to the kernel, which takes the whole reply or nothing.
    fn send(&mut self, bytes: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        match rustix::io::writev(&self.0, bytes) {
            // The kernel no longer waits for this reply, so it counts as sent.
            Err(Errno::NOENT) => Ok(bytes.iter().map(|part| part.len()).sum()),
            result => result,
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::of_replies(REPLY_MAX)
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The major and minor number of `/dev/fuse`, from the kernel's
/// Documentation/admin-guide/devices.txt.
const FUSE: (u32, u32) = (10, 229);
const NOT_FUSE: NotServed = NotServed::WrongDescriptor("/dev/fuse");
/// The largest number of messages that one call of [`Session::receive`] takes. Each further message in a batch
/// costs a system call, and delays the messages before it.
const MESSAGES_PER_CALL: usize = 16;

#[cfg(test)]
mod tests {
    use super::{NOT_FUSE, Session};
    use std::fs::File;

    #[test]
    fn other_descriptors_are_refused() {
        for path in ["/dev/null", "/proc/self/exe", "/"] {
            let file = File::open(path).unwrap();
            assert_eq!(Session::new(file.into()).unwrap_err(), NOT_FUSE, "{path}");
        }
    }
}
