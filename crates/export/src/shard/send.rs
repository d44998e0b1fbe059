//! Replies: out of the shard, in chunks of a bounded size, into the sockets.

use std::collections::VecDeque;
use std::io::IoSlice;

use dashpot_engine::{Input, ZioId};

use super::chunk::{Chunk, SLICES_MAX};
use crate::frontend::boundary::{Frontend, Operation};
use crate::shard::Shard;
use crate::shard::connection::Reply;

impl Shard {
    pub(crate) fn queue_send(&mut self, at: usize) {
        if let Some(conn) = self.conn(at)
            && !conn.send_queued
            && !conn.blocked
        {
            conn.send_queued = true;
            self.to_send.push_back(at);
        }
    }

    /// Sends one chunk to each connection that has replies. Then the sockets are looked at again: a
    /// request that waits to be read while a burst of replies leaves is late before it is issued.
    pub(crate) fn send_on(&mut self) {
        for _ in 0..self.to_send.len().min(CHUNKS_PER_PASS) {
            let Some(at) = self.to_send.pop_front() else {
                return;
            };
            if let Some(conn) = self.conn(at) {
                conn.send_queued = false;
                self.send_chunk(at);
            }
        }
    }

    /// The transport takes more again.
    pub(crate) fn unblock(&mut self, at: usize) {
        if let Some(conn) = self.conn(at)
            && conn.blocked
        {
            conn.blocked = false;
            self.queue_send(at);
            self.queue_read(at);
            self.watch(at);
        }
    }

    fn send_chunk(&mut self, at: usize) {
        let Some(conn) = self.conn(at) else {
            return;
        };
        let mut chunk = std::mem::take(&mut conn.unsent);
        if chunk.is_empty() {
            chunk = std::mem::take(&mut self.spare_chunk);
            self.fill_chunk(at, &mut chunk);
        }
        let result = self.offer(at, &chunk);
        self.read_clock();
        self.note_offered(&chunk.zios);
        match result {
            Ok(sent) => chunk.sent += sent,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => return self.hang_up(at),
        }
        if !chunk.is_sent() {
            if let Some(conn) = self.conn(at) {
                conn.unsent = chunk;
                conn.blocked = true;
                self.reckon(at);
                self.watch(at);
            }
            return;
        }
        for id in chunk.zios.drain(..) {
            self.finish(at, id);
        }
        chunk.clear();
        self.spare_chunk = chunk;
        self.reckon(at);
        self.go_on_sending(at);
        self.close_if_finished(at);
        self.end_if_only_hung(at);
    }

    /// A chunk has left; another may follow.
    fn go_on_sending(&mut self, at: usize) {
        let Some(conn) = self.conn(at) else {
            return;
        };
        if !conn.ready.is_empty() {
            self.queue_send(at);
        } else if conn.ready.capacity() > READY_KEPT {
            // A queue that was long once is not kept for each connection.
            conn.ready = VecDeque::new();
        }
    }

    /// Offers the transport what it has not accepted yet. Says how many bytes it takes.
    fn offer(&mut self, at: usize, chunk: &Chunk) -> rustix::io::Result<usize> {
        let Some(conn) = self.conns[at].as_mut() else {
            return Ok(0);
        };
        if chunk.is_empty() || conn.deaf {
            return Ok(chunk.length() - chunk.sent);
        }
        let store = &self.disks[conn.disk.0 as usize].store;
        let mut room = [IoSlice::new(&[]); SLICES_MAX];
        let slices = chunk.slices(&self.slots, store, &mut room);
        conn.session.send(slices)
    }

    /// Fills a chunk with as many replies as one may have.
    fn fill_chunk(&mut self, at: usize, chunk: &mut Chunk) {
        let Some(limits) = self.conn(at).map(|conn| conn.session.send_limits()) else {
            return;
        };
        for _ in 0..limits.replies {
            let Some(reply) = self.conn(at).and_then(|conn| conn.ready.pop_front()) else {
                return;
            };
            match reply {
                Reply::Bytes(reply) => {
                    chunk.heads.extend_from_slice(&reply);
                    self.end_note(at, reply.len());
                }
                Reply::Zio { id, sent } => match self.put_reply(at, id, sent, chunk) {
                    None => chunk.zios.push(id),
                    Some(sent) => {
                        if let Some(conn) = self.conn(at) {
                            conn.ready.push_front(Reply::Zio { id, sent });
                        }
                    }
                },
            }
            if chunk.length() >= limits.bytes {
                return;
            }
        }
    }

    /// A reply of its own bytes has left the queue; the connection may be readable again.
    fn end_note(&mut self, at: usize, bytes: usize) {
        let Some(conn) = self.conn(at) else {
            return;
        };
        let was_readable = conn.wants_input();
        conn.notes -= 1;
        conn.note_bytes -= bytes;
        if !was_readable && conn.wants_input() {
            self.queue_read(at);
            self.watch(at);
        }
    }

    /// Puts a reply, or the next part of one, into a chunk. Says how many bytes of data are in,
    /// if there are more to come.
    fn put_reply(&mut self, at: usize, id: ZioId, sent: u32, chunk: &mut Chunk) -> Option<u32> {
        let session = &self.conns.get(at)?.as_ref()?.session;
        let slot = self.slots.get(id)?;
        let (request, outcome) = (&slot.request, slot.outcome);
        if sent == 0 {
            session.put_head(&mut chunk.heads, request, outcome);
        }
        if outcome.is_err() || request.operation != Operation::Read {
            return None;
        }
        let limit = session.send_limits().bytes;
        let room = limit.saturating_sub(chunk.length()).max(1) as u32;
        let part = room.min(request.length - sent);
        chunk.push_data(id, sent, part);
        (sent + part < request.length).then_some(sent + part)
    }

    /// A reply's last byte has been offered now, unless its client has kept it waiting before.
    fn note_offered(&mut self, zios: &[ZioId]) {
        for id in zios {
            if let Some(slot) = self.slots.get_mut(*id) {
                slot.offered.get_or_insert(self.now);
            }
        }
    }

    /// A reply's last byte was accepted.
    fn finish(&mut self, at: usize, zio: ZioId) {
        let Some(conn) = self.conns.get_mut(at).and_then(Option::as_mut) else {
            return;
        };
        self.slots.unlink(zio, &mut conn.zios);
        if let Some(slot) = self.forget(zio) {
            let offered = slot.offered.unwrap_or(self.now);
            self.step(Input::Replied { zio, offered }, None);
        }
    }

    pub(crate) fn close_if_finished(&mut self, at: usize) {
        if self.conn(at).is_some_and(|conn| conn.is_finished()) {
            self.hang_up(at);
        }
    }
}

/// Chunks sent before the sockets are looked at again.
const CHUNKS_PER_PASS: usize = 64;
/// Replies for which an empty queue keeps its memory.
const READY_KEPT: usize = 256;
