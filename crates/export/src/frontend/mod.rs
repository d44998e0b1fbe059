//! The list of frontends. Each is a folder with the same file names: `wire` (layout), `handshake`
//! (how a client begins), `check` (may it be served?), `decode`, `encode`.
//!
//! A frontend is added here and nowhere else in the data path: a variant of [`Session`], which a
//! shard serves, and of [`Handshake`] if its clients connect to a socket. `boundary` says what it
//! has to do.

pub(crate) mod boundary;
pub mod nbd;
mod socket;

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use dashpot_engine::Outcome;

pub use self::boundary::Operation;
use self::boundary::{Arrival, Decoded, ExtentQuestion, Frontend, Request, SendLimits};
use crate::export::ExportInfo;
use crate::store::Extent;

/// The connection of a client that has shaken hands, by its frontend.
#[derive(Debug)]
pub(crate) enum Session {
    Nbd(nbd::Session),
}

impl Frontend for Session {
    #[inline]
    fn receive(&mut self, into: &mut Vec<u8>) -> Arrival {
        match self {
            Session::Nbd(session) => session.receive(into),
        }
    }

    #[inline]
    fn may_hold_request(&self, received: &[u8]) -> bool {
        match self {
            Session::Nbd(session) => session.may_hold_request(received),
        }
    }

    #[inline]
    fn decode(&mut self, received: &[u8], export: &ExportInfo) -> Decoded {
        match self {
            Session::Nbd(session) => session.decode(received, export),
        }
    }

    #[inline]
    fn put_head(&self, heads: &mut Vec<u8>, request: &Request, outcome: Outcome) {
        match self {
            Session::Nbd(session) => session.put_head(heads, request, outcome),
        }
    }

    fn extents_reply(&self, question: &ExtentQuestion, extents: &[Extent]) -> Vec<u8> {
        match self {
            Session::Nbd(session) => session.extents_reply(question, extents),
        }
    }

    #[inline]
    fn send(&mut self, bytes: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        match self {
            Session::Nbd(session) => session.send(bytes),
        }
    }

    #[inline]
    fn send_limits(&self) -> SendLimits {
        match self {
            Session::Nbd(session) => session.send_limits(),
        }
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Session::Nbd(session) => session.as_fd(),
        }
    }
}

/// A handshake on a socket, as a state machine without one. The acceptor moves its bytes.
#[derive(Debug)]
pub(crate) enum Handshake {
    Nbd(nbd::handshake::Handshake),
}

/// Where a handshake stands.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The client is to send more.
    More,
    /// The connection is to be closed once the output is sent.
    Close,
    /// The connection may be served once the output is sent.
    Ready(Agreed),
}

/// The result of a handshake.
#[derive(Debug)]
pub(crate) struct Agreed {
    /// Index of the chosen export.
    pub(crate) export: usize,
    /// The bytes behind the handshake: the beginning of the client's first requests.
    pub(crate) left_over: Vec<u8>,
    protocol: Protocol,
}

/// The protocol that the connection goes on with, and its features.
#[derive(Debug)]
enum Protocol {
    Nbd(nbd::handshake::Features),
}

impl Handshake {
    /// Begins a handshake over these exports, with the server's greeting.
    pub(crate) fn begin(exports: Arc<[ExportInfo]>) -> (Handshake, Vec<u8>) {
        let handshake = nbd::handshake::Handshake::new(exports);
        (Handshake::Nbd(handshake), nbd::handshake::GREETING.to_vec())
    }

    /// Takes received bytes, and appends the bytes to send.
    pub(crate) fn input(&mut self, bytes: &[u8], output: &mut Vec<u8>) -> Progress {
        let Handshake::Nbd(handshake) = self;
        match handshake.input(bytes, output) {
            nbd::handshake::Progress::More => Progress::More,
            nbd::handshake::Progress::Close => Progress::Close,
            nbd::handshake::Progress::Ready(negotiated) => Progress::Ready(Agreed {
                export: negotiated.export,
                left_over: negotiated.left_over,
                protocol: Protocol::Nbd(negotiated.features),
            }),
        }
    }
}

impl Agreed {
    /// The session that goes on with the socket of the handshake, and the bytes that have come already.
    pub(crate) fn session(self, fd: OwnedFd) -> (Session, Vec<u8>) {
        let Protocol::Nbd(features) = self.protocol;
        (
            Session::Nbd(nbd::Session::new(fd, features)),
            self.left_over,
        )
    }
}
