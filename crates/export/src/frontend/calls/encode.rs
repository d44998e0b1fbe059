//! Encodes replies.

use dashpot_engine::{Errno, Outcome};
use rustix::io::Errno as Number;
use zerocopy::IntoBytes;

use super::wire::Reply;
use crate::frontend::boundary::Request;
use crate::frontend::kernel::number;

/// Appends the reply to a request.
#[inline]
pub(super) fn put_head(heads: &mut Vec<u8>, request: &Request, outcome: Outcome) {
    let error = match outcome {
        Ok(()) => 0,
        // The shard is about to end while the call is held. The call must not succeed early, and the kernel
        // never lets a call on a file fail with ESHUTDOWN, so the call fails with EIO.
        Err(Errno::Shutdown) => Number::IO.raw_os_error(),
        Err(errno) => number(errno),
    };
    let reply = Reply {
        id: request.cookie,
        error: u64::from(error.unsigned_abs()),
    };
    heads.extend_from_slice(reply.as_bytes());
}
