//! Encodes replies.

use dashpot_engine::Outcome;
use polyfuse_kernel::{fuse_out_header, fuse_write_out};
use rustix::io::Errno;
use zerocopy::{Immutable, IntoBytes};

use crate::frontend::boundary::{Operation, Request};
use crate::frontend::kernel::number;

/// Appends the reply to a request, without the data of a successful read.
#[inline]
pub(super) fn put_head(heads: &mut Vec<u8>, request: &Request, outcome: Outcome) {
    let Request { cookie, length, .. } = *request;
    match (outcome, request.operation) {
        (Err(errno), _) => put_header(heads, cookie, -number(errno), 0),
        (Ok(()), Operation::Read) => put_header(heads, cookie, 0, length),
        (Ok(()), Operation::Write { .. }) => put(heads, cookie, &written(length)),
        (Ok(()), _) => put_header(heads, cookie, 0, 0),
    }
}

/// The reply to a message that is answered at once with a result.
pub(super) fn reply(cookie: u64, answer: &(impl IntoBytes + Immutable)) -> Vec<u8> {
    let mut reply = Vec::new();
    put(&mut reply, cookie, answer);
    reply
}

/// The reply to a message that succeeds without a result.
pub(super) fn done(cookie: u64) -> Vec<u8> {
    let mut reply = Vec::new();
    put_header(&mut reply, cookie, 0, 0);
    reply
}

/// The reply to a refused message.
pub(super) fn refusal(cookie: u64, errno: Errno) -> Vec<u8> {
    let mut reply = Vec::new();
    put_header(&mut reply, cookie, -errno.raw_os_error(), 0);
    reply
}

fn written(length: u32) -> fuse_write_out {
    fuse_write_out {
        size: length,
        padding: 0,
    }
}

fn put(bytes: &mut Vec<u8>, cookie: u64, answer: &(impl IntoBytes + Immutable)) {
    let answer = answer.as_bytes();
    put_header(bytes, cookie, 0, answer.len() as u32);
    bytes.extend_from_slice(answer);
}

fn put_header(bytes: &mut Vec<u8>, unique: u64, error: i32, length: u32) {
    let header = fuse_out_header {
        len: size_of::<fuse_out_header>() as u32 + length,
        error,
        unique,
    };
    bytes.extend_from_slice(header.as_bytes());
}
