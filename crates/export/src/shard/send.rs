//! Sending: passes replies to the transports, in chunks of bounded size.

use dashpot_engine::{Input, ZioId};

use super::Shard;
use super::chunk::{Chunk, Sources};
use crate::frontend::boundary::Frontend;

impl Shard {
    /// Queues a connection that has replies to send in this pass, unless its transport is blocked.
    pub(super) fn queue_send(&mut self, at: usize) {
        if let Some(connection) = self.connections.get_mut(at) {
            self.outbox.push(at, connection.outlet_mut());
        }
    }

    /// Sends replies to each queued connection: one chunk, or several in a row if the connection's transport
    /// wants them. After [`CHUNKS_PER_PASS`] connections, the shard looks at its sockets again, because a
    /// request that waits unread during a burst of replies is late before it is even submitted.
    pub(super) fn send_on(&mut self) {
        for _ in 0..self.outbox.len().min(CHUNKS_PER_PASS) {
            let Some(at) = self.outbox.pop() else {
                return;
            };
            if let Some(connection) = self.connections.get_mut(at) {
                connection.outlet_mut().leave_queue();
                self.send_chunks(at);
            }
        }
    }

    /// Sends as many chunks in a row as the transport wants. If the connection has more replies after that,
    /// queues it again.
    fn send_chunks(&mut self, at: usize) {
        let mut calls = 0..self.connections[at].session().send_limits().calls;
        let has_more = calls.all(|_| self.send_chunk(at));
        // The last chunk may have ended the connection.
        let Some(connection) = self.connections.get_mut(at) else {
            return;
        };
        match (connection.session_mut().flush(), has_more) {
            (Err(_), _) => self.connections.hang_up(at),
            (Ok(()), true) => self.queue_send(at),
            (Ok(()), false) => {}
        }
    }

    pub(super) fn unblock(&mut self, at: usize) {
        if let Some(connection) = self.connections.get_mut(at)
            && connection.outlet().is_blocked()
        {
            connection.outlet_mut().unblock();
            self.outbox.push(at, connection.outlet_mut());
            self.intake.push(at, connection.inlet_mut());
            self.connections.watch(at);
        }
    }

    /// Sends a chunk. Returns whether another chunk may follow.
    fn send_chunk(&mut self, at: usize) -> bool {
        let mut chunk = self.connections[at].outlet_mut().take_unsent();
        if chunk.is_empty() {
            chunk = self.outbox.chunk();
            if !self.fill_chunk(at, &mut chunk) {
                return false;
            }
        }
        let result = self.offer(at, &chunk);
        self.read_clock();
        self.note_offered(chunk.zios());
        let is_sent = match result {
            Ok(sent) => chunk.accept(sent),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => false,
            Err(_) => {
                self.connections.hang_up(at);
                return false;
            }
        };
        self.load_half_sent(&chunk);
        if is_sent {
            return self.end_chunk(at, chunk);
        }
        self.keep_unsent(at, chunk);
        false
    }

    /// Loads the block of a reply that is sent in part. Otherwise a write could change the block on its disk
    /// before the rest is sent, and the client would get one part of the block from before the write and
    /// another from after it.
    fn load_half_sent(&mut self, chunk: &Chunk) {
        let zio = chunk.half_sent();
        if let Some(lent) = zio.and_then(|zio| self.zios.slots[zio].lent()) {
            self.store_work().load(lent.buf);
        }
    }

    /// Keeps a chunk that the transport has not accepted in full.
    fn keep_unsent(&mut self, at: usize, chunk: Chunk) {
        let connection = &mut self.connections[at];
        connection.outlet_mut().keep_unsent(chunk);
        self.zios.budget.recount(connection);
        self.connections.watch(at);
    }

    /// Finishes a chunk that the transport has accepted in full. Returns whether another chunk may follow.
    fn end_chunk(&mut self, at: usize, chunk: Chunk) -> bool {
        for id in chunk.zios() {
            self.finish(at, *id);
        }
        self.outbox.give(chunk);
        let connection = &mut self.connections[at];
        self.zios.budget.recount(connection);
        if connection.outlet_mut().goes_on() {
            return true;
        }
        self.connections.close_if_finished(at);
        self.end_if_only_hung(at);
        false
    }

    /// Offers the unaccepted part of a chunk. Returns how many bytes the transport has accepted.
    fn offer(&mut self, at: usize, chunk: &Chunk) -> rustix::io::Result<usize> {
        let connection = &mut self.connections[at];
        let sources = Sources {
            slots: &self.zios.slots,
            blocks: self.storage.blocks(),
            stores: &self.storage.stores,
            device: self.exports.device(connection.export()),
        };
        connection.offer(chunk, sources)
    }

    /// Fills a chunk with as many replies as fit. If whole replies leave the queue, the shard may be able to
    /// read the connection again. Returns false if the connection has ended because that failed.
    fn fill_chunk(&mut self, at: usize, chunk: &mut Chunk) -> bool {
        let connection = &mut self.connections[at];
        let was_readable = connection.wants_input();
        connection.fill(chunk, &self.zios.slots);
        if !was_readable && connection.wants_input() {
            self.intake.push(at, connection.inlet_mut());
            self.connections.watch(at);
            return self.connections.get(at).is_some();
        }
        true
    }

    /// Notes that the last bytes of these replies have been offered to the transport now. If a reply was
    /// offered before and the client has kept it waiting, the earlier time stands.
    fn note_offered(&mut self, zios: &[ZioId]) {
        let now = self.timers.now();
        for id in zios {
            self.zios.slots[*id].offer(now);
        }
    }

    /// Finishes a zio after the transport has accepted the last byte of its reply.
    fn finish(&mut self, at: usize, zio: ZioId) {
        self.zios.slots.unlink(zio, self.connections[at].zios_mut());
        let slot = &self.zios.slots[zio];
        let offered = slot.offered().unwrap_or(self.timers.now());
        // A zio that has failed has not happened.
        if slot.outcome().is_ok() {
            let device = slot.device();
            let told = self.engine.tell();
            self.storage.told(zio, device, told);
        }
        self.forget(zio);
        self.step(Input::Replied { zio, offered }, None);
    }

    /// Ends a connection whose peer is gone, if all its remaining zios hang until a command releases them.
    pub(super) fn end_if_only_hung(&mut self, at: usize) {
        let connection = self.connections.get(at);
        let Some(connection) = connection.filter(|connection| connection.has_lost_peer()) else {
            return;
        };
        let left = self.zios.slots.list(connection.zios());
        if left.iter().all(|zio| self.engine.never_ends(*zio)) {
            self.connections.hang_up(at);
        }
    }
}

/// How many connections the shard sends to before it looks at the sockets again.
const CHUNKS_PER_PASS: usize = 64;
