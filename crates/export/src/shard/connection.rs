//! One client connection in its transmission phase: what is being received, what is to be sent.

use std::collections::VecDeque;

use dashpot_engine::{ClientId, DiskId, Instant, ZioId};

use crate::connection_limit::Permit;
use crate::frontend::Session;
use crate::frontend::boundary::Request;
use crate::shard::chunk::Chunk;
use crate::shard::slots::ZioList;

#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) session: Session,
    pub(crate) disk: DiskId,
    pub(crate) client: ClientId,
    pub(crate) intake: Intake,
    /// Received bytes that have not been looked at.
    pub(crate) received: Received,
    /// Replies that are ready, in the order in which they became so.
    pub(crate) ready: VecDeque<Reply>,
    /// How many of them are to requests that became no zio, and their bytes.
    pub(crate) notes: u32,
    pub(crate) note_bytes: usize,
    /// How many of those there may be before it is not read.
    pub(crate) notes_max: u32,
    /// The last chunk, if the transport has not accepted all of it.
    pub(crate) unsent: Chunk,
    /// Its zios that have not been replied to.
    pub(crate) zios: ZioList,
    /// It has asked for the end: nothing more is read, and it closes after its last reply.
    pub(crate) closing: bool,
    /// After that, its peer has gone: what it asked for is finished, and nobody is told.
    pub(crate) deaf: bool,
    /// The transport takes no more for now.
    pub(crate) blocked: bool,
    /// The shard's memory bound keeps it from being read.
    pub(crate) stalled: bool,
    /// Then, the bytes that its next request would make the shard hold.
    pub(crate) wanted: u64,
    /// Whether it waits for its turn to be read on, and to be sent to.
    pub(crate) read_queued: bool,
    pub(crate) send_queued: bool,
    /// What it [keeps](Conn::keeps), as the shard has counted it last.
    pub(crate) kept: u64,
    /// Its place among all connections.
    _permit: Option<Permit>,
}

/// What comes next from the client.
#[derive(Debug)]
pub(crate) enum Intake {
    /// A request.
    Request,
    /// The rest of a write's payload.
    Payload {
        request: Request,
        arrived: Instant,
        /// Since when its client has had the time to send it.
        since: Instant,
        bytes: Vec<u8>,
    },
    /// The payload of a request that was refused.
    Drain { left: u32 },
}

/// A buffer with received bytes, of which those before `start` have been looked at.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    pub(crate) start: usize,
}

impl Received {
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// A reply on its way.
#[derive(Debug)]
pub(crate) enum Reply {
    /// To a zio; `sent` bytes of a read's data have been offered to the transport already.
    Zio { id: ZioId, sent: u32 },
    /// To a request that became no zio.
    Bytes(Vec<u8>),
}

impl Conn {
    pub(crate) fn new(
        session: Session,
        disk: DiskId,
        client: ClientId,
        permit: Option<Permit>,
    ) -> Conn {
        Conn {
            session,
            disk,
            client,
            intake: Intake::Request,
            received: Received::default(),
            ready: VecDeque::new(),
            notes: 0,
            note_bytes: 0,
            notes_max: NOTES_MAX,
            unsent: Chunk::default(),
            zios: ZioList::default(),
            closing: false,
            deaf: false,
            blocked: false,
            stalled: false,
            wanted: 0,
            read_queued: false,
            send_queued: false,
            kept: 0,
            _permit: permit,
        }
    }

    /// Whether it may be read: not while it does not take its replies.
    pub(crate) fn wants_input(&self) -> bool {
        !self.closing && !self.blocked && !self.stalled && self.notes < self.notes_max
    }

    /// The bytes that it makes its shard keep beside those of its zios: received ones that have not
    /// been looked at, and replies that have not been taken.
    pub(crate) fn keeps(&self) -> u64 {
        (self.received.bytes.len() + self.note_bytes + self.unsent.keeps()) as u64
    }

    /// Whether everything that it asked for has been replied to and sent.
    pub(crate) fn is_finished(&self) -> bool {
        self.closing && self.zios.is_empty() && self.ready.is_empty() && self.unsent.is_empty()
    }
}

/// Replies that hold bytes of their own, above which a connection is not read.
pub(crate) const NOTES_MAX: u32 = 16;
