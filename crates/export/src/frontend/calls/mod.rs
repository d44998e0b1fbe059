//! The frontend of system calls. Its clients are a program that dashpot starts, and the program's
//! descendants.
//!
//! A filter makes certain calls of the program wait (see `dashpot_sys::seccomp`). The filter needs no
//! privilege. Threads of this frontend receive the calls ([`kinds`]), and find the files that they act on
//! ([`files`]). A call on a file of a disk becomes a request of that disk, and the reply lets the call go on
//! or fail. All other calls go on at once. The disk has no store, because the kernel does the work of a call
//! after the reply. So dashpot does not learn when a call ends, and the latency that it counts is only the
//! delay before the kernel does the work. There are two exceptions: dashpot can sync a file itself first
//! ([`syncs`]), and do a part of a read or write itself instead of the kernel ([`short`]). Calls that reach a file in a way that dashpot cannot hold are only counted ([`counted`]).
//!
//! The threads are separate, and hand calls to the shard over a socket, because the shard must not wait for
//! `/proc`. A call's latency counts from the moment at which a thread received it, so it includes the look-up.
//! The layout of these messages is dashpot's own (see [`wire`]).

mod answers;
mod counted;
mod decode;
mod encode;
mod files;
mod jobs;
mod kinds;
mod lead;
mod looks;
mod mapped;
mod names;
mod receiver;
mod restarts;
mod sessions;
mod short;
mod subject;
mod syncs;
mod thread;
mod transport;
mod wire;

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};

use dashpot_engine::Outcome;
use dashpot_sys::seccomp::CallId;

pub use self::decode::decode;
pub use self::kinds::notified_calls;
pub(crate) use self::receiver::{Watched, follow};
use self::transport::Transport;
use self::wire::{MESSAGE, REPLY};
use super::boundary::{
    Arrival, CallWork, Decoded, Done, Frontend, ReceiveLimits, Request, SendLimits,
};
use crate::export::ExportInfo;

/// The calls of a program, with all its processes, on one disk.
#[derive(Debug)]
pub(crate) struct Session {
    transport: Transport,
}

impl Frontend for Session {
    fn receive(&mut self, into: &mut Vec<u8>) -> Arrival {
        self.transport.receive(into)
    }

    fn receive_limits(&self) -> ReceiveLimits {
        ReceiveLimits {
            usual: MESSAGES_PER_CALL * MESSAGE,
            short: MESSAGE,
        }
    }

    fn may_hold_request(&self, received: &[u8]) -> bool {
        received.len() >= MESSAGE
    }

    #[inline]
    fn decode(&mut self, received: &[u8], _: &ExportInfo) -> Decoded {
        decode(received)
    }

    #[inline]
    fn put_head(&self, heads: &mut Vec<u8>, request: &Request, outcome: Outcome) {
        encode::put_head(heads, request, outcome);
    }

    fn send(&mut self, bytes: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        Ok(self.transport.send(bytes))
    }

    fn begin(&mut self, request: &Request, work: CallWork, done: Done) -> Option<Done> {
        self.transport.begin(CallId(request.cookie), work, done)
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::of_replies(REPLY)
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }
}

/// The largest number of messages that the shard receives at once. Each further message in a batch delays the
/// messages before it.
const MESSAGES_PER_CALL: usize = 16;
