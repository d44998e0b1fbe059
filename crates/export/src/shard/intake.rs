//! Intake: the queue of connections to read, the shard's receive buffers, and for each connection the
//! received bytes that the shard has not taken yet.

use std::collections::VecDeque;
use std::ops::Range;

use dashpot_engine::{Duration, Instant};

use crate::frontend::boundary::{ReceiveLimits, Request};

/// The intake of a shard.
#[derive(Debug, Default)]
pub(super) struct Intake {
    /// The places of the connections to read in a later pass.
    queue: VecDeque<usize>,
    spare: Vec<Vec<u8>>,
}

impl Intake {
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues a connection to be read in a later pass.
    pub(super) fn push(&mut self, at: usize, inlet: &mut Inlet) {
        if !std::mem::replace(&mut inlet.queued, true) {
            self.queue.push_back(at);
        }
    }

    /// Removes the first connection from the queue. The shard reads this connection next. The caller must
    /// then call [`Inlet::leave_queue`], so that the connection can be queued again.
    pub(super) fn pop(&mut self) -> Option<usize> {
        self.queue.pop_front()
    }

    /// A buffer to receive into. The caller must ask for a `short` one while connections already keep as many
    /// bytes as they may. All frontends use the same buffers, so a buffer may be up to twice as long as this
    /// frontend asks for.
    pub(super) fn buffer(&mut self, limits: ReceiveLimits, short: bool) -> Vec<u8> {
        if short {
            return Vec::with_capacity(limits.short);
        }
        let fits = |bytes: &Vec<u8>| (limits.usual..2 * limits.usual).contains(&bytes.capacity());
        if let Some(at) = self.spare.iter().rposition(fits) {
            return self.spare.swap_remove(at);
        }
        if self.spare.len() == RECEIVE_BUFFERS {
            // None of the kept buffers fits. Perhaps the connections that could use the kept buffers are
            // gone, so one of these buffers is dropped.
            self.spare.swap_remove(0);
        }
        Vec::with_capacity(limits.usual)
    }

