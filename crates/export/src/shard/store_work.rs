//! What the store does for a zio: at once, at the end of the pass, or on a thread of the pool.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dashpot_engine::{DiskId, Errno, Input, Instant, Outcome, ZioId};

use crate::frontend::boundary::Operation;
use crate::message::Message;
use crate::shard::connection::Conn;
use crate::shard::{Disk, Shard};
use crate::store::{self, Asker, Attempt, Finished, Job};

/// A write that has been called done, and is yet to be copied to its disk.
#[derive(Debug)]
pub(crate) struct Copy {
    disk: DiskId,
    offset: u64,
    /// Where in the receive buffer its payload is.
    place: Range<usize>,
}

impl Shard {
    /// Has the store do what a zio asks, now or on a thread of the pool.
    pub(crate) fn work(&mut self, id: ZioId, incoming: Option<(ZioId, &[u8])>) -> Option<Outcome> {
        let incoming = incoming
            .filter(|(zio, _)| *zio == id)
            .map(|(_, bytes)| bytes);
        let slot = self.slots.get_mut(id)?;
        slot.started = true;
        let disk = self.disks.get_mut(slot.disk.0 as usize)?;
        let (offset, length) = (slot.request.offset, u64::from(slot.request.length));
        set_asker(
            disk,
            id,
            slot.conn.and_then(|at| self.conns.get(at)?.as_ref()),
            self.now,
        );
        let attempt = match slot.request.operation {
            Operation::Read if disk.store.reads_at_reply() => return Some(Ok(())),
            // To read much takes long, even if it does not wait.
            Operation::Read if length > INLINE_MAX && disk.store.blocking().is_some() => {
                Attempt::WouldBlock
            }
            Operation::Read => {
                slot.payload = self.buffers.take(slot.request.length);
                slot.payload.resize(slot.request.length as usize, 0);
                disk.store.read(offset, &mut slot.payload)
            }
            Operation::Trim { .. } | Operation::Zero { .. }
                if length > PIECE && disk.store.blocking().is_none() =>
            {
                self.pieces.push_back((id, 0));
                return None;
            }
            // Its caller copies it, with the others of the same pass.
            Operation::Write { .. } if incoming.is_some() && disk.store.copies_later() => {
                return Some(Ok(()));
            }
            Operation::Write { fua } => {
                disk.store
                    .write(offset, incoming.unwrap_or(&slot.payload), fua)
            }
            Operation::Flush => disk.store.flush(),
            Operation::Trim { fua } => disk.store.trim(offset, length, fua),
            Operation::Zero { fua, no_hole } => disk.store.zero(offset, length, no_hole, fua),
            Operation::Cache => return Some(Ok(())),
        };
        match attempt {
            Attempt::Done(outcome) => {
                self.end_work(id);
                Some(outcome)
            }
            Attempt::WouldBlock => {
                self.send_to_pool(id, incoming);
                None
            }
        }
    }

    /// Notes where in the receive buffer the payload of a write is, if that is yet to be copied.
    pub(crate) fn copy_later(&mut self, id: Option<ZioId>, place: Range<usize>) {
        if let Some(slot) = id.and_then(|id| self.slots.get(id))
            && slot.started
            && self.disks[slot.disk.0 as usize].store.copies_later()
        {
            let (disk, offset) = (slot.disk, slot.request.offset);
            self.copies.push(Copy {
                disk,
                offset,
                place,
            });
        }
    }

    /// Makes the copies of a pass, one behind the other: a copy to cold memory keeps the CPU's
    /// store buffer full, and whatever comes between two of them waits for it. Nobody can see that
    /// the engine was told first, because replies leave later.
    pub(crate) fn copy_writes(&mut self, received: &[u8]) {
        for copy in self.copies.drain(..) {
            let store = &mut self.disks[copy.disk.0 as usize].store;
            let attempt = store.write(copy.offset, &received[copy.place], false);
            debug_assert_eq!(attempt, Attempt::Done(Ok(())));
        }
    }

    /// The store is done: a write's bytes are not needed any more.
    fn end_work(&mut self, id: ZioId) {
        if let Some(slot) = self.slots.get_mut(id)
            && matches!(slot.request.operation, Operation::Write { .. })
        {
            let (disk, charged) = (slot.disk, std::mem::take(&mut slot.charged));
            self.buffers.give(std::mem::take(&mut slot.payload));
            self.give_back(disk, 0, charged);
        }
    }

