//! Somebody whose handshake is going on: a socket around a [`Handshake`].

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};

use super::connection_limit::Permit;
use crate::export::ExportInfo;
use crate::frontend::nbd::handshake::{GREETING, Handshake, Negotiated, Progress};

pub(super) struct Handshaking {
    pub(super) fd: OwnedFd,
    pub(super) permit: Permit,
    setup: Handshake,
    output: Vec<u8>,
    sent: usize,
    /// What follows when the output is sent.
    pub(super) after: After,
}

/// What becomes of a handshaking.
pub(super) enum After {
    More,
    Close,
    Ready(Negotiated),
}

impl Handshaking {
    pub(super) fn new(fd: OwnedFd, permit: Permit, exports: Arc<[ExportInfo]>) -> Handshaking {
        Handshaking {
            fd,
            permit,
            setup: Handshake::new(exports),
            output: GREETING.to_vec(),
            sent: 0,
            after: After::More,
        }
    }

    /// Whether there is something that its client has not taken yet.
    pub(super) fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Sends what there is, then reads and answers, until one of the two would wait or the others
    /// have waited long enough.
    pub(super) fn go_on(&mut self) -> rustix::io::Result<()> {
        for _ in 0..READS_PER_TURN {
            if !self.send()? || !matches!(self.after, After::More) {
                return Ok(());
            }
            if !self.receive()? {
                return Ok(());
            }
        }
        self.send().map(drop)
    }

    /// Whether everything is sent.
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

    /// Whether there was something.
    fn receive(&mut self) -> rustix::io::Result<bool> {
        let mut bytes = Vec::with_capacity(RECEIVE_LENGTH);
        match net::recv(&self.fd, spare_capacity(&mut bytes), RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(Errno::CONNRESET),
            Ok(_) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.after = match self.setup.input(&bytes, &mut self.output) {
            Progress::More => After::More,
            Progress::Close => After::Close,
            Progress::Ready(negotiated) => After::Ready(negotiated),
        };
        Ok(true)
    }
}

/// Times that one handshaking is read before the others have their turn.
const READS_PER_TURN: usize = 4;
/// Bytes read at a time.
const RECEIVE_LENGTH: usize = 16 << 10;
