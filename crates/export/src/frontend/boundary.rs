//! The boundary between frontends and shards.
//!
//! A frontend knows one protocol and the transport that carries it. The frontend turns received bytes into
//! [`Request`]s, turns replies into bytes, and reads and writes its transport. A shard knows no protocol. The
//! shard decides when to read from a connection and when to send to it, how much the connection may hold, and
//! in which order replies leave. The shard also owns the buffers of received and unsent bytes, and calls the
//! engine and the stores.
//!
//! The transport need not be a stream of bytes. On a transport of messages, such as `/dev/fuse`, a call of
//! [`Frontend::receive`] appends whole messages with their payloads, and the shard provides the room (see
//! [`ReceiveLimits`]). A call of [`Frontend::send`] takes one reply (see [`SendLimits`]). On an io_uring, the
//! frontend turns completions into messages whose layout is its own. The frontend turns the head of each
//! reply into a command, and queues the command until [`Frontend::flush`].

use std::fmt::Debug;
use std::io::IoSlice;
use std::os::fd::AsFd;

use dashpot_engine::{CallNumber, Instant, Op, Outcome};

use crate::export::ExportInfo;
use crate::store::Extent;

/// A session: the connection of one client, in any protocol.
///
/// The shard polls the session's descriptor, which is readable when there is something to receive, and
/// writable when the shard may repeat a refused send.
pub(crate) trait Frontend: AsFd + Debug + Send {
    /// Appends received bytes to the spare capacity of `into`. Never waits.
    fn receive(&mut self, into: &mut Vec<u8>) -> Arrival;

    /// How much room the shard gives a call of [`Frontend::receive`].
    fn receive_limits(&self) -> ReceiveLimits;

    /// Whether `received` may begin with a whole request. If not, the shard receives more bytes before it
    /// decodes them.
    fn may_hold_request(&self, received: &[u8]) -> bool {
        !received.is_empty()
    }

    /// Decodes the first message in `received`, without consuming it. If the shard cannot admit the request
    /// now, it will decode the same bytes again later.
    fn decode(&mut self, received: &[u8], export: &ExportInfo) -> Decoded;

    /// Appends the head of the reply to a request. The data of a successful read is not part of the head: the
    /// shard sends the data after it.
    fn put_head(&self, heads: &mut Vec<u8>, request: &Request, outcome: Outcome);

    /// The whole reply to a question about extents. Neither the kernel nor a system call asks one.
    fn extents_reply(&self, _question: &ExtentQuestion, _extents: &[Extent]) -> Vec<u8> {
        Vec::new()
    }

    /// Offers bytes to the transport, which may accept only a part of them. Never waits.
    fn send(&mut self, bytes: &[IoSlice<'_>]) -> rustix::io::Result<usize>;

    /// How much one call of [`Frontend::send`] may carry.
    fn send_limits(&self) -> SendLimits;

    /// Begins the work that the frontend itself does for a [call](Operation::Call), and calls `done` when
    /// this work ends. If the frontend cannot do the work, gives `done` back uncalled.
    fn begin(&mut self, _request: &Request, _work: CallWork, done: Done) -> Option<Done> {
        Some(done)
    }

    /// Gives the kernel the replies that [`Frontend::send`] has only queued. The shard calls `flush` after
    /// its last send to this connection in a pass.
    fn flush(&mut self) -> rustix::io::Result<()> {
        Ok(())
    }

    /// Tells the session that the shard has ended the connection. Returns whether the session must stay,
    /// because the kernel will send it more requests. If the session must stay, this call fails the requests
    /// that the kernel is waiting for. After that, each call of [`Frontend::receive`] fails the requests that
    /// have arrived meanwhile, until a call returns [`Arrival::End`].
    fn fail_all(&mut self) -> bool {
        false
    }
}

/// A request of a client. The frontend has already checked that the operation's range, if it has one, is not
/// empty, is aligned and lies within the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client's id of the request. The reply carries this id.
    pub cookie: u64,
    /// The operation that the client asks for.
    pub operation: Operation,
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u32,
}

impl Request {
    /// The number of payload bytes that follow the request.
    pub fn payload(&self) -> u32 {
        match self.operation {
            Operation::Write { .. } => self.length,
            _ => 0,
        }
    }
}

/// The operations of the engine, with the details that a store needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads bytes.
    Read,
    /// Writes the payload.
    Write {
        /// Whether the write must be durable before the reply.
        fua: bool,
    },
    /// Makes earlier acknowledged writes durable.
    Flush,
    /// Frees the space that a range takes in the store.
    Trim {
        /// Whether the trim must be durable before the reply.
        fua: bool,
    },
    /// Makes a range read as zeroes.
    Zero {
        /// Whether the zeroes must be durable before the reply.
        fua: bool,
        /// Whether the range must stay allocated.
        no_hole: bool,
    },
    /// Asks the store to read a range into its cache.
    Cache,
    /// A system call of a program. The request has no payload and the reply has no data, because the kernel
    /// itself moves the bytes.
    Call(Op, Option<CallNumber>),
}

impl Operation {
    /// The corresponding operation of the engine, and whether it must be durable.
    pub(crate) fn for_engine(self) -> (Op, bool) {
        match self {
            Operation::Read => (Op::Read, false),
            Operation::Write { fua } => (Op::Write, fua),
            Operation::Flush => (Op::Flush, false),
            Operation::Trim { fua } => (Op::Trim, fua),
            Operation::Zero { fua, .. } => (Op::Zero, fua),
            Operation::Cache => (Op::Cache, false),
            Operation::Call(op, _) => (op, false),
        }
    }

