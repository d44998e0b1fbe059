//! A client in the middle of its handshake, with its socket and the state of its [`Handshake`].

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};

use crate::connection_limit::Permit;
use crate::export::ExportInfo;
use crate::frontend::{Handshake, Progress};

pub(super) struct Handshaking {
    pub(super) fd: OwnedFd,
    pub(super) permit: Permit,
    handshake: Handshake,
    output: Vec<u8>,
    sent: usize,
    /// The next step of the connection, once the output is sent.
    pub(super) progress: Progress,
}

impl Handshaking {
    pub(super) fn new(fd: OwnedFd, permit: Permit, exports: Arc<[ExportInfo]>) -> Handshaking {
        let (handshake, output) = Handshake::on_socket(exports);
        Handshaking {
            fd,
            permit,
            handshake,
            output,
            sent: 0,
            progress: Progress::More,
        }
    }

    /// Whether there is output that the client has not taken yet.
    pub(super) fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Whether the handshake still goes on, because the server has output to send or expects more from the
    /// client.
    pub(super) fn is_going_on(&self) -> bool {
        self.has_output() || matches!(self.progress, Progress::More)
    }

    /// Sends the output, then reads what the client has sent and answers it. Stops when sending or receiving
    /// would block, or after [`READS_PER_TURN`] reads, so that the acceptor can serve the other clients.
    pub(super) fn advance(&mut self) -> rustix::io::Result<()> {
        for _ in 0..READS_PER_TURN {
            if !self.send()? || !matches!(self.progress, Progress::More) {
                return Ok(());
            }
            if !self.receive()? {
                return Ok(());
            }
        }
        self.send().map(drop)
    }

    /// Sends as much of the output as the socket takes. Returns whether the whole output is sent.
    fn send(&mut self) -> rustix::io::Result<bool> {
        while self.sent < self.output.len() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match net::send(&self.fd, &self.output[self.sent..], flags) {
                Ok(sent) => self.sent += sent,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Reads the socket once, and passes the bytes to the handshake. Returns whether any bytes were received.
    fn receive(&mut self) -> rustix::io::Result<bool> {
        let mut bytes = Vec::with_capacity(RECEIVE_LENGTH);
        match net::recv(&self.fd, spare_capacity(&mut bytes), RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(Errno::CONNRESET),
            Ok(_) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.progress = self.handshake.input(&bytes, &mut self.output);
        Ok(true)
    }
}

/// How many times the acceptor reads one client's socket before it serves the other clients.
const READS_PER_TURN: usize = 4;
/// The largest number of bytes that one read takes.
const RECEIVE_LENGTH: usize = 16 << 10;
