//! Requests and replies of the transmission phase, byte for byte.
//!
//! Source: NetworkBlockDevice/nbd, doc/proto.md. All integers are big-endian. The headers of ordinary I/Os
//! are fixed arrays. Errors and block status are appended to a buffer of the caller.

use dashpot_engine::{Errno, Outcome};

/// Length of a request without its payload, in bytes.
pub const REQUEST_LEN: usize = 28;
/// Length of a simple reply without its payload, in bytes.
pub const SIMPLE_REPLY_LEN: usize = 16;
/// Length of a structured reply chunk without its payload, in bytes.
pub const CHUNK_LEN: usize = 20;
/// Length of a data chunk without its data, in bytes: the chunk's header and the offset of the data.
pub const DATA_CHUNK_LEN: usize = CHUNK_LEN + 8;
/// The longest string that the protocol allows, in bytes.
pub const STRING_MAX: usize = 4096;
/// The largest payload of a read or a write, in bytes. The protocol tells clients to assume this limit by
/// default, so every client obeys it.
pub const PAYLOAD_MAX: u32 = 32 << 20;
/// The largest number of extents in one block status chunk. The extents then take 64 KiB. Clients ask for
/// further extents in another request.
pub const EXTENTS_MAX: usize = 8192;
/// The id of `base:allocation` in block status chunks.
pub const BASE_ALLOCATION: u32 = 1;

/// State of an extent for which no space is allocated.
pub const STATE_HOLE: u32 = 1 << 0;
/// State of an extent that reads as zeroes.
pub const STATE_ZERO: u32 = 1 << 1;

/// The numbers of the commands.
pub mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// The bits of the command flags.
pub mod flag {
    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// A request, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Bits of [`flag`].
    pub flags: u16,
    /// One of the numbers in [`command`], if the client obeys the protocol.
    pub command: u16,
    /// The client's id of the request, sent back in the reply.
    pub cookie: u64,
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u32,
}

/// The received bytes do not begin with a request. The server is out of step with the client, so it must drop
/// the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a request begins with {0:#010x} instead of NBD's {REQUEST_MAGIC:#010x}")]
pub struct BadMagic(u32);

impl RequestHeader {
    pub fn parse(bytes: &[u8; REQUEST_LEN]) -> Result<RequestHeader, BadMagic> {
        let magic = u32::from_be_bytes(array(bytes, 0));
        if magic != REQUEST_MAGIC {
            return Err(BadMagic(magic));
        }
        Ok(RequestHeader {
            flags: u16::from_be_bytes(array(bytes, 4)),
            command: u16::from_be_bytes(array(bytes, 6)),
            cookie: u64::from_be_bytes(array(bytes, 8)),
            offset: u64::from_be_bytes(array(bytes, 16)),
            length: u32::from_be_bytes(array(bytes, 24)),
        })
    }
}

/// The number that stands for an error in replies.
pub const fn error_number(errno: Errno) -> u32 {
    match errno {
        Errno::Perm => 1,
        Errno::Io => 5,
        Errno::NoMem => 12,
        Errno::Inval => 22,
        Errno::NoSpc => 28,
        Errno::Overflow => 75,
        Errno::NotSup => 95,
        Errno::Shutdown => 108,
        // EIO. This never occurs, because no rule of a disk served over NBD has such an error.
        Errno::OfCall(_) => 5,
    }
}

/// A simple reply. The data of a successful read follows this reply.
pub fn simple_reply(cookie: u64, outcome: Outcome) -> [u8; SIMPLE_REPLY_LEN] {
    let error = outcome.map_or_else(error_number, |()| 0);
    let mut reply = [0; SIMPLE_REPLY_LEN];
    put(&mut reply, 0, SIMPLE_REPLY_MAGIC.to_be_bytes());
    put(&mut reply, 4, error.to_be_bytes());
    put(&mut reply, 8, cookie.to_be_bytes());
    reply
}

/// The whole structured reply to a request that has succeeded and returns no data.
pub fn none_chunk(cookie: u64) -> [u8; CHUNK_LEN] {
    last_chunk(CHUNK_NONE, cookie, 0)
}

/// The structured reply to a read, without the `length` bytes of data that follow. `length` is 1 to
/// [`PAYLOAD_MAX`], because the protocol has no empty data chunk.
pub fn data_chunk(cookie: u64, offset: u64, length: u32) -> [u8; DATA_CHUNK_LEN] {
    let mut chunk = [0; DATA_CHUNK_LEN];
    put(&mut chunk, 0, last_chunk(CHUNK_DATA, cookie, length + 8));
    put(&mut chunk, CHUNK_LEN, offset.to_be_bytes());
    chunk
}

/// Appends the whole structured reply to a request that failed. Cuts a `message` that is longer than
/// [`STRING_MAX`].
pub fn put_error_chunk(output: &mut Vec<u8>, cookie: u64, errno: Errno, message: &str) {
    let message = bounded(message);
    let length = message.len() as u16;
    let header = last_chunk(CHUNK_ERROR, cookie, 6 + u32::from(length));
    output.extend_from_slice(&header);
    output.extend_from_slice(&error_number(errno).to_be_bytes());
    output.extend_from_slice(&length.to_be_bytes());
    output.extend_from_slice(message.as_bytes());
}