    /// Takes a buffer back.
    pub(super) fn give(&mut self, mut bytes: Vec<u8>) {
        let is_long = bytes.capacity() >= ReceiveLimits::STREAM.usual;
        if self.spare.len() < RECEIVE_BUFFERS && is_long {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

/// The bytes that the shard has received from a connection and not yet taken.
#[derive(Debug)]
pub(super) struct Inlet {
    next: Next,
    received: Received,
    /// Whether the connection is in the queue.
    queued: bool,
}

/// The request or the payload to which the next bytes on the connection belong.
#[derive(Debug)]
enum Next {
    Request,
    /// More payload of a write.
    Payload(Incoming),
    /// The rest of a refused request's payload. The shard must discard this many more bytes.
    Skip(u32),
}

/// A write whose payload has not arrived in full.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) request: Request,
    /// When the shard took the write's header.
    pub(super) arrived: Instant,
    /// The part of the payload that has arrived. The buffer may have room for more. Bytes after the payload
    /// belong to the next request.
    pub(super) payload: Vec<u8>,
    /// When the client could first send the payload. If the host then stops the shard, [`Inlet::forgive`]
    /// makes this time later.
    since: Instant,
}

impl Incoming {
    pub(super) fn since(&self) -> Instant {
        self.since
    }
}

/// A buffer with received bytes. The shard has taken the bytes before `start`.
#[derive(Debug, Default)]
pub(super) struct Received {
    bytes: Vec<u8>,
    start: usize,
}

impl Received {
    pub(super) fn new(bytes: Vec<u8>) -> Received {
        Received { bytes, start: 0 }
    }

    /// The bytes that the shard has not taken yet.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// All bytes, including the bytes that the shard has taken.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the next bytes. Returns their place in the buffer.
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Range<usize> {
        let place = self.start..self.start + count;
        self.start = place.end;
        place
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Inlet {
    pub(super) fn new(left_over: Vec<u8>) -> Inlet {
        Inlet {
            next: Next::Request,
            received: Received::new(left_over),
            queued: false,
        }
    }

    /// How many bytes of memory the inlet takes. The payload of a write does not count.
    #[inline]
    pub(super) fn keeps(&self) -> usize {
        self.received.bytes.len()
    }

    pub(super) fn rest(&self) -> &[u8] {
        self.received.rest()
    }

    pub(super) fn is_queued(&self) -> bool {
        self.queued
    }

    pub(super) fn leave_queue(&mut self) {
        self.queued = false;
    }

    #[inline]
    pub(super) fn take_received(&mut self) -> Received {
        std::mem::take(&mut self.received)
    }

    pub(super) fn put_received(&mut self, received: Received) {
        self.received = received;
    }

    /// Discards the next `count` bytes, whether they have arrived already or not.
    pub(super) fn skip(&mut self, count: u32) {
        if count > 0 {
            self.next = Next::Skip(count);
        }
    }

    /// Discards the received bytes that must be skipped. Returns false if more bytes must be skipped than
    /// have arrived.
    #[inline]
    pub(super) fn skip_on(&mut self, received: &mut Received) -> bool {
        let Next::Skip(left) = &mut self.next else {
            return true;
        };
        let skipped = received.rest().len().min(*left as usize);
        received.take(skipped);
        *left -= skipped as u32;
        if *left > 0 {
            return false;
        }
        self.next = Next::Request;
        true
    }

    /// Begins to collect the payload of a write.
    pub(super) fn collect(&mut self, request: Request, payload: Vec<u8>, now: Instant) {
        self.next = Next::Payload(Incoming {
            request,
            arrived: now,
            payload,
            since: now,
        });
    }

    #[inline]
    pub(super) fn is_collecting(&self) -> bool {
        matches!(self.next, Next::Payload(_))
    }

    pub(super) fn payload_mut(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.next {
            Next::Payload(incoming) => Some(&mut incoming.payload),
            _ => None,
        }
    }

    /// The write whose payload has not arrived in full, if there is one.
    pub(super) fn incoming(&self) -> Option<&Incoming> {
        match &self.next {
            Next::Payload(incoming) => Some(incoming),
            _ => None,
        }
    }

    /// Gives the client more time to send the payload: the time that the shard `missed` because the host had
    /// stopped it.
    pub(super) fn forgive(&mut self, missed: Duration) {
        if let Next::Payload(incoming) = &mut self.next {
            incoming.since = incoming.since + missed;
        }
    }

    /// Takes the write if its whole payload has arrived. The bytes after the payload stay in the inlet.
    pub(super) fn take_collected(&mut self) -> Option<Incoming> {
        let length = self.incoming()?.request.length as usize;
        if self.incoming()?.payload.len() < length {
            return None;
        }
        let Next::Payload(mut incoming) = std::mem::replace(&mut self.next, Next::Request) else {
            return None;
        };
        self.received = Received::new(incoming.payload.split_off(length));
        Some(incoming)
    }

    /// Takes the write whose payload has not arrived in full. The inlet then expects a new request.
    pub(super) fn abandon(&mut self) -> Option<Incoming> {
        match std::mem::replace(&mut self.next, Next::Request) {
            Next::Payload(incoming) => Some(incoming),
            _ => None,
        }
    }
}

/// How many unused receive buffers the shard keeps.
const RECEIVE_BUFFERS: usize = 16;

#[cfg(test)]
mod tests {
    use super::{Inlet, Intake, Received};
    use crate::frontend::boundary::{Operation, ReceiveLimits, Request};
    use dashpot_engine::Instant;

    fn write(length: u32) -> Request {
        Request {
            cookie: 0,
            operation: Operation::Write { fua: false },
            offset: 0,
            length,
        }
    }

    #[test]
    fn bytes_to_skip_may_come_in_pieces() {
        let mut inlet = Inlet::new(Vec::new());
        inlet.skip(5);
        let mut first = Received::new(vec![1; 3]);
        assert!(!inlet.skip_on(&mut first));
        assert!(first.rest().is_empty());
        let mut second = Received::new(vec![1, 1, 2, 2]);
        assert!(inlet.skip_on(&mut second));
        assert_eq!(second.rest(), [2, 2]);
        assert!(inlet.skip_on(&mut second), "there is no more to skip");
        assert_eq!(second.rest(), [2, 2]);
    }

    #[test]
    fn bytes_behind_a_payload_are_the_next_request() {
        let mut inlet = Inlet::new(Vec::new());
        inlet.collect(write(4), vec![1, 1], Instant::ZERO);
        assert!(inlet.take_collected().is_none());
        inlet.payload_mut().unwrap().extend([1, 1, 2, 2, 2]);
        let incoming = inlet.take_collected().unwrap();
        assert_eq!(incoming.payload, [1; 4]);
        assert_eq!(inlet.rest(), [2; 3]);
        assert!(!inlet.is_collecting());
    }

    #[test]
    fn buffers_are_used_again_by_those_that_want_their_length() {
        let (mut intake, stream) = (Intake::default(), ReceiveLimits::STREAM);
        let messages = ReceiveLimits {
            usual: 8 * stream.usual,
            ..stream
        };
        let (short, long) = (intake.buffer(stream, false), intake.buffer(messages, false));
        let places = [short.as_ptr(), long.as_ptr()];
        intake.give(long);
        intake.give(short);
        let (long, short) = (intake.buffer(messages, false), intake.buffer(stream, false));
        assert_eq!([short.as_ptr(), long.as_ptr()], places);
        assert_eq!(intake.buffer(stream, true).capacity(), stream.short);
    }

    #[test]
    fn a_connection_waits_for_one_turn_at_a_time() {
        let (mut intake, mut inlet) = (Intake::default(), Inlet::new(Vec::new()));
        intake.push(7, &mut inlet);
        intake.push(7, &mut inlet);
        assert_eq!((intake.pop(), intake.pop()), (Some(7), None));
        inlet.leave_queue();
        intake.push(7, &mut inlet);
        assert_eq!(intake.pop(), Some(7));
    }
}
