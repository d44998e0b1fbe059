//! Requests: out of a connection's bytes, checked, and into the engine.

use dashpot_engine::{DiskId, Input, Instant, Zio, ZioId};

use crate::frontend::boundary::{Arrival, Decoded, ExtentQuestion, Frontend, Operation, Request};
use crate::shard::Shard;
use crate::shard::connection::{Intake, NOTES_MAX, Received, Reply};
use crate::shard::slots::Slot;
use crate::store::Extent;

impl Shard {
    /// Reads what a connection has sent, and looks at as many requests as one pass may.
    pub(crate) fn receive(&mut self, at: usize) {
        let Some(conn) = self.conn(at) else {
            return;
        };
        match conn.intake {
            Intake::Payload { .. } => self.receive_payload(at),
            Intake::Request | Intake::Drain { .. } => self.receive_requests(at),
        }
    }

    /// Goes on with the first `count` of the connections that have more requests received than one
    /// pass takes.
    pub(crate) fn read_on(&mut self, count: usize) {
        for _ in 0..count {
            let Some(at) = self.to_read.pop_front() else {
                return;
            };
            if let Some(conn) = self.conn(at) {
                conn.read_queued = false;
                if conn.wants_input() && conn.session.may_hold_request(conn.received.rest()) {
                    self.receive(at);
                }
            }
        }
    }

    pub(crate) fn queue_read(&mut self, at: usize) {
        if let Some(conn) = self.conn(at)
            && !conn.read_queued
        {
            conn.read_queued = true;
            self.to_read.push_back(at);
        }
    }

    fn receive_requests(&mut self, at: usize) {
        let Some(conn) = self.conn(at) else {
            return;
        };
        let mut received = std::mem::take(&mut conn.received);
        if !conn.session.may_hold_request(received.rest()) && !self.fill_received(at, &mut received)
        {
            return;
        }
        for _ in 0..REQUESTS_PER_PASS {
            if !self.take_request(at, &mut received) {
                break;
            }
        }
        self.copy_writes(&received.bytes);
        self.put_back(at, received);
    }

    /// Adds what the socket has to a part of a request; false if there was nothing.
    fn fill_received(&mut self, at: usize, received: &mut Received) -> bool {
        let mut bytes = self.receive_buffer();
        bytes.extend_from_slice(received.rest());
        let Some(conn) = self.conn(at) else {
            return false;
        };
        match conn.session.receive(&mut bytes) {
            Arrival::Bytes => {}
            Arrival::Nothing => {
                self.put_back(at, Received { bytes, start: 0 });
                return false;
            }
            Arrival::End => {
                self.hang_up(at);
                return false;
            }
        }
        self.read_clock();
        *received = Received { bytes, start: 0 };
        true
    }

    /// A buffer to receive into: a short one while connections keep as much as they may.
    fn receive_buffer(&mut self) -> Vec<u8> {
        if self.keeps_too_much() {
            return Vec::with_capacity(RECEIVE_SHORT);
        }
        let mut bytes = self.receive_buffers.pop().unwrap_or_default();
        bytes.reserve_exact(RECEIVE_LENGTH);
        bytes
    }

    /// Keeps the rest for the next pass: the whole buffer if there are requests in it, otherwise
    /// a copy of the few bytes that begin one.
    fn put_back(&mut self, at: usize, received: Received) {
        let Some(conn) = self.conn(at) else {
            return;
        };
        if conn.session.may_hold_request(received.rest()) && !conn.closing {
            conn.received = received;
            self.reckon(at);
            self.queue_read(at);
            return;
        }
        conn.received = Received {
            bytes: received.rest().to_vec(),
            start: 0,
        };
        self.reckon(at);
        self.keep_receive_buffer(received.bytes);
    }

    pub(crate) fn keep_receive_buffer(&mut self, mut bytes: Vec<u8>) {
        if self.receive_buffers.len() < RECEIVE_BUFFERS && bytes.capacity() >= RECEIVE_LENGTH {
            bytes.clear();
            self.receive_buffers.push(bytes);
        }
    }

