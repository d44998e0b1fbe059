//! Makes stores do the work of zios. A store does the work in one of five ways: at once, at the end of a
//! batch of requests, in pieces, on the ring, or on a worker thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dashpot_engine::{Device, Errno, Input, Outcome, ZioId};

use super::Shard;
use super::lossy_work::changes;
use super::pool_work::request_of;
use super::slots::Slot;
use super::submission::Submission;
use super::unfinished::{Copy, PIECE, is_long};
use crate::frontend::boundary::{Operation, Request};
use crate::message::Message;
use crate::store::{Attempt, Change, Finished, Job, PoolOperation, Store};

impl Shard {
    /// Makes the store do a zio's work, now or later. Returns the outcome if it is already known.
    pub(super) fn work(
        &mut self,
        id: ZioId,
        submission: &mut Option<Submission<'_>>,
    ) -> Option<Outcome> {
        if id.is_child() {
            return self.work_for_pool(id, submission);
        }
        let submission = submission.as_ref().filter(|write| write.zio() == id);
        let incoming = submission.map(Submission::payload);
        let slot = self.slots.get_mut(id)?;
        slot.start();
        let store = self.stores.of_mut(slot.device())?;
        self.timers.note_call(store.may_wait());
        let request = *slot.request();
        let (offset, length) = (request.offset, u64::from(request.length));
        let attempt = match request.operation {
            Operation::Read if store.reads_at_reply() => return Some(Ok(())),
            Operation::Read if store.reads_slowly(length) => Attempt::WouldBlock,
            Operation::Read => {
                let mut payload = self.buffers.take_full(request.length);
                let attempt = store.read(offset, &mut payload);
                slot.put_payload(payload);
                attempt
            }
            _ if is_long(&request, store) => {
                self.unfinished.push_piece(id, 0);
                return None;
            }
            operation if store.loses() && changes(operation) => {
                return self.change_lossy(id, incoming);
            }
            Operation::Write { fua } => match submission.filter(|_| store.copies_later()) {
                Some(write) => {
                    self.unfinished.copy_later(Copy {
                        device: slot.device(),
                        offset,
                        place: write.place(),
                    });
                    return Some(Ok(()));
                }
                None => store.write(offset, incoming.unwrap_or(slot.payload()), fua),
            },
            Operation::Flush => store.flush(),
            Operation::Trim { fua } => store.trim(offset, length, fua),
            Operation::Zero { fua, no_hole } => store.zero(offset, length, no_hole, fua),
            Operation::Call(..) => return self.work_for_call(id, &request),
            Operation::Cache => return Some(Ok(())),
        };
        match attempt {
            Attempt::Done(outcome) => {
                self.end_work(id);
                Some(outcome)
            }
            Attempt::WouldBlock => {
                self.work_elsewhere(id, incoming);
                None
            }
        }
    }

    /// Begins the work for a program's system call on a file. The kernel does the work after the reply, but a
    /// rule may make the frontend sync the file first.
    fn work_for_call(&mut self, id: ZioId, request: &Request) -> Option<Outcome> {
        let done_first = self.engine.is_done_first(id);
        let connection = self.slots.get(id).and_then(Slot::connection);
        let Some(connection) = connection.filter(|_| done_first) else {
            return Some(Ok(()));
        };
        let mailbox = Arc::clone(self.control.mailbox());
        let done = Box::new(move || {
            let finished = Finished {
                outcome: Ok(()),
                buffer: Vec::new(),
            };
            // If the shard is gone, it needs no answer.
            let _ = mailbox.send(Message::Done(id, finished));
        });
        match self.connections.get_mut(connection) {
            Some(connection) => connection.begin(request, done).map(|_| Ok(())),
            None => Some(Ok(())),
        }
    }

    /// Notes that the store's work on a zio has ended. For a write, frees the payload, and gives its bytes
    /// back to the budget.
    pub(super) fn end_work(&mut self, id: ZioId) {
        if let Some(slot) = self.slots.get_mut(id)
            && matches!(slot.request().operation, Operation::Write { .. })
        {
            let (export, charged) = (slot.export(), slot.take_charge());
            self.buffers.give(slot.take_payload());
            self.budget.give_back(export, 0, charged);
        }
    }

    /// Makes the ring or a worker thread do a zio's work.
    fn work_elsewhere(&mut self, id: ZioId, incoming: Option<&[u8]>) {
        let slot = &mut self.slots[id];
        let (device, request) = (slot.device(), *slot.request());
        let payload = incoming.unwrap_or(slot.payload());
        let store = self.stores.of(device);
        if self.device_ring.start(store, id, &request, payload) {
            // The ring has made a copy of the payload, which is charged to the zio until its work has ended.
            if let Some(bytes) = incoming {
                slot.charge(bytes.len() as u64);
                self.budget.charge(slot.export(), 0, bytes.len() as u64);
            }
            self.buffers.give(slot.take_payload());
            return;
        }
        if let Some(bytes) = incoming {
            self.keep_payload(id, bytes);
        }
        let slot = &mut self.slots[id];
        let (payload, cancelled) = (slot.take_payload(), slot.cancellation());
        self.send_to_thread(id, device, &request, payload, cancelled);
    }

