//! The FUSE frontend: an export is the only file of a file system, and the kernel is its client.
//!
//! The kernel's include/uapi/linux/fuse.h defines the protocol. A privileged process mounts the file,
//! and hands the descriptor of the connection to the daemon. A loop device over the file then makes the
//! file a block device. The file is the root of its file system, so there are no names to look up.
//! `handshake` answers the kernel's first message. `decode` turns messages into requests, with the layout of
//! [`wire`]. `encode` turns replies into bytes.

mod decode;
mod encode;
mod handshake;
mod transport;
mod wire;

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use dashpot_engine::Outcome;

pub use self::decode::decode;
use self::transport::Device;
use self::wire::{MESSAGE_MAX, REPLY_MAX};
use super::boundary::{
    Arrival, Decoded, ExtentQuestion, Frontend, NotServed, ReceiveLimits, Request, SendLimits,
};
use crate::export::ExportInfo;
use crate::store::Extent;

/// The connection to the kernel for one mount.
#[derive(Debug)]
pub(crate) struct Session {
    device: Device,
}

impl Session {
    /// Takes an open `/dev/fuse` whose file system is mounted.
    pub(crate) fn new(fd: OwnedFd) -> Result<Session, NotServed> {
        let device = Device::new(fd)?;
        Ok(Session { device })
    }
}

impl Frontend for Session {
    fn receive(&mut self, into: &mut Vec<u8>) -> Arrival {
        self.device.receive(into)
    }

    fn receive_limits(&self) -> ReceiveLimits {
        ReceiveLimits {
            usual: 2 * MESSAGE_MAX,
            short: MESSAGE_MAX,
        }
    }

    fn may_hold_request(&self, received: &[u8]) -> bool {
        !received.is_empty()
    }

    #[inline]
    fn decode(&mut self, received: &[u8], export: &ExportInfo) -> Decoded {
        decode(received, export)
    }

    #[inline]
    fn put_head(&self, heads: &mut Vec<u8>, request: &Request, outcome: Outcome) {
        encode::put_head(heads, request, outcome);
    }

    /// The kernel never asks for extents.
    fn extents_reply(&self, _: &ExtentQuestion, _: &[Extent]) -> Vec<u8> {
        Vec::new()
    }

    fn send(&mut self, bytes: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        self.device.send(bytes)
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits {
            calls: SendLimits::STREAM.replies,
            replies: 1,
            bytes: REPLY_MAX + 1,
        }
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
