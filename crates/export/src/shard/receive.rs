//! Receiving: takes requests from a connection, admits them, and submits them to the engine. While the budget
//! has no room for a connection's next request, the connection stalls.

use std::ops::Range;

use dashpot_engine::{Device, Input, Instant, Zio, ZioId};

use super::Shard;
use super::intake::Received;
use super::slots::{Origin, Slot};
use super::submission::Submission;
use crate::frontend::boundary::{Arrival, Decoded, ExtentQuestion, Frontend, Operation, Request};
use crate::store::{Extent, Store};

impl Shard {
    /// Reads from a connection, and takes at most as many requests as a pass may take.
    pub(super) fn receive(&mut self, at: usize) {
        if self.connections[at].inlet().is_collecting() {
            self.receive_payload(at);
        } else {
            self.receive_requests(at);
        }
    }

    /// Reads the first `count` connections in the queue.
    pub(super) fn read_on(&mut self, count: usize) {
        for _ in 0..count {
            let Some(at) = self.intake.pop() else {
                return;
            };
            if let Some(connection) = self.connections.get_mut(at) {
                connection.inlet_mut().leave_queue();
                if connection.may_go_on() {
                    self.receive(at);
                }
            }
        }
    }

    /// Returns whether the budget admits one more request of a connection. The request makes the shard hold
    /// `holds` bytes. If the budget does not admit the request, stalls the connection.
    #[inline]
    pub(super) fn admits(&mut self, at: usize, holds: u64) -> bool {
        let connection = &mut self.connections[at];
        if self.zios.budget.admits(connection, holds) {
            return true;
        }
        self.zios
            .budget
            .stall(at, connection, holds, self.timers.now());
        self.connections.watch(at);
        false
    }

    /// Checks the stalled connections again, if some of the budget has been given back.
    pub(super) fn end_stalls(&mut self) {
        for stalled in self.zios.budget.take_stalled() {
            let at = stalled.at;
            let Some(connection) = self.connections.get_mut(at) else {
                continue;
            };
            if !self.zios.budget.admits_stalled(stalled, connection) {
                self.zios.budget.keep_stalled(stalled);
                continue;
            }
            connection.stall(false);
            self.intake.push(at, connection.inlet_mut());
            self.connections.watch(at);
        }
    }

    /// Ends connections that have announced a payload and send it too slowly while other requests wait.
    pub(super) fn evict(&mut self) {
        let now = self.timers.now();
        let Some(missed) = self.zios.budget.begin_eviction(now) else {
            return;
        };
        if let Some(missed) = missed {
            for at in self.connections.places() {
                if let Some(connection) = self.connections.get_mut(at) {
                    connection.inlet_mut().forgive(missed);
                }
            }
        }
        // Ends all late connections. Ending only as many late connections as there are stalled ones is not
        // enough, because connections that the shard has not read yet may be waiting, too.
        let is_late = |at: &usize| {
            let connection = self.connections.get(*at);
            connection.is_some_and(|connection| self.zios.budget.is_late(connection, now))
        };
        let late: Vec<usize> = self.connections.places().filter(is_late).collect();
        late.into_iter().for_each(|at| self.connections.hang_up(at));
    }

    fn receive_requests(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let mut received = connection.inlet_mut().take_received();
        if !connection.session().may_hold_request(received.rest())
            && !self.fill_received(at, &mut received)
        {
            return;
        }
        for _ in 0..REQUESTS_PER_PASS {
            if !self.take_request(at, &mut received) {
                break;
            }
        }
        self.storage.copy_now(received.bytes());
        self.put_back(at, received);
    }

    /// Receives more bytes after those that `received` still has. Returns false if none have arrived.
    fn fill_received(&mut self, at: usize, received: &mut Received) -> bool {
        let connection = &mut self.connections[at];
        let (limits, short) = (
            connection.session().receive_limits(),
            self.zios.budget.keeps_too_much(),
        );
        let mut bytes = self.intake.buffer(limits, short);
        bytes.extend_from_slice(received.rest());
        match connection.session_mut().receive(&mut bytes) {
            Arrival::Bytes => {}
            Arrival::Nothing => {
                self.put_back(at, Received::new(bytes));
                return false;
            }
            Arrival::End => {
                self.connections.hang_up(at);
                return false;
            }
        }
        self.read_clock();
        *received = Received::new(bytes);
        true
    }

