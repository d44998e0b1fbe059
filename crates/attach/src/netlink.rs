//! Orders to the kernel's NBD client, over generic netlink (include/uapi/linux/nbd-netlink.h).

use std::iter;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{connect, recv, send, socket_with};

/// A socket to the kernel's NBD client.
#[derive(Debug)]
pub(crate) struct NbdClient {
    socket: OwnedFd,
    /// The number of the NBD client's family of messages.
    family: u16,
}

/// An order to make a device of the kernel's NBD client.
#[derive(Debug)]
pub(crate) struct NbdOrder<'a> {
    /// The number in the name of the device.
    pub(crate) index: u32,
    /// A string that the kernel keeps with the device. The kernel accepts new sockets only together with the
    /// same string.
    pub(crate) backend: &'a str,
    pub(crate) size: u64,
    pub(crate) block: u32,
    /// The transmission flags of NBD.
    pub(crate) flags: u16,
}

impl NbdClient {
    /// Fails with [`Errno::NOENT`] if the kernel has no NBD client.
    pub(crate) fn open() -> rustix::io::Result<NbdClient> {
        let (domain, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        let socket = socket_with(domain, kind, SocketFlags::CLOEXEC, Some(netlink::GENERIC))?;
        connect(&socket, &SocketAddrNetlink::new(KERNEL, 0))?;
        let question = Message::new(CONTROL, GET_FAMILY).attribute(FAMILY_NAME, b"nbd\0");
        let answer = ask(&socket, question)?;
        let attributes = answer.get(GENERIC_HEADER..).unwrap_or_default();
        let family = parts(attributes, attribute_header).find(|(kind, _)| *kind == FAMILY_ID);
        let family = family.and_then(|(_, id)| Some(u16::from_ne_bytes(id.try_into().ok()?)));
        Ok(NbdClient {
            socket,
            family: family.ok_or(Errno::NOENT)?,
        })
    }

    /// Makes a device of a connected socket. Fails with [`Errno::BUSY`] if the device is in use.
    pub(crate) fn connect(&self, order: &NbdOrder<'_>, peer: BorrowedFd<'_>) -> Result<(), Errno> {
        let message = Message::new(self.family, CONNECT)
            .attribute(INDEX, &order.index.to_ne_bytes())
            .attribute(SIZE, &order.size.to_ne_bytes())
            .attribute(BLOCK_SIZE, &u64::from(order.block).to_ne_bytes())
            .attribute(SERVER_FLAGS, &u64::from(order.flags).to_ne_bytes())
            .attribute(CLIENT_FLAGS, &0_u64.to_ne_bytes())
            // No time limit for I/O, because a rule may hold an I/O for hours. Without this attribute, the
            // node would keep the time limit of its former user.
            .attribute(TIMEOUT, &0_u64.to_ne_bytes())
            .attribute(DEAD_CONNECTION_TIMEOUT, &RECONNECT_SECONDS.to_ne_bytes())
            .attribute(BACKEND, &terminated(order.backend))
            .attribute(SOCKETS, &sockets(peer));
        ask(&self.socket, message).map(|_| ())
    }

    /// Gives a device a new socket in place of a closed one. If the device's old socket is still open, the
    /// kernel does not take the new socket, and reports no error. Fails with [`Errno::INVAL`] if the device
    /// is not in use or has another `backend`.
    pub(crate) fn reconnect(
        &self,
        index: u32,
        backend: &str,
        peer: BorrowedFd<'_>,
    ) -> Result<(), Errno> {
        let message = Message::new(self.family, RECONFIGURE)
            .attribute(INDEX, &index.to_ne_bytes())
            .attribute(BACKEND, &terminated(backend))
            .attribute(SOCKETS, &sockets(peer));
        ask(&self.socket, message).map(|_| ())
    }

    /// Ends a device. The kernel fails the device's I/O in flight.
    pub(crate) fn disconnect(&self, index: u32) -> Result<(), Errno> {
        let message = Message::new(self.family, DISCONNECT);
        ask(&self.socket, message.attribute(INDEX, &index.to_ne_bytes())).map(|_| ())
    }
}

/// The list of a device's sockets, with only one socket. If there were two, the kernel would drop a
/// connection that does not answer for 30 s.
fn sockets(peer: BorrowedFd<'_>) -> Vec<u8> {
    let descriptor = attribute(SOCKET_DESCRIPTOR, &peer.as_raw_fd().to_ne_bytes());
    attribute(SOCKET_ITEM, &descriptor)
}

fn terminated(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// A message that is being written.
struct Message(Vec<u8>);

impl Message {
    fn new(family: u16, command: u8) -> Message {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&family.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(REQUEST | ACKNOWLEDGE).to_ne_bytes());
        bytes.extend_from_slice(&[command, VERSION, 0, 0]);
        Message(bytes)
    }

    fn attribute(mut self, kind: u16, value: &[u8]) -> Message {
        self.0.extend(attribute(kind, value));
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// An attribute, with its padding.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (ATTRIBUTE_HEADER + value.len()) as u16;
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    bytes
}

/// Sends a message. Returns the payload of the reply, or nothing if the kernel only acknowledges the message.
fn ask(socket: &OwnedFd, message: Message) -> rustix::io::Result<Vec<u8>> {
    send(socket, &message.finish(), SendFlags::empty())?;
    let (mut reply, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        let (length, _) = recv(socket, &mut buffer, RecvFlags::empty())?;
        for (kind, payload) in parts(&buffer[..length], message_header) {
            if kind != ERROR {
                reply = payload.to_vec();
                continue;
            }
            let code = payload.first_chunk().map(|code| i32::from_ne_bytes(*code));
            return match code {
                Some(0) => Ok(reply),
                Some(code) => Err(Errno::from_raw_os_error(code.saturating_neg())),
                None => Err(Errno::PROTO),
            };
        }
    }
}

/// The kinds and the payloads of the messages or the attributes in `bytes`, up to the first part that
/// is cut short.
fn parts(
    mut bytes: &[u8],
    header: fn(&[u8]) -> Option<Header>,
) -> impl Iterator<Item = (u16, &[u8])> {
    iter::from_fn(move || {
        let (length, kind, header) = header(bytes)?;
        let payload = bytes.get(header..length)?;
        bytes = bytes
            .get(length.next_multiple_of(ALIGNMENT)..)
            .unwrap_or_default();
        Some((kind, payload))
    })
}

/// The header of a part: the length of the part including its header, the kind of the part, and the length of
/// the header.
type Header = (usize, u16, usize);

fn message_header(bytes: &[u8]) -> Option<Header> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    Some((length, kind, HEADER))
}

fn attribute_header(bytes: &[u8]) -> Option<Header> {
    let length = u16::from_ne_bytes(*bytes.first_chunk()?).into();
    let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
    Some((length, kind, ATTRIBUTE_HEADER))
}

/// How long the kernel keeps new I/O after the daemon is gone, while it waits for new sockets. After that
/// time, the kernel fails new I/O.
pub(crate) const RECONNECT_SECONDS: u64 = 20;

// include/uapi/linux/netlink.h
const KERNEL: u32 = 0;
const HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
const ALIGNMENT: usize = 4;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const ERROR: u16 = 2;

// include/uapi/linux/genetlink.h
const GENERIC_HEADER: usize = 4;
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

// include/uapi/linux/nbd-netlink.h
const VERSION: u8 = 1;
const CONNECT: u8 = 1;
const DISCONNECT: u8 = 2;
const RECONFIGURE: u8 = 3;
const INDEX: u16 = 1;
const SIZE: u16 = 2;
const BLOCK_SIZE: u16 = 3;
const TIMEOUT: u16 = 4;
const SERVER_FLAGS: u16 = 5;
const CLIENT_FLAGS: u16 = 6;
const SOCKETS: u16 = 7 | NESTED;
const DEAD_CONNECTION_TIMEOUT: u16 = 8;
const BACKEND: u16 = 10;
const SOCKET_ITEM: u16 = 1 | NESTED;
const SOCKET_DESCRIPTOR: u16 = 1;
/// The flag of an attribute that consists of attributes.
const NESTED: u16 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::{Message, NbdClient, attribute, attribute_header, message_header, parts};
    use rustix::io::Errno;

