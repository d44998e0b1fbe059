//! What the store does for a zio: at once, or on a thread of the pool.

use std::sync::Arc;

use dashpot_engine::{Input, Outcome, ZioId};

use crate::nbd::check::Operation;
use crate::shard::{Message, Shard};
use crate::store::{self, Attempt, Finished, Job};

impl Shard {
    /// Has the store do what a zio asks, now or on a thread of the pool.
    pub(crate) fn work(&mut self, id: ZioId, incoming: Option<(ZioId, &[u8])>) -> Option<Outcome> {
        let incoming = incoming
            .filter(|(zio, _)| *zio == id)
            .map(|(_, bytes)| bytes);
        let slot = self.slots.get_mut(id)?;
        slot.started = true;
        let disk = self.disks.get_mut(slot.disk.0 as usize)?;
        let (offset, length) = (slot.offset, u64::from(slot.length));
        let attempt = match slot.operation {
            Operation::Read { .. } if disk.store.reads_at_reply() => return Some(Ok(())),
            Operation::Read { .. } => {
                slot.payload = self.buffers.take(slot.length);
                slot.payload.resize(slot.length as usize, 0);
                disk.store.read(offset, &mut slot.payload)
            }
            Operation::Write { fua } => {
                disk.store
                    .write(offset, incoming.unwrap_or(&slot.payload), fua)
            }
            Operation::Flush => disk.store.flush(),
            Operation::Trim { fua } => disk.store.trim(offset, length, fua),
            Operation::WriteZeroes { fua, no_hole } => {
                disk.store.zero(offset, length, no_hole, fua)
            }
            Operation::Cache | Operation::BlockStatus { .. } | Operation::Disconnect => {
                return Some(Ok(()));
            }
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

    /// The store is done: a write's bytes are not needed any more.
    fn end_work(&mut self, id: ZioId) {
        if let Some(slot) = self.slots.get_mut(id)
            && matches!(slot.operation, Operation::Write { .. })
        {
            self.buffers.give(std::mem::take(&mut slot.payload));
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
        let (offset, length) = (slot.offset, u64::from(slot.length));
        let buffer = std::mem::take(&mut slot.payload);
        let operation = match slot.operation {
            Operation::Read { .. } => store::Operation::Read { offset, buffer },
            Operation::Write { fua } => store::Operation::Write {
                offset,
                buffer,
                fua,
            },
            Operation::Trim { fua } => store::Operation::Trim {
                offset,
                length,
                fua,
            },
            Operation::WriteZeroes { fua, no_hole } => store::Operation::Zero {
                offset,
                length,
                no_hole,
                fua,
            },
            _ => store::Operation::Sync,
        };
        let mailbox = Arc::clone(&self.mailbox);
        self.pool.submit(Job {
            file: Arc::clone(file),
            operation,
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
            slot.payload = self.buffers.take(slot.length);
            slot.payload.extend_from_slice(bytes);
        }
    }
}