    /// Whether the request changes the bytes of its range.
    pub(crate) fn changes_bytes(self) -> bool {
        matches!(
            self,
            Operation::Write { .. } | Operation::Trim { .. } | Operation::Zero { .. }
        )
    }

    /// The system call that the request is, if a program made it.
    pub(crate) fn call(self) -> Option<CallNumber> {
        match self {
            Operation::Call(_, call) => call,
            _ => None,
        }
    }
}

/// The work that a frontend does for a call before the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallWork {
    /// Syncs the file, as the call itself will do again.
    Sync,
    /// Does less of the call than was asked for, as the seed decides, and instead of the kernel.
    Short { seed: u64 },
}

/// Asks which parts of a range are allocated. The shard asks the store and answers at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentQuestion {
    /// The client's id of the question. The reply carries this id.
    pub cookie: u64,
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u32,
    /// The largest number of extents that the reply may have.
    pub limit: usize,
}

/// The function that tells the shard that the frontend's work for a request has ended, and whether it was done.
pub(crate) type Done = Box<dyn FnOnce(bool) + Send>;

/// The result of an attempt to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Something was received.
    Bytes,
    /// There is nothing to receive at the moment.
    Nothing,
    /// The transport is at its end, or broken.
    End,
}

/// The meaning of the first message in the received bytes. `taken` is the message's length without its
/// payload.
#[derive(Debug)]
pub enum Decoded {
    /// The message is not complete: the frontend needs more bytes.
    More,
    /// A request. [`Request::payload`] bytes follow the request. The payload may or may not have arrived yet.
    Request {
        request: Request,
        /// See [`Decoded`].
        taken: usize,
    },
    /// A [call](Operation::Call), which the frontend received at a moment in the past, and has looked into since.
    /// Its time counts from that moment.
    Call {
        /// The call.
        request: Request,
        /// When the frontend received the call.
        arrived: Instant,
        /// See [`Decoded`].
        taken: usize,
    },
    /// A question that the store answers and the engine never sees.
    Extents {
        question: ExtentQuestion,
        /// See [`Decoded`].
        taken: usize,
    },
    /// A message that the frontend itself has answered, for example with a refusal. The shard sends the
    /// reply, and discards the `skip` bytes that follow the message.
    Answered {
        reply: Vec<u8>,
        /// See [`Decoded`].
        taken: usize,
        /// How many bytes to discard.
        skip: u32,
    },
    /// The client no longer waits for the reply to one of its requests.
    Withdrawn {
        /// The client's id of the request.
        cookie: u64,
        /// See [`Decoded`].
        taken: usize,
    },
    /// A message that needs no reply.
    Ignored {
        /// See [`Decoded`].
        taken: usize,
    },
    /// The client says good-bye. The shard finishes the client's zios, and reads nothing more from it.
    Goodbye,
    /// The bytes are not a valid message, so the shard must drop the connection.
    Broken,
}

/// The reason that a shard cannot serve the kernel over a descriptor that was handed over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotServed {
    /// The descriptor is of the wrong kind for this mechanism.
    #[error("the descriptor that was handed over is no {0}")]
    WrongDescriptor(&'static str),
    /// The kernel has refused a step of the setup.
    #[error("{0}")]
    Refused(String),
    /// This build lacks the frontend.
    #[error("the daemon was built without {0}")]
    NotBuilt(&'static str),
}

/// How much room, in bytes, the shard gives a call of [`Frontend::receive`] if no bytes are left over from
/// the last call. A frontend that receives whole messages sets both fields to at least the length of its
/// longest message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveLimits {
    /// The usual room, in bytes.
    pub(crate) usual: usize,
    /// The room, in bytes, when the shard's connections already keep as many bytes as they may.
    pub(crate) short: usize,
}

impl ReceiveLimits {
    /// The limits of a stream of bytes.
    pub(crate) const STREAM: ReceiveLimits = ReceiveLimits {
        usual: 256 << 10,
        short: 8 << 10,
    };

    /// The limits of a transport whose longest message has this many bytes.
    pub(crate) const fn of_messages(longest: usize) -> ReceiveLimits {
        ReceiveLimits {
            usual: 2 * longest,
            short: longest,
        }
    }
}

/// How much one call of [`Frontend::send`] may carry. Larger limits raise throughput, but delay replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimits {
    /// The largest number of calls in a row before the shard serves other connections.
    pub(crate) calls: usize,
    /// The largest number of replies in one call.
    pub(crate) replies: usize,
    /// Once the replies for a call have this many bytes, the shard adds no more replies. A stream may carry a
    /// longer reply in parts. A transport of messages sets this limit above the length of its longest reply.
    pub(crate) bytes: usize,
}

impl SendLimits {
    /// The limits of a stream of bytes.
    pub(crate) const STREAM: SendLimits = SendLimits {
        calls: 1,
        replies: 32,
        bytes: 128 << 10,
    };

    /// The limits of a transport that takes one reply in each call, the longest of this many bytes.
    pub(crate) const fn of_replies(longest: usize) -> SendLimits {
        SendLimits {
            calls: SendLimits::STREAM.replies,
            replies: 1,
            bytes: longest + 1,
        }
    }
}