    #[test]
    fn what_is_written_can_be_read() {
        let message = Message::new(7, 1)
            .attribute(2, b"abc")
            .attribute(9, &attribute(1, &[5; 8]))
            .finish();
        assert_eq!(message.len(), 16 + 4 + 8 + 16);
        let messages: Vec<_> = parts(&message, message_header).collect();
        let [(7, payload)] = messages[..] else {
            panic!("{messages:?}")
        };
        let attributes: Vec<_> = parts(&payload[4..], attribute_header).collect();
        assert_eq!(attributes[0], (2, b"abc".as_slice()));
        let inner: Vec<_> = parts(attributes[1].1, attribute_header).collect();
        assert_eq!(inner, [(1, [5; 8].as_slice())]);
    }

    #[test]
    fn what_is_cut_short_ends_the_list() {
        let whole = attribute(2, b"abcd");
        for length in 0..whole.len() {
            assert_eq!(parts(&whole[..length], attribute_header).count(), 0);
        }
        // Here the length is 0, and thus smaller than the header.
        assert_eq!(parts(&[0; 64], attribute_header).count(), 0);
    }

    #[test]
    fn the_kernel_answers() {
        match NbdClient::open() {
            // A sandbox may have no netlink.
            Ok(_) | Err(Errno::NOENT | Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
