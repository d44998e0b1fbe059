//! The boundary between frontends and shards.
//!
//! A frontend knows one protocol and the transport on which it is spoken. It turns received bytes
//! into [`Request`]s and replies into bytes, and it reads and writes its transport. A shard knows no
//! protocol: it decides when a connection is read and sent to, how much it may hold, and in which
//! order replies leave; it keeps the bytes, asks the engine and the stores.
//!
//! The transport need not be a stream of bytes. On one of messages, as `/dev/fuse` is, a call of
//! [`Frontend::receive`] appends whole messages with their payloads, and a call of
//! [`Frontend::send`] takes one reply (see [`SendLimits`]). The frontend of a ring appends what its
//! completions say, as messages of its own, and takes a reply's head as the order to complete.

use std::io::IoSlice;
use std::os::fd::AsFd;

use dashpot_engine::{Op, Outcome};

use crate::export::ExportInfo;
use crate::store::Extent;

/// The connection of one client, in whatever protocol it speaks.
///
/// The descriptor is the one that a shard polls: readable when there is something to receive,
/// writable when a send that was refused may be tried again.
pub(crate) trait Frontend: AsFd {
    /// Appends the bytes that the transport has to the spare capacity of `into`. Never waits.
    fn receive(&mut self, into: &mut Vec<u8>) -> Arrival;

    /// Whether `received` may begin with a request, so that decoding it is worth a try before more
    /// is received.
    fn may_hold_request(&self, received: &[u8]) -> bool;

    /// Decodes the beginning of `received`, and takes nothing: a shard that cannot admit a request now
    /// has it decoded again later.
    fn decode(&mut self, received: &[u8], export: &ExportInfo) -> Decoded;

    /// Appends the reply to a request, up to the data of a read that has succeeded: a shard sends
    /// that behind it.
    fn put_head(&self, heads: &mut Vec<u8>, request: &Request, outcome: Outcome);

    /// The whole reply to a question for extents.
    fn extents_reply(&self, question: &ExtentQuestion, extents: &[Extent]) -> Vec<u8>;

    /// Offers bytes to the transport, which may accept a part of them. Never waits.
    fn send(&mut self, bytes: &[IoSlice<'_>]) -> rustix::io::Result<usize>;

    /// How much one call of [`Frontend::send`] may carry.
    fn send_limits(&self) -> SendLimits;
}

/// A request of a client. The frontend has checked it: the range of an operation that has one is
/// not empty, is aligned and lies within the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The client's name for it, which its reply carries.
    pub(crate) cookie: u64,
    pub(crate) operation: Operation,
    /// First byte.
    pub(crate) offset: u64,
    /// Number of bytes.
    pub(crate) length: u32,
}

impl Request {
    /// The bytes of payload that follow it.
    pub(crate) fn payload(&self) -> u32 {
        match self.operation {
            Operation::Write { .. } => self.length,
            _ => 0,
        }
    }
}

/// The operations that the engine knows, with what a store must know besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads bytes.
    Read,
    /// Writes the payload.
    Write {
        /// Whether to be durable before the reply.
        fua: bool,
    },
    /// Makes durable what was acknowledged before.
    Flush,
    /// Gives a range back.
    Trim {
        /// Whether to be durable before the reply.
        fua: bool,
    },
    /// Makes a range read as zeroes.
    Zero {
        /// Whether to be durable before the reply.
        fua: bool,
        /// Whether the range must stay allocated.
        no_hole: bool,
    },
    /// Asks for a range to be read ahead.
    Cache,
}

impl Operation {
    /// The engine's word for it, and whether it asks to be durable.
    pub(crate) fn for_engine(self) -> (Op, bool) {
        match self {
            Operation::Read => (Op::Read, false),
            Operation::Write { fua } => (Op::Write, fua),
            Operation::Flush => (Op::Flush, false),
            Operation::Trim { fua } => (Op::Trim, fua),
            Operation::Zero { fua, .. } => (Op::Zero, fua),
            Operation::Cache => (Op::Cache, false),
        }
    }
}

/// Asks which parts of a range are allocated. A shard answers at once, from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtentQuestion {
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// The most extents that the reply may have.
    pub(crate) limit: usize,
}

/// The result of an attempt to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Something was received.
    Bytes,
    /// There is nothing for now.
    Nothing,
    /// The transport is at its end, or broken.
    End,
}

/// The beginning of received bytes. `taken` counts the bytes that it takes, without a payload.
#[derive(Debug)]
pub(crate) enum Decoded {
    /// A part of something: there must be more bytes first.
    More,
    /// A request. [`Request::payload`] bytes follow it, here already or still on their way.
    Request { request: Request, taken: usize },
    /// A question that the store answers, and not the engine.
    Extents {
        question: ExtentQuestion,
        taken: usize,
    },
    /// A message that the frontend has answered by itself, for example by refusing it. A shard sends
    /// the reply, and throws away the `skip` bytes that follow the message.
    Answered {
        reply: Vec<u8>,
        taken: usize,
        skip: u32,
    },
    /// The client has said good-bye: the shard finishes its zios, and reads no more.
    Goodbye,
    /// Nonsense: the connection can only be dropped.
    Broken,
}

/// How much one call of [`Frontend::send`] may carry. A larger batch buys throughput with lateness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimits {
    /// The most replies.
    pub(crate) replies: usize,
    /// The bytes after which no reply is added. A stream may carry a longer reply in parts; a
    /// transport of messages sets this above its longest reply.
    pub(crate) bytes: usize,
}

impl SendLimits {
    /// Those of a stream of bytes.
    pub(crate) const STREAM: SendLimits = SendLimits {
        replies: 32,
        bytes: 128 << 10,
    };
}