    /// Looks at one request; false if there is none to look at, or none that may be.
    fn take_request(&mut self, at: usize, received: &mut Received) -> bool {
        let Some(conn) = self.conns.get_mut(at).and_then(Option::as_mut) else {
            return false;
        };
        if let Intake::Drain { left } = &mut conn.intake {
            let drained = received.rest().len().min(*left as usize);
            received.start += drained;
            *left -= drained as u32;
            if *left > 0 {
                return false;
            }
            conn.intake = Intake::Request;
        }
        let export = &self.disks[conn.disk.0 as usize].export;
        match conn.session.decode(received.rest(), export) {
            Decoded::Request { request, taken } => self.accept(at, request, taken, received),
            Decoded::Extents { question, taken } => {
                if !self.admits(at, 0) {
                    return false;
                }
                received.start += taken;
                self.reply_extents(at, &question)
            }
            Decoded::Answered { reply, taken, skip } => {
                received.start += taken;
                if skip > 0 {
                    conn.intake = Intake::Drain { left: skip };
                }
                self.note(at, reply)
            }
            Decoded::More => false,
            Decoded::Goodbye => {
                self.disconnect(at);
                false
            }
            Decoded::Broken => {
                self.hang_up(at);
                false
            }
        }
    }

    /// Whether a connection may have one more request, which makes the shard hold so many bytes. If
    /// not, the connection stalls.
    fn admits(&mut self, at: usize, holds: u64) -> bool {
        let Some(conn) = self.conns[at].as_ref() else {
            return false;
        };
        let admits = self.has_room(conn, holds);
        if !admits {
            self.stall(at, holds);
        }
        admits
    }

    /// Takes a request whose header is there; false if it may not be taken, or if its payload is yet
    /// to come.
    fn accept(
        &mut self,
        at: usize,
        request: Request,
        taken: usize,
        received: &mut Received,
    ) -> bool {
        let Some(conn) = self.conn(at) else {
            return false;
        };
        let disk = conn.disk;
        if !self.admits(at, self.holds(disk, &request)) {
            return false;
        }
        received.start += taken;
        match request.operation {
            Operation::Write { .. } => self.accept_write(at, request, received),
            _ => {
                self.submit(at, request, self.now, None);
                true
            }
        }
    }

    /// The bytes that a request makes the shard hold, with those of its payload that are to come.
    fn holds(&self, disk: DiskId, request: &Request) -> u64 {
        u64::from(request.payload()) + self.read_holds(disk, request)
    }

    /// The bytes that a read makes the shard hold until it is replied to.
    fn read_holds(&self, disk: DiskId, request: &Request) -> u64 {
        let disk = &self.disks[disk.0 as usize];
        match request.operation {
            Operation::Read if !disk.store.reads_at_reply() => u64::from(request.length),
            _ => 0,
        }
    }

    /// Submits a write whose payload is here; otherwise begins to collect it.
    fn accept_write(&mut self, at: usize, request: Request, received: &mut Received) -> bool {
        let length = request.length as usize;
        if received.rest().len() >= length {
            let place = received.start..received.start + length;
            received.start = place.end;
            let payload = Some(&received.bytes[place.clone()]);
            let id = self.submit(at, request, self.now, payload);
            self.copy_later(id, place);
            return true;
        }
        let mut bytes = self.buffers.take(request.length);
        bytes.extend_from_slice(received.rest());
        received.start = received.bytes.len();
        let arrived = self.now;
        if let Some(conn) = self.conn(at) {
            let disk = conn.disk;
            conn.intake = Intake::Payload {
                request,
                arrived,
                since: arrived,
                bytes,
            };
            self.charge(disk, 0, u64::from(request.length));
        }
        false
    }

    /// Receives the payload of a large write straight into its own buffer.
    fn receive_payload(&mut self, at: usize) {
        let Some(conn) = self.conn(at) else {
            return;
        };
        let Intake::Payload { request, bytes, .. } = &mut conn.intake else {
            return;
        };
        match conn.session.receive(bytes) {
            Arrival::Bytes => {}
            Arrival::Nothing => return,
            Arrival::End => return self.hang_up(at),
        }
        let length = request.length as usize;
        let complete = bytes.len() >= length;
        self.read_clock();
        if complete {
            self.submit_collected(at, length);
        }
    }

