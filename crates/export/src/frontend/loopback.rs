//! A client within this process. This client sends one read at a time over a socket pair. It speaks NBD,
//! as most clients do.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::Session;
use super::nbd::client::{encode, parse_reply};
use super::nbd::handshake::Features;
use super::nbd::wire::{RequestHeader, SIMPLE_REPLY_LEN, command};

/// The client's end of the socket pair.
#[derive(Debug)]
pub(crate) struct Loopback {
    socket: OwnedFd,
}

impl Loopback {
    /// The length of a read, in bytes.
    pub(crate) const READ: u32 = 512;

    /// Makes a connection. The session is the shard's end.
    pub(crate) fn new() -> io::Result<(Loopback, Session)> {
        let flags = SocketFlags::CLOEXEC;
        let (near, far) = net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::io::ioctl_fionbio(&far, true)?;
        let session = Session::Nbd(super::nbd::Session::new(far, Features::default()));
        Ok((Loopback { socket: near }, session))
    }

    /// Reads the first bytes of the export, and waits for the whole reply. Returns false if the shard
    /// refuses the read.
    pub(crate) fn read(&self) -> io::Result<bool> {
        let request = encode(&RequestHeader {
            flags: 0,
            command: command::READ,
            cookie: 0,
            offset: 0,
            length: Self::READ,
        });
        // There is never more than one request, of 28 bytes, so the socket always has room.
        net::send(&self.socket, &request, SendFlags::NOSIGNAL)?;
        let mut reply = [0; REPLY_LEN];
        let mut filled = 0;
        loop {
            match net::recv(&self.socket, &mut reply[filled..], RecvFlags::empty()) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((_, received)) => filled += received,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let Some(error) = answered(&reply[..filled]) {
                return Ok(error == 0);
            }
        }
    }
}

/// The error number in a reply, once the reply is complete. Data follows only if the read has succeeded.
fn answered(reply: &[u8]) -> Option<u32> {
    let (_, error) = parse_reply(reply.first_chunk()?)?;
    (error != 0 || reply.len() == REPLY_LEN).then_some(error)
}

const REPLY_LEN: usize = SIMPLE_REPLY_LEN + Loopback::READ as usize;

#[cfg(test)]
mod tests {
    use super::answered;
    use crate::frontend::nbd::wire::simple_reply;
    use dashpot_engine::Errno;

    #[test]
    fn a_reply_is_read_to_its_end() {
        let mut reply = simple_reply(0, Ok(())).to_vec();
        assert_eq!(answered(&reply), None);
        reply.extend([0; 511]);
        assert_eq!(answered(&reply), None);
        reply.push(0);
        assert_eq!(answered(&reply), Some(0));
        let refused = simple_reply(0, Err(Errno::Shutdown));
        assert!(answered(&refused).is_some_and(|error| error != 0));
        assert_eq!(answered(&refused[..8]), None);
    }
}