    /// Makes a worker thread do a zio's work.
    pub(super) fn send_to_thread(
        &mut self,
        id: ZioId,
        device: Device,
        request: &Request,
        payload: Vec<u8>,
        cancelled: Arc<AtomicBool>,
    ) {
        let Some(store) = self.stores.of(device).and_then(Store::blocking) else {
            return;
        };
        if let Some((_, lossy)) = self.stores.lossy(device) {
            lossy.begin_read(id, request.offset, u64::from(request.length));
        }
        let mailbox = Arc::clone(self.control.mailbox());
        self.unfinished.submit(Job {
            store,
            operation: pool_operation(request, payload),
            cancelled,
            finish: Box::new(move |finished| {
                // If the shard is gone, it needs no answer.
                let _ = mailbox.send(Message::Done(id, finished));
            }),
        });
    }

    /// Takes the result of a worker thread's job.
    pub(super) fn work_done(&mut self, id: ZioId, finished: Finished) {
        self.take_result(id, finished.buffer, finished.outcome);
        self.step(Input::Done(id, finished.outcome), None);
    }

    /// Takes the bytes that the ring or a worker thread has read.
    pub(super) fn take_result(&mut self, id: ZioId, mut bytes: Vec<u8>, outcome: Outcome) {
        if let Some((device, _)) = self.asked_of_store(id)
            && let Some((_, lossy)) = self.stores.lossy(device)
        {
            lossy.end_read(id, &mut bytes);
        }
        if id.is_child() {
            return self.take_result_for_pool(id, bytes, outcome);
        }
        if let Some(slot) = self.slots.get_mut(id) {
            slot.put_payload(bytes);
        }
        self.end_work(id);
    }

    /// The device and the request of a zio whose work a store has been asked to do.
    pub(super) fn asked_of_store(&self, id: ZioId) -> Option<(Device, Request)> {
        if id.is_child() {
            let zio = self.engine.child(id)?;
            return Some((Device::Disk(zio.device), request_of(&zio)));
        }
        let slot = self.slots.get(id)?;
        Some((slot.device(), *slot.request()))
    }

    /// Copies a payload from the receive buffer to a buffer of its own.
    pub(super) fn keep_payload(&mut self, id: ZioId, bytes: &[u8]) {
        let slot = &mut self.slots[id];
        let mut payload = self.buffers.take(slot.request().length);
        payload.extend_from_slice(bytes);
        slot.put_payload(payload);
        slot.charge(bytes.len() as u64);
        self.budget.charge(slot.export(), 0, bytes.len() as u64);
    }

    /// Continues work that was left for this pass: a piece of each long trim or zeroing in memory, and the
    /// zios of pools whose bytes the last pass was not allowed to move.
    pub(super) fn work_on(&mut self) {
        self.unfinished.begin_pass();
        for _ in 0..self.unfinished.pieces() {
            let Some((id, done)) = self.unfinished.pop_piece() else {
                break;
            };
            match self.work_piece(id, done) {
                Some(Ok(done)) => self.unfinished.push_piece(id, done),
                Some(Err(outcome)) => {
                    self.read_clock();
                    self.step(Input::Done(id, outcome), None);
                }
                None => {}
            }
        }
        self.tend_stores();
    }

    /// Does the next piece of a zio's work, of which `done` bytes are already done. Returns how many bytes
    /// are done now, or the outcome if the work has ended.
    fn work_piece(&mut self, id: ZioId, done: u64) -> Option<Result<u64, Outcome>> {
        let (device, request) = self.asked_of_store(id)?;
        let (fua, no_hole) = match request.operation {
            Operation::Zero { fua, no_hole } => (fua, no_hole),
            Operation::Trim { fua } => (fua, false),
            Operation::Read | Operation::Write { .. } if id.is_child() => {
                return self.work_for_pool(id, &mut None).map(Err);
            }
            Operation::Write { .. } => return self.retry_write(id).map(Err),
            _ => return None,
        };
        let length = u64::from(request.length);
        let piece = PIECE.min(length - done);
        let last = done + piece == length;
        let store = self.stores.of_mut(device)?;
        let offset = request.offset + done;
        if store.loses() {
            let length = piece;
            let piece = Change::Zero {
                offset,
                length,
                fua,
                last,
            };
            return self.zero_lossy_piece(id, device, piece, done);
        }
        let attempt = store.zero(offset, piece, no_hole, fua && last);
        Some(match attempt {
            Attempt::Done(Ok(())) if !last => Ok(done + piece),
            Attempt::Done(outcome) => Err(outcome),
            // Stores that work in pieces never block, so this would be a defect.
            Attempt::WouldBlock => Err(Err(Errno::Io)),
        })
    }
}

/// The operation for a worker thread. `buffer` has the payload of a write, or is the buffer to read into.
fn pool_operation(request: &Request, buffer: Vec<u8>) -> PoolOperation {
    let (offset, length) = (request.offset, u64::from(request.length));
    match request.operation {
        Operation::Read => PoolOperation::Read {
            offset,
            length: length as usize,
            buffer,
        },
        Operation::Write { fua } => PoolOperation::Write {
            offset,
            buffer,
            fua,
        },
        Operation::Trim { fua } => PoolOperation::Trim {
            offset,
            length,
            fua,
        },
        Operation::Zero { fua, no_hole } => PoolOperation::Zero {
            offset,
            length,
            no_hole,
            fua,
        },
        Operation::Flush | Operation::Cache | Operation::Call(..) => PoolOperation::Sync,
    }
}