    fn send_to_pool(&mut self, id: ZioId, incoming: Option<&[u8]>) {
        if let Some(bytes) = incoming {
            self.keep_payload(id, bytes);
        }
        let Some(slot) = self.slots.get_mut(id) else {
            return;
        };
        let Some(file) = self.disks[slot.disk.0 as usize].store.blocking() else {
            return;
        };
        let (offset, length) = (slot.request.offset, u64::from(slot.request.length));
        let buffer = std::mem::take(&mut slot.payload);
        let cancelled = Arc::<AtomicBool>::default();
        slot.cancelled = Some(Arc::clone(&cancelled));
        let operation = match slot.request.operation {
            Operation::Read => store::FileOperation::Read {
                offset,
                length: length as usize,
                buffer,
            },
            Operation::Write { fua } => store::FileOperation::Write {
                offset,
                buffer,
                fua,
            },
            Operation::Trim { fua } => store::FileOperation::Trim {
                offset,
                length,
                fua,
            },
            Operation::Zero { fua, no_hole } => store::FileOperation::Zero {
                offset,
                length,
                no_hole,
                fua,
            },
            _ => store::FileOperation::Sync,
        };
        let mailbox = Arc::clone(&self.mailbox);
        self.pool.submit(Job {
            file: Arc::clone(file),
            operation,
            cancelled,
            finish: Box::new(move |finished| {
                // A shard that is gone has nobody left to tell.
                let _ = mailbox.send(Message::Done(id, finished));
            }),
        });
    }

    pub(crate) fn work_done(&mut self, id: ZioId, finished: Finished) {
        if let Some(slot) = self.slots.get_mut(id) {
            slot.payload = finished.buffer;
        }
        self.end_work(id);
        self.step(Input::Done(id, finished.outcome), None);
    }

    /// Copies a payload out of the receive buffer, because the store is not to have it yet.
    pub(crate) fn keep_payload(&mut self, id: ZioId, bytes: &[u8]) {
        if let Some(slot) = self.slots.get_mut(id) {
            slot.payload = self.buffers.take(slot.request.length);
            slot.payload.extend_from_slice(bytes);
            slot.charged = bytes.len() as u64;
            let disk = slot.disk;
            self.charge(disk, 0, bytes.len() as u64);
        }
    }

    /// Goes on with what memory takes long to do, a piece of each in turn.
    pub(crate) fn work_on(&mut self) {
        for _ in 0..self.pieces.len() {
            let Some((id, done)) = self.pieces.pop_front() else {
                return;
            };
            match self.work_piece(id, done) {
                Some(Ok(done)) => self.pieces.push_back((id, done)),
                Some(Err(outcome)) => {
                    self.read_clock();
                    self.step(Input::Done(id, outcome), None);
                }
                None => {}
            }
        }
    }

    /// Does the piece of a zio after `done` bytes. Says how many are done, or how it ended.
    fn work_piece(&mut self, id: ZioId, done: u64) -> Option<Result<u64, Outcome>> {
        let slot = self.slots.get(id)?;
        let disk = &mut self.disks[slot.disk.0 as usize];
        let (fua, no_hole) = match slot.request.operation {
            Operation::Zero { fua, no_hole } => (fua, no_hole),
            Operation::Trim { fua } => (fua, false),
            _ => return None,
        };
        let length = u64::from(slot.request.length);
        let piece = PIECE.min(length - done);
        let conn = slot.conn.and_then(|at| self.conns.get(at)?.as_ref());
        set_asker(disk, id, conn, self.now);
        let last = done + piece == length;
        let attempt = disk
            .store
            .zero(slot.request.offset + done, piece, no_hole, fua && last);
        Some(match attempt {
            Attempt::Done(Ok(())) if !last => Ok(done + piece),
            Attempt::Done(outcome) => Err(outcome),
            // Stores that are worked on in pieces do not wait.
            Attempt::WouldBlock => Err(Err(Errno::Io)),
        })
    }
}

/// Tells a store that must know it who asks for what it is to do next.
fn set_asker(disk: &mut Disk, zio: ZioId, conn: Option<&Conn>, at: Instant) {
    let clients = &disk.clients;
    disk.store.set_asker(|| Asker {
        zio,
        client: conn.map_or_else(|| "gone".into(), |conn| clients.name(conn.client)),
        at,
    });
}

/// Reads above this length are not even tried on the shard, if a thread of the pool can do them.
const INLINE_MAX: u64 = 256 << 10;
/// Bytes that are zeroed before others have their turn.
const PIECE: u64 = 4 << 20;