    fn submit_collected(&mut self, at: usize, length: usize) {
        let Some(conn) = self.conn(at) else {
            return;
        };
        let intake = std::mem::replace(&mut conn.intake, Intake::Request);
        let Intake::Payload {
            request,
            arrived,
            mut bytes,
            ..
        } = intake
        else {
            return;
        };
        // The buffer may have room for more than the payload; what came in there is the next
        // request.
        conn.received.bytes = bytes.split_off(length);
        conn.received.start = 0;
        let id = self.prepare(at, request);
        if let Some(slot) = id.and_then(|id| self.slots.get_mut(id)) {
            slot.payload = bytes;
            slot.charged = u64::from(request.length);
        }
        self.issue(at, id, arrived, None);
        self.queue_read(at);
    }

    fn submit(
        &mut self,
        at: usize,
        request: Request,
        arrived: Instant,
        incoming: Option<&[u8]>,
    ) -> Option<ZioId> {
        let id = self.prepare(at, request);
        self.issue(at, id, arrived, incoming);
        id
    }

    /// Gives a request a slot.
    fn prepare(&mut self, at: usize, request: Request) -> Option<ZioId> {
        let disk = self.conn(at)?.disk;
        let charged = self.read_holds(disk, &request);
        self.charge(disk, 1, charged);
        let conn = self.conns.get_mut(at)?.as_mut()?;
        let mut slot = Slot::new(at, disk, request);
        slot.charged = charged;
        Some(self.slots.insert(slot, &mut conn.zios))
    }

    /// Hands a request to the engine. A payload that the store has not had by the time the engine
    /// has answered is kept.
    fn issue(&mut self, at: usize, id: Option<ZioId>, arrived: Instant, incoming: Option<&[u8]>) {
        let (Some(id), Some(conn)) = (id, self.conn(at)) else {
            return;
        };
        let (device, client) = (conn.disk, conn.client);
        let Some(request) = self.slots.get(id).map(|slot| slot.request) else {
            return;
        };
        let (op, fua) = request.operation.for_engine();
        let zio = Zio {
            id,
            device,
            client,
            op,
            fua,
            offset: request.offset,
            length: request.length,
            arrived,
        };
        self.step(Input::Submit(zio), incoming.map(|bytes| (id, bytes)));
        if let Some(bytes) = incoming
            && self.slots.get(id).is_some_and(|slot| !slot.started)
        {
            self.keep_payload(id, bytes);
        }
    }

    /// Queues a reply to a request that became no zio. A connection that has too many of them is
    /// not read until some have left: says whether it may be read on.
    fn note(&mut self, at: usize, reply: Vec<u8>) -> bool {
        let notes_max = if self.keeps_too_much() { 1 } else { NOTES_MAX };
        let Some(conn) = self.conn(at) else {
            return false;
        };
        conn.notes += 1;
        conn.notes_max = notes_max;
        conn.note_bytes += reply.len();
        conn.ready.push_back(Reply::Bytes(reply));
        let goes_on = conn.wants_input();
        if !goes_on {
            self.watch(at);
        }
        self.reckon(at);
        self.queue_send(at);
        goes_on
    }

    /// Nothing more is read; what is in flight is finished.
    fn disconnect(&mut self, at: usize) {
        if let Some(conn) = self.conn(at) {
            conn.closing = true;
            self.watch(at);
            self.close_if_finished(at);
        }
    }

    fn reply_extents(&mut self, at: usize, question: &ExtentQuestion) -> bool {
        let Some(conn) = self.conns.get_mut(at).and_then(Option::as_mut) else {
            return false;
        };
        let mut extents: Vec<Extent> = Vec::new();
        let store = &self.disks[conn.disk.0 as usize].store;
        let length = u64::from(question.length);
        store.extents(question.offset, length, question.limit, &mut extents);
        let reply = conn.session.extents_reply(question, &extents);
        self.note(at, reply)
    }
}

/// Requests taken from one connection before the others have their turn.
const REQUESTS_PER_PASS: usize = 64;
/// Bytes taken from one connection at a time.
const RECEIVE_LENGTH: usize = 256 << 10;
/// The same while connections keep as much as they may.
const RECEIVE_SHORT: usize = 8 << 10;
/// Receive buffers kept for the next connection that needs one.
const RECEIVE_BUFFERS: usize = 16;
