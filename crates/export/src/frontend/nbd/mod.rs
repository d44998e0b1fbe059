//! The NBD frontend: NetworkBlockDevice/nbd, doc/proto.md.
//!
//! [`handshake`] is a state machine that has no socket itself. After the handshake, a [`Session`] serves the
//! connection: `decode` turns received bytes into requests, with the layout in [`wire`] and the rules in
//! [`check`]; `encode` turns replies into bytes. [`client`] is an NBD client.

pub mod check;
pub mod client;
mod decode;
mod encode;
pub mod handshake;
mod transport;
pub mod wire;

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use dashpot_engine::Outcome;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType, getpeername};

use self::handshake::Features;
use self::transport::Socket;
use self::wire::REQUEST_LEN;
use super::boundary::{
    Arrival, Decoded, ExtentQuestion, Frontend, NotServed, ReceiveLimits, Request, SendLimits,
};
use crate::export::ExportInfo;
use crate::store::Extent;

/// A connection after its handshake.
#[derive(Debug)]
pub(crate) struct Session {
    socket: Socket,
    features: Features,
}

impl Session {
    pub(crate) fn new(fd: OwnedFd, features: Features) -> Session {
        Session {
            socket: Socket::new(fd),
            features,
        }
    }

    /// A connection from the kernel's NBD client. It has no handshake: the client begins with its first
    /// request, and knows only simple replies.
    pub(crate) fn of_kernel(fd: OwnedFd) -> Result<Session, NotServed> {
        let is_unix = socket_domain(&fd) == Ok(AddressFamily::UNIX);
        let is_stream = socket_type(&fd) == Ok(SocketType::STREAM);
        if is_unix && is_stream && getpeername(&fd).is_ok() {
            Ok(Session::new(fd, Features::default()))
        } else {
            Err(NOT_SOCKET)
        }
    }
}

const NOT_SOCKET: NotServed = NotServed::WrongDescriptor("connected unix socket");

impl Frontend for Session {
    fn receive(&mut self, into: &mut Vec<u8>) -> Arrival {
        self.socket.receive(into)
    }

    fn receive_limits(&self) -> ReceiveLimits {
        ReceiveLimits::STREAM
    }

    fn may_hold_request(&self, received: &[u8]) -> bool {
        received.len() >= REQUEST_LEN
    }

    #[inline]
    fn decode(&mut self, received: &[u8], export: &ExportInfo) -> Decoded {
        decode::decode(received, export, self.features)
    }

    #[inline]
    fn put_head(&self, heads: &mut Vec<u8>, request: &Request, outcome: Outcome) {
        encode::put_head(heads, request, outcome, self.features);
    }

    fn extents_reply(&self, question: &ExtentQuestion, extents: &[Extent]) -> Vec<u8> {
        encode::block_status(question.cookie, extents)
    }

    fn send(&mut self, bytes: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        self.socket.send(bytes)
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::STREAM
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{NOT_SOCKET, Session};
    use std::fs::File;
    use std::net::TcpListener;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    #[test]
    fn the_kernel_is_served_over_a_connected_unix_socket_only() {
        let (ours, _kernels) = UnixStream::pair().unwrap();
        assert!(Session::of_kernel(ours.into()).is_ok());
        let (datagram, _other) = UnixDatagram::pair().unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let file = File::open("/dev/null").unwrap();
        for other in [datagram.into(), tcp.into(), file.into()] {
            assert_eq!(Session::of_kernel(other).unwrap_err(), NOT_SOCKET);
        }
    }
}