    /// Keeps the remaining bytes for a later pass. If these bytes may begin with a whole request, keeps the
    /// buffer. Otherwise the bytes are few, and the function keeps a copy of them.
    fn put_back(&mut self, at: usize, received: Received) {
        // The last request may have ended the connection.
        let Some(connection) = self.connections.get_mut(at) else {
            return;
        };
        if connection.session().may_hold_request(received.rest()) && !connection.is_closing() {
            connection.inlet_mut().put_received(received);
            self.zios.budget.recount(connection);
            self.intake.push(at, connection.inlet_mut());
            return;
        }
        let rest = received.rest().to_vec();
        connection.inlet_mut().put_received(Received::new(rest));
        self.zios.budget.recount(connection);
        self.intake.give(received.into_bytes());
    }

    /// Takes one request. Returns false if none has arrived, or if the budget does not admit it.
    fn take_request(&mut self, at: usize, received: &mut Received) -> bool {
        let connection = &mut self.connections[at];
        if !connection.inlet_mut().skip_on(received) {
            return false;
        }
        let export = self.exports.info(connection.export());
        match connection.session_mut().decode(received.rest(), export) {
            Decoded::Request { request, taken } => self.accept(at, request, taken, received),
            Decoded::Call {
                request,
                arrived,
                taken,
            } => {
                if !self.admits(at, 0) {
                    return false;
                }
                received.take(taken);
                self.submit(at, request, arrived, None);
                true
            }
            Decoded::Extents { question, taken } => {
                if !self.admits(at, 0) {
                    return false;
                }
                received.take(taken);
                self.reply_extents(at, &question)
            }
            Decoded::Answered { reply, taken, skip } => {
                received.take(taken);
                connection.inlet_mut().skip(skip);
                self.put_whole(at, reply)
            }
            Decoded::Withdrawn { cookie, taken } => {
                received.take(taken);
                self.withdraw(at, cookie);
                true
            }
            Decoded::Ignored { taken } => {
                received.take(taken);
                true
            }
            Decoded::More => false,
            Decoded::Goodbye => {
                self.close(at);
                false
            }
            Decoded::Broken => {
                self.connections.hang_up(at);
                false
            }
        }
    }

    /// Takes a request whose header has arrived. Returns false if the budget does not admit the request, or
    /// if its payload has not arrived yet.
    fn accept(
        &mut self,
        at: usize,
        request: Request,
        taken: usize,
        received: &mut Received,
    ) -> bool {
        let device = self.exports.device(self.connections[at].export());
        let holds = u64::from(request.payload()) + self.read_holds(device, &request);
        if !self.admits(at, holds) {
            return false;
        }
        received.take(taken);
        match request.operation {
            Operation::Write { .. } => self.accept_write(at, request, received),
            _ => {
                self.submit(at, request, self.timers.now(), None);
                true
            }
        }
    }

    /// How many bytes of a read's data the shard has to hold until it sends the reply.
    fn read_holds(&self, device: Device, request: &Request) -> u64 {
        let store = self.storage.stores.of(device);
        match request.operation {
            Operation::Read if !store.is_some_and(Store::reads_at_reply) => request.length.into(),
            _ => 0,
        }
    }

    /// Submits a write if its payload has arrived. Otherwise, begins to collect the payload.
    fn accept_write(&mut self, at: usize, request: Request, received: &mut Received) -> bool {
        let (length, now) = (request.length as usize, self.timers.now());
        if received.rest().len() >= length {
            let place = received.take(length);
            self.submit(at, request, now, Some((received.bytes(), place)));
            return true;
        }
        let mut payload = self.zios.buffers.take(request.length);
        payload.extend_from_slice(received.rest());
        received.take(payload.len());
        let connection = &mut self.connections[at];
        connection.inlet_mut().collect(request, payload, now);
        self.zios
            .budget
            .charge(connection.export(), 0, u64::from(request.length));
        false
    }

