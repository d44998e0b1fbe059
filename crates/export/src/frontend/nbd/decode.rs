//! Turns received bytes into requests.

use super::check::{Accepted, Refused, check};
use super::encode;
use super::handshake::Features;
use super::wire::{REQUEST_LEN, RequestHeader};
use crate::export::ExportInfo;
use crate::frontend::boundary::{Decoded, ExtentQuestion, Request};

/// Decodes the beginning of `received`.
#[inline]
pub(super) fn decode(received: &[u8], export: &ExportInfo, features: Features) -> Decoded {
    let Some(header) = received.first_chunk::<REQUEST_LEN>() else {
        return Decoded::More;
    };
    let Ok(header) = RequestHeader::parse(header) else {
        return Decoded::Broken;
    };
    match check(&header, export, features) {
        Ok(Accepted::Io(operation)) => Decoded::Request {
            request: Request {
                cookie: header.cookie,
                operation,
                offset: header.offset,
                length: header.length,
            },
            taken: REQUEST_LEN,
        },
        Ok(Accepted::BlockStatus { req_one }) => Decoded::Extents {
            question: block_status(&header, req_one),
            taken: REQUEST_LEN,
        },
        Ok(Accepted::Disconnect) => Decoded::Goodbye,
        Err(refused) => refuse(&header, refused, features),
    }
}

fn block_status(header: &RequestHeader, req_one: bool) -> ExtentQuestion {
    ExtentQuestion {
        cookie: header.cookie,
        offset: header.offset,
        length: header.length,
        limit: if req_one { 1 } else { EXTENTS_PER_REPLY },
    }
}

fn refuse(header: &RequestHeader, refused: Refused, features: Features) -> Decoded {
    match refused {
        Refused::Reply {
            errno,
            reason,
            payload,
        } => Decoded::Answered {
            reply: encode::refusal(header.cookie, errno, reason, features),
            taken: REQUEST_LEN,
            skip: payload,
        },
        Refused::Drop => Decoded::Broken,
    }
}

/// The largest number of extents in a reply. The number is small because a store in a file must ask the file
/// system for each extent.
const EXTENTS_PER_REPLY: usize = 1024;

#[cfg(test)]
mod tests {
    use super::decode;
    use crate::export::{ExportInfo, Power};
    use crate::frontend::boundary::{Decoded, Operation};
    use crate::frontend::nbd::client::encode;
    use crate::frontend::nbd::handshake::Features;
    use crate::frontend::nbd::wire::{REQUEST_LEN, RequestHeader, command};

    fn export() -> ExportInfo {
        ExportInfo {
            name: "a".into(),
            description: String::new(),
            size: 1 << 20,
            block: 1,
            preferred: 1,
            read_only: false,
            power: Power::default(),
        }
    }

    fn bytes(command: u16, length: u32) -> Vec<u8> {
        let header = RequestHeader {
            flags: 0,
            command,
            cookie: 7,
            offset: 512,
            length,
        };
        encode(&header).to_vec()
    }

    fn decoded(bytes: &[u8]) -> Decoded {
        decode(bytes, &export(), Features::default())
    }

    #[test]
    fn a_part_of_a_header_wants_more() {
        let whole = bytes(command::READ, 10);
        assert!(matches!(decoded(&whole[..REQUEST_LEN - 1]), Decoded::More));
        assert!(matches!(decoded(&[]), Decoded::More));
    }

    #[test]
    fn a_write_is_decoded_before_its_payload_is_there() {
        let Decoded::Request { request, taken } = decoded(&bytes(command::WRITE, 10)) else {
            panic!("no request");
        };
        let fua = false;
        assert_eq!(request.operation, Operation::Write { fua });
        assert_eq!(
            (request.cookie, request.offset, request.length),
            (7, 512, 10)
        );
        assert_eq!((request.payload(), taken), (10, REQUEST_LEN));
    }

    #[test]
    fn a_refused_write_is_answered_and_its_payload_skipped() {
        let Decoded::Answered { reply, taken, skip } = decoded(&bytes(command::WRITE, 2 << 20))
        else {
            panic!("no answer");
        };
        assert_eq!((taken, skip), (REQUEST_LEN, 2 << 20));
        assert_eq!(reply[4..8], 28_u32.to_be_bytes(), "ENOSPC");
    }

    #[test]
    fn good_byes_and_nonsense_are_told_apart() {
        assert!(matches!(
            decoded(&bytes(command::DISC, 0)),
            Decoded::Goodbye
        ));
        assert!(matches!(decoded(&[1; REQUEST_LEN]), Decoded::Broken));
        assert!(matches!(
            decoded(&bytes(command::WRITE, u32::MAX)),
            Decoded::Broken
        ));
    }
}
