//! Encodes replies.

use dashpot_engine::Outcome;
use rustix::io::Errno;
use zerocopy::IntoBytes;

use super::wire::Reply;
use crate::frontend::boundary::{Operation, Request};
use crate::frontend::kernel::number;

/// Appends the reply to a request, without the data of a successful read.
#[inline]
pub(super) fn put_head(heads: &mut Vec<u8>, request: &Request, outcome: Outcome) {
    let result = match (outcome, request.operation) {
        (Err(errno), _) => -number(errno),
        (Ok(()), Operation::Read | Operation::Write { .. }) => request.length.cast_signed(),
        (Ok(()), _) => 0,
    };
    let tag = request.cookie as u32;
    heads.extend_from_slice(Reply { tag, result }.as_bytes());
}

/// The reply to a refused request.
pub(super) fn refusal(tag: u32, errno: Errno) -> Vec<u8> {
    let result = -errno.raw_os_error();
    Reply { tag, result }.as_bytes().to_vec()
}
