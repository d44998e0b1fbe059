//! An NBD client that uses one export over one connection. It has only the parts of NBD that a load generator
//! needs.
//!
//! The client negotiates with GO and asks for no structured replies, so the reply to a write is 16 bytes, and
//! the reply to a read is 16 bytes followed by the data.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use dashpot_rules::Address;

use super::wire::{REQUEST_LEN, RequestHeader, SIMPLE_REPLY_LEN};

/// The reason that a client could not connect.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The system refuses to connect.
    #[error("{address}: cannot connect")]
    Refused {
        address: Address,
        /// The system's reason.
        source: io::Error,
    },
    /// The server closed the connection before it described the export.
    #[error("{0}: the server closed the connection during the handshake")]
    Closed(Address),
    /// The server accepted the connection, and then sent nothing.
    #[error("{0}: the server did not answer for {PATIENCE:?} during the handshake")]
    Silent(Address),
    /// The peer does not speak NBD, or only an older version of its handshake.
    #[error("{0}: no NBD server of the fixed newstyle answers there")]
    NotNbd(Address),
    /// The server refuses the export, for example because it has no such export.
    #[error("the server does not serve export '{export}': {reason}")]
    NoExport {
        /// The name that the caller asked for.
        export: String,
        /// The server's message.
        reason: String,
    },
}

/// A connection after its handshake.
#[derive(Debug)]
pub struct Connection {
    pub socket: OwnedFd,
    /// The export's size in bytes.
    pub size: u64,
    /// The transmission flags.
    pub flags: u16,
}

/// Connects to an export.
pub fn connect(address: &Address, export: &str) -> Result<Connection, ConnectError> {
    let refused = |source| ConnectError::Refused {
        address: address.clone(),
        source,
    };
    match address {
        Address::Unix(path) => {
            let socket = UnixStream::connect(path).map_err(refused)?;
            socket.set_read_timeout(Some(PATIENCE)).map_err(refused)?;
            let (size, flags) = shake_hands(&socket, address, export)?;
            Ok(Connection {
                socket: socket.into(),
                size,
                flags,
            })
        }
        Address::Tcp(peer) => {
            let socket = TcpStream::connect(peer).map_err(refused)?;
            socket.set_nodelay(true).map_err(refused)?;
            socket.set_read_timeout(Some(PATIENCE)).map_err(refused)?;
            let (size, flags) = shake_hands(&socket, address, export)?;
            Ok(Connection {
                socket: socket.into(),
                size,
                flags,
            })
        }
    }
}

/// Shakes hands. Returns the size and the flags of the export.
fn shake_hands<S>(stream: S, address: &Address, export: &str) -> Result<(u64, u16), ConnectError>
where
    S: Read + Write,
{
    let mut hands = Hands { stream };
    match hands.shake(export) {
        Ok(Ok(info)) => Ok(info),
        Ok(Err(reason)) => Err(ConnectError::NoExport {
            export: export.to_owned(),
            reason,
        }),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(ConnectError::NotNbd(address.clone()))
        }
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(ConnectError::Closed(address.clone()))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(ConnectError::Silent(address.clone()))
        }
        Err(source) => Err(ConnectError::Refused {
            address: address.clone(),
            source,
        }),
    }
}

struct Hands<S> {
    stream: S,
}

type Info = (u64, u16);

impl<S: Read + Write> Hands<S> {
    /// Like [`shake_hands`]. The inner error is the message with which the server refuses.
    fn shake(&mut self, export: &str) -> io::Result<Result<Info, String>> {
        let greeting = self.read::<18>()?;
        if greeting[..16] != *b"NBDMAGICIHAVEOPT" || greeting[17] & FIXED_NEWSTYLE == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.stream.write_all(&[0, 0, 0, FIXED_NEWSTYLE])?;
        self.ask_to_go(export)?;
        let mut info = None;
        loop {
            match self.read_reply()? {
                (REP_ACK, _) => return info.map(Ok).ok_or(io::ErrorKind::InvalidData.into()),
                (REP_INFO, data) => info = export_info(&data).or(info),
                (_, data) => return Ok(Err(String::from_utf8_lossy(&data).into_owned())),
            }
        }
    }

    fn ask_to_go(&mut self, export: &str) -> io::Result<()> {
        let name = u32::try_from(export.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut option = b"IHAVEOPT".to_vec();
        option.extend_from_slice(&OPT_GO.to_be_bytes());
        option.extend_from_slice(&(name + 6).to_be_bytes());
        option.extend_from_slice(&name.to_be_bytes());
        option.extend_from_slice(export.as_bytes());
        option.extend_from_slice(&0_u16.to_be_bytes());
        self.stream.write_all(&option)
    }

    /// Reads a reply to an option, and returns its type and data.
    fn read_reply(&mut self) -> io::Result<(u32, Vec<u8>)> {
        let header = self.read::<20>()?;
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        let length = word(16);
        if length > REPLY_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut data = vec![0; length as usize];
        self.stream.read_exact(&mut data)?;
        Ok((word(12), data))
    }

    fn read<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// The size and the flags of the export, if `data` is the information that has them.
fn export_info(data: &[u8]) -> Option<Info> {
    let (kind, rest) = data.split_first_chunk::<2>()?;
    let (size, rest) = rest.split_first_chunk::<8>()?;
    let flags = rest.first_chunk::<2>()?;
    (*kind == [0, 0]).then_some((u64::from_be_bytes(*size), u16::from_be_bytes(*flags)))
}

/// Encodes a request in the layout of the protocol.
pub fn encode(request: &RequestHeader) -> [u8; REQUEST_LEN] {
    let mut bytes = [0; REQUEST_LEN];
    bytes[0..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&request.flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&request.command.to_be_bytes());
    bytes[8..16].copy_from_slice(&request.cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&request.offset.to_be_bytes());
    bytes[24..28].copy_from_slice(&request.length.to_be_bytes());
    bytes
}

/// Parses a simple reply into its cookie and error number. `None` if the bytes are not a simple reply.
pub fn parse_reply(bytes: &[u8; SIMPLE_REPLY_LEN]) -> Option<(u64, u32)> {
    let (magic, rest) = bytes.split_first_chunk::<4>()?;
    let (error, rest) = rest.split_first_chunk::<4>()?;
    let cookie = rest.first_chunk::<8>()?;
    let is_reply = u32::from_be_bytes(*magic) == REPLY_MAGIC;
    is_reply.then_some((u64::from_be_bytes(*cookie), u32::from_be_bytes(*error)))
}

const FIXED_NEWSTYLE: u8 = 1;
const OPT_GO: u32 = 7;
const REP_ACK: u32 = 1;
const REP_INFO: u32 = 3;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
/// The longest reply to an option, in bytes, that the client reads.
const REPLY_MAX: u32 = 64 << 10;
/// How long a server may be silent in a handshake. A server stays silent while it has no room for another
/// client.
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::{encode, parse_reply};
    use crate::frontend::nbd::wire::{RequestHeader, simple_reply};

    #[test]
    fn the_server_reads_what_the_client_writes_and_the_other_way_round() {
        let request = RequestHeader {
            flags: 1,
            command: 6,
            cookie: 77,
            offset: 1 << 40,
            length: 9,
        };
        assert_eq!(RequestHeader::parse(&encode(&request)).unwrap(), request);
        assert_eq!(parse_reply(&simple_reply(77, Ok(()))), Some((77, 0)));
        assert_eq!(parse_reply(&[0; 16]), None);
    }
}
