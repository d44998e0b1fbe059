//! The ublk frontend: the kernel's ublk driver makes a block device, and sends the device's requests to
//! this frontend.
//!
//! A privileged process makes the device as [`handshake`] says, and hands its open character device to
//! the daemon. The device has one queue. `transport` takes the driver's descriptions of requests from the
//! queue, and turns each description into a message. The message of a write also has the data to write. The
//! layout of these messages, in `wire`, is our own. `decode` turns messages into requests. `encode` turns
//! replies into bytes, and `transport` turns these bytes into commands.

mod decode;
mod encode;
pub mod handshake;
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

/// The connection to the driver for one device.
#[derive(Debug)]
pub(crate) struct Session {
    device: Device,
}

impl Session {
    /// Takes the open character device of a new device.
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

    fn flush(&mut self) -> rustix::io::Result<()> {
        self.device.flush()
    }

    fn fail_all(&mut self) -> bool {
        self.device.fail_all()
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