    /// Receives the payload of a large write directly into the payload's own buffer.
    fn receive_payload(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        match connection.receive_payload() {
            Arrival::Bytes => {}
            Arrival::Nothing => return,
            Arrival::End => return self.connections.hang_up(at),
        }
        let collected = connection.inlet_mut().take_collected();
        self.read_clock();
        let Some(incoming) = collected else {
            return;
        };
        let request = incoming.request;
        let id = self.prepare(at, request);
        let slot = &mut self.zios.slots[id];
        slot.put_payload(incoming.payload);
        slot.charge(u64::from(request.length));
        self.issue(id, incoming.arrived, None);
        self.intake.push(at, self.connections[at].inlet_mut());
    }

    fn submit(
        &mut self,
        at: usize,
        request: Request,
        arrived: Instant,
        payload: Option<(&[u8], Range<usize>)>,
    ) {
        let id = self.prepare(at, request);
        self.issue(id, arrived, payload);
    }

    /// Gives a request a slot.
    fn prepare(&mut self, at: usize, request: Request) -> ZioId {
        let connection = &self.connections[at];
        let origin = Origin {
            connection: at,
            export: connection.export(),
            client: connection.client(),
        };
        let device = self.exports.device(origin.export);
        let charged = self.read_holds(device, &request);
        self.zios.budget.charge(origin.export, 1, charged);
        let zios = self.connections[at].zios_mut();
        let slot = || Slot::new(origin, device, request, charged);
        self.zios.slots.insert(zios, slot)
    }

    /// Submits a request to the engine. If the store does not take the payload of a write during this call,
    /// copies the payload out of the receive buffer.
    fn issue(&mut self, id: ZioId, arrived: Instant, payload: Option<(&[u8], Range<usize>)>) {
        let slot = &self.zios.slots[id];
        let input = match (slot.device(), slot.request().operation) {
            (Device::Disk(disk), Operation::Call(..)) => {
                Input::SubmitSinceArrival(zio(id, disk, slot, arrived))
            }
            (Device::Disk(disk), _) => Input::Submit(zio(id, disk, slot, arrived)),
            (Device::Volume(volume), _) => Input::SubmitToVolume(zio(id, volume, slot, arrived)),
        };
        let submission = payload.map(|(received, place)| Submission::new(id, received, place));
        let bytes = submission.as_ref().map(Submission::payload);
        self.step(input, submission);
        if let Some(bytes) = bytes
            && !self.zios.slots[id].is_started()
        {
            self.zios.keep_payload(id, bytes);
        }
    }

    /// Queues a reply to a request that did not become a zio. Returns whether the shard may go on reading the
    /// connection: while too many such replies wait, it may not.
    fn put_whole(&mut self, at: usize, reply: Vec<u8>) -> bool {
        let keep_too_much = self.zios.budget.keeps_too_much();
        let connection = &mut self.connections[at];
        connection.outlet_mut().put_whole(reply, keep_too_much);
        let goes_on = connection.wants_input();
        self.zios.budget.recount(connection);
        self.outbox.push(at, connection.outlet_mut());
        if !goes_on {
            self.connections.watch(at);
        }
        goes_on
    }

    /// Stops reading the connection. The shard finishes the zios in flight.
    fn close(&mut self, at: usize) {
        self.connections[at].close();
        self.connections.watch(at);
        self.connections.close_if_finished(at);
    }

    fn reply_extents(&mut self, at: usize, question: &ExtentQuestion) -> bool {
        let connection = &self.connections[at];
        let length = u64::from(question.length);
        let hole = false;
        let mut extents = vec![Extent { length, hole }];
        if let Some(store) = self
            .storage
            .stores
            .of(self.exports.device(connection.export()))
        {
            self.timers.note_call(store.may_wait());
            store.extents(question.offset, length, question.limit, &mut extents);
        }
        let reply = connection.session().extents_reply(question, &extents);
        self.put_whole(at, reply)
    }
}

/// The zio of a request to a disk or a volume.
#[inline]
fn zio<D>(id: ZioId, device: D, slot: &Slot, arrived: Instant) -> Zio<D> {
    let request = slot.request();
    let (op, fua) = request.operation.for_engine();
    Zio {
        id,
        device,
        client: slot.client(),
        op,
        fua,
        call: request.operation.call(),
        offset: request.offset,
        length: request.length,
        arrived,
    }
}

/// How many requests the shard takes from one connection before it serves the other connections.
const REQUESTS_PER_PASS: usize = 64;