/// Appends the whole structured reply to a block status request. The reply has the extents of
/// `base:allocation` as pairs: a length in bytes and a state ([`STATE_HOLE`], [`STATE_ZERO`]). The extents
/// follow each other without gaps from the request's offset on. There must be at least one extent, and no
/// extent may be empty. Extents after the first [`EXTENTS_MAX`] are left out.
pub fn put_status_chunk(
    output: &mut Vec<u8>,
    cookie: u64,
    extents: impl IntoIterator<Item = (u32, u32)>,
) {
    let start = output.len();
    output.extend_from_slice(&[0; CHUNK_LEN]);
    output.extend_from_slice(&BASE_ALLOCATION.to_be_bytes());
    for (length, state) in extents.into_iter().take(EXTENTS_MAX) {
        output.extend_from_slice(&length.to_be_bytes());
        output.extend_from_slice(&state.to_be_bytes());
    }
    let length = (output.len() - start - CHUNK_LEN) as u32;
    put(output, start, last_chunk(CHUNK_STATUS, cookie, length));
}

/// The longest prefix of `text` that the protocol allows as a string.
pub(super) fn bounded(text: &str) -> &str {
    let mut end = text.len().min(STRING_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The header of a reply's only chunk, which is marked as the last chunk. One chunk is enough, because a
/// reply is built after the I/O, so no error can occur once the header has been sent.
fn last_chunk(kind: u16, cookie: u64, length: u32) -> [u8; CHUNK_LEN] {
    let mut chunk = [0; CHUNK_LEN];
    put(&mut chunk, 0, CHUNK_MAGIC.to_be_bytes());
    put(&mut chunk, 4, CHUNK_DONE.to_be_bytes());
    put(&mut chunk, 6, kind.to_be_bytes());
    put(&mut chunk, 8, cookie.to_be_bytes());
    put(&mut chunk, 16, length.to_be_bytes());
    chunk
}

fn array<const N: usize>(bytes: &[u8; REQUEST_LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const CHUNK_MAGIC: u32 = 0x668e_33ef;
const CHUNK_DONE: u16 = 1 << 0;

const CHUNK_NONE: u16 = 0;
const CHUNK_DATA: u16 = 1;
const CHUNK_STATUS: u16 = 5;
const CHUNK_ERROR: u16 = 1 << 15 | 1;

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIE: u64 = 0x0102_0304_0506_0708;

    #[test]
    fn a_request_is_read_field_by_field() {
        let bytes = *b"\x25\x60\x95\x13\x00\x05\x00\x07\x01\x02\x03\x04\x05\x06\x07\x08\
                       \x11\x12\x13\x14\x15\x16\x17\x18\x21\x22\x23\x24";
        let request = RequestHeader {
            flags: 5,
            command: 7,
            cookie: COOKIE,
            offset: 0x1112_1314_1516_1718,
            length: 0x2122_2324,
        };
        assert_eq!(RequestHeader::parse(&bytes), Ok(request));
    }

    #[test]
    fn a_request_without_its_magic_is_refused() {
        let error = RequestHeader::parse(&[0x25; REQUEST_LEN]).unwrap_err();
        assert_eq!(error, BadMagic(0x2525_2525));
        assert_eq!(
            error.to_string(),
            "a request begins with 0x25252525 instead of NBD's 0x25609513"
        );
    }

    #[test]
    fn a_simple_reply_has_its_error_or_none() {
        assert_eq!(
            &simple_reply(COOKIE, Ok(())),
            b"\x67\x44\x66\x98\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08"
        );
        assert_eq!(
            &simple_reply(COOKIE, Err(Errno::Shutdown)),
            b"\x67\x44\x66\x98\x00\x00\x00\x6c\x01\x02\x03\x04\x05\x06\x07\x08"
        );
    }

    #[test]
    fn chunks_without_a_buffer() {
        assert_eq!(
            &none_chunk(COOKIE),
            b"\x66\x8e\x33\xef\x00\x01\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x00"
        );
        assert_eq!(
            &data_chunk(COOKIE, 0x1000, 512),
            b"\x66\x8e\x33\xef\x00\x01\x00\x01\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x02\x08\
              \x00\x00\x00\x00\x00\x00\x10\x00"
        );
    }

    #[test]
    fn an_error_chunk_is_appended_with_its_text() {
        let mut output = vec![0xaa];
        put_error_chunk(&mut output, COOKIE, Errno::Inval, "odd");
        assert_eq!(
            output,
            b"\xaa\x66\x8e\x33\xef\x00\x01\x80\x01\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x09\
              \x00\x00\x00\x16\x00\x03odd"
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut output = Vec::new();
        put_error_chunk(&mut output, 0, Errno::Io, &"\u{20ac}".repeat(2000));
        assert_eq!(output[16..20], (6 + 4095_u32).to_be_bytes());
        assert_eq!(output.len(), CHUNK_LEN + 6 + 4095);
    }

    #[test]
    fn a_status_chunk_counts_its_extents() {
        let mut output = vec![0xaa];
        let extents = [(4096, 0), (512, STATE_HOLE | STATE_ZERO)];
        put_status_chunk(&mut output, COOKIE, extents);
        assert_eq!(
            output,
            b"\xaa\x66\x8e\x33\xef\x00\x01\x00\x05\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x14\
              \x00\x00\x00\x01\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x03"
        );
    }

    #[test]
    fn a_status_chunk_is_bounded() {
        let mut output = Vec::new();
        put_status_chunk(&mut output, 0, std::iter::repeat((512, 0)));
        assert_eq!(output.len(), CHUNK_LEN + 4 + 8 * EXTENTS_MAX);
    }

    #[test]
    fn errors_have_the_numbers_of_the_protocol() {
        let numbers: Vec<u32> = Errno::ALL
            .iter()
            .map(|&errno| error_number(errno))
            .collect();
        assert_eq!(numbers, [1, 5, 12, 22, 28, 75, 95, 108]);
    }
}
