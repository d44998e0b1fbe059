//! The transport: a connected stream socket.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags};

use crate::frontend::boundary::Arrival;

/// A connected stream socket.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

impl Socket {
    pub(super) fn new(fd: OwnedFd) -> Socket {
        Socket(fd)
    }

    /// Appends received bytes to the spare capacity of `into`.
    pub(super) fn receive(&self, into: &mut Vec<u8>) -> Arrival {
        match net::recv(&self.0, spare_capacity(into), RecvFlags::DONTWAIT) {
            Ok((0, _)) => Arrival::End,
            Ok(_) => Arrival::Bytes,
            Err(Errno::AGAIN | Errno::INTR) => Arrival::Nothing,
            Err(_) => Arrival::End,
        }
    }

    /// Offers bytes to the kernel. Returns the number of bytes that the kernel has accepted.
    pub(super) fn send(&self, bytes: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        net::sendmsg(&self.0, bytes, &mut SendAncillaryBuffer::default(), flags)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
