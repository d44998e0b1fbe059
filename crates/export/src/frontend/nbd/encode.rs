//! Turns replies into bytes.

use dashpot_engine::{Errno, Outcome};

use super::handshake::Features;
use super::wire::{self, STATE_HOLE, STATE_ZERO};
use crate::frontend::boundary::{Operation, Request};
use crate::store::Extent;

/// Appends the reply to a request, but not the data of a successful read.
#[inline]
pub(super) fn put_head(
    heads: &mut Vec<u8>,
    request: &Request,
    outcome: Outcome,
    features: Features,
) {
    let cookie = request.cookie;
    if !features.structured {
        heads.extend_from_slice(&wire::simple_reply(cookie, outcome));
        return;
    }
    match (outcome, request.operation) {
        (Ok(()), Operation::Read) => {
            heads.extend_from_slice(&wire::data_chunk(cookie, request.offset, request.length));
        }
        (Ok(()), _) => heads.extend_from_slice(&wire::none_chunk(cookie)),
        (Err(errno), _) => wire::put_error_chunk(heads, cookie, errno, ""),
    }
}

/// The reply to a refused request. A structured reply includes the reason, for which a simple reply has no
/// room.
pub(super) fn refusal(cookie: u64, errno: Errno, reason: &str, features: Features) -> Vec<u8> {
    if !features.structured {
        return wire::simple_reply(cookie, Err(errno)).to_vec();
    }
    let mut reply = Vec::new();
    wire::put_error_chunk(&mut reply, cookie, errno, reason);
    reply
}

/// The reply to a request for block status.
pub(super) fn block_status(cookie: u64, extents: &[Extent]) -> Vec<u8> {
    let state = |hole| if hole { STATE_HOLE | STATE_ZERO } else { 0 };
    let pairs = extents
        .iter()
        .map(|extent| (extent.length as u32, state(extent.hole)));
    let mut reply = Vec::new();
    wire::put_status_chunk(&mut reply, cookie, pairs);
    reply
}

#[cfg(test)]
mod tests {
    use super::put_head;
    use crate::frontend::boundary::{Operation, Request};
    use crate::frontend::nbd::handshake::Features;
    use crate::frontend::nbd::wire;
    use dashpot_engine::{Errno, Outcome};

    fn head(operation: Operation, outcome: Outcome, structured: bool) -> Vec<u8> {
        let request = Request {
            cookie: 7,
            operation,
            offset: 4096,
            length: 512,
        };
        let features = Features {
            structured,
            base_allocation: false,
        };
        let mut heads = Vec::new();
        put_head(&mut heads, &request, outcome, features);
        heads
    }

    #[test]
    fn a_head_follows_what_was_negotiated_and_how_it_ended() {
        let (read, flush) = (Operation::Read, Operation::Flush);
        assert_eq!(head(read, Ok(()), true), wire::data_chunk(7, 4096, 512));
        assert_eq!(head(flush, Ok(()), true), wire::none_chunk(7));
        let failed = Err(Errno::Io);
        let mut error = Vec::new();
        wire::put_error_chunk(&mut error, 7, Errno::Io, "");
        assert_eq!(head(read, failed, true), error);
        for outcome in [Ok(()), failed] {
            assert_eq!(head(read, outcome, false), wire::simple_reply(7, outcome));
            assert_eq!(head(flush, outcome, false), wire::simple_reply(7, outcome));
        }
    }
}
