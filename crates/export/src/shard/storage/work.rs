//! Makes stores do the work of zios. A store does the work in one of five ways: at once, at the end of a
//! batch of requests, in pieces, on the ring, or on a worker thread.

use std::sync::Arc;

use dashpot_engine::inject::DataFault;
use dashpot_engine::{Device, Errno, Outcome, ZioId};
use dashpot_sys::Completion;

use super::StoreWork;
use super::lossy::changes;
use super::pool::request_of;
use crate::damage::spoil;
use crate::frontend::boundary::{CallWork, Frontend, Operation, Request};
use crate::message::Message;
use crate::shard::slots::Slot;
use crate::shard::submission::Submission;
use crate::shard::unfinished::{PIECE, is_long};
use crate::store::{Attempt, Change, Finished, Store};

impl StoreWork<'_> {
    /// Makes the store do a zio's work, now or later. Returns the outcome if it is already known.
    pub(crate) fn work(
        &mut self,
        id: ZioId,
        submission: &mut Option<Submission<'_>>,
    ) -> Option<Outcome> {
        if id.is_child() {
            return self.work_for_pool(id, submission);
        }
        let submission = submission.as_ref().filter(|write| write.zio() == id);
        let incoming = submission.map(Submission::payload);
        let slot = self.zios.slots.get_mut(id)?;
        slot.start();
        let store = self.storage.stores.of_mut(slot.device())?;
        self.timers.note_call(store.may_wait());
        let request = *slot.request();
        let (offset, length) = (request.offset, u64::from(request.length));
        self.storage.damages.begin(slot.device(), &request);
        let attempt = match request.operation {
            Operation::Read if store.reads_at_reply() => return Some(Ok(())),
            Operation::Read if store.reads_slowly(length) => Attempt::WouldBlock,
            Operation::Read => {
                let mut payload = self.zios.buffers.take_full(request.length);
                let attempt = store.read(offset, &mut payload);
                slot.put_payload(payload);
                attempt
            }
            _ if is_long(&request, store) => {
                self.storage.unfinished.push_piece(id, 0);
                return None;
            }
            operation if store.loses() && changes(operation) => {
                return self.change_lossy(id, incoming);
            }
            Operation::Write { fua } => match submission.filter(|_| store.copies_later()) {
                Some(write) => {
                    self.storage
                        .unfinished
                        .copy_later(slot.device(), offset, write.place());
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
                self.zios.end_work(id);
                Some(outcome)
            }
            Attempt::WouldBlock => {
                self.work_elsewhere(id, incoming);
                None
            }
        }
    }

    /// Makes the store do a zio's work with this damage, now or later. Returns the outcome if it is already known.
    pub(crate) fn work_damaged(
        &mut self,
        id: ZioId,
        fault: DataFault,
        submission: &mut Option<Submission<'_>>,
    ) -> Option<Outcome> {
        if id.is_child() {
            self.storage.damages.put(id, fault);
            return self.work_for_pool(id, submission);
        }
        let slot = self.zios.slots.get_mut(id)?;
        slot.start();
        let (device, request) = (slot.device(), *slot.request());
        if let Operation::Call(..) = request.operation {
            return self.begin_call(id, &request, CallWork::Short { seed: fault.seed });
        }
        if request.operation == Operation::Read {
            let (bytes, outcome) = self.read_damaged(id, device, request, fault)?;
            if self.storage.stores.of(device)?.reads_at_reply() {
                // A read of memory is charged for no bytes, because it usually holds none.
                let held = request.length.into();
                let slot = &mut self.zios.slots[id];
                slot.charge(held);
                self.zios.budget.charge(slot.export(), 0, held);
            }
            self.take_result(id, bytes, outcome);
            return Some(outcome);
        }
        if let Some(write) = submission.as_ref().filter(|write| write.zio() == id) {
            self.zios.keep_payload(id, write.payload());
        }
        let bytes = self.zios.slots[id].take_payload();
        let outcome = self.change_damaged(id, device, request, bytes, fault);
        // A worker thread has the payload until it is done.
        let is_kept = self.storage.stores.of(device)?.loses();
        if outcome.is_some() || (is_kept && !self.storage.damages.awaits(id)) {
            self.zios.end_work(id);
        }
        outcome
    }

    /// Lets a client's write ask again that has waited for room in its lossy store.
    fn retry_write(&mut self, id: ZioId) -> Option<Outcome> {
        let is_gone = |slot: &Slot| slot.connection().is_none();
        if self.zios.slots.get(id).is_none_or(is_gone) {
            Some(Err(Errno::Shutdown))
        } else if let Some(fault) = self.storage.damages.take(id) {
            self.work_damaged(id, fault, &mut None)
        } else {
            self.change_lossy(id, None)
        }
    }

    /// Begins the work for a program's system call on a file. The kernel does the work after the reply, but a
    /// rule may make the frontend sync the file first.
    fn work_for_call(&mut self, id: ZioId, request: &Request) -> Option<Outcome> {
        if self.engine.is_done_first(id) {
            self.begin_call(id, request, CallWork::Sync)
        } else {
            Some(Ok(()))
        }
    }

    /// Makes the frontend do this work for a call. Returns the outcome if there is no work to do.
    pub(super) fn begin_call(
        &mut self,
        id: ZioId,
        request: &Request,
        work: CallWork,
    ) -> Option<Outcome> {
        let connection = self.zios.slots.get(id).and_then(Slot::connection);
        let connection = connection.and_then(|connection| self.connections.get_mut(connection));
        let Some(connection) = connection else {
            return Some(Ok(()));
        };
        let mailbox = Arc::clone(&self.storage.mailbox);
        let done = Box::new(move |did: bool| {
            if work != CallWork::Sync && !did {
                let _ = mailbox.send(Message::Spared(id));
            }
            let finished = Finished {
                outcome: Ok(()),
                buffer: Vec::new(),
            };
            // If the shard is gone, it needs no answer.
            let _ = mailbox.send(Message::Done(id, finished));
        });
        let session = connection.session_mut();
        session.begin(request, work, done).map(|_| Ok(()))
    }

    /// Makes the ring or a worker thread do a zio's work.
    fn work_elsewhere(&mut self, id: ZioId, incoming: Option<&[u8]>) {
        let slot = &mut self.zios.slots[id];
        let (device, request) = (slot.device(), *slot.request());
        let payload = incoming.unwrap_or(slot.payload());
        let store = self.storage.stores.of(device);
        if self.storage.ring.start(store, id, &request, payload) {
            // The ring has made a copy of the payload, which is charged to the zio until its work has ended.
            if let Some(bytes) = incoming {
                slot.charge(bytes.len() as u64);
                self.zios
                    .budget
                    .charge(slot.export(), 0, bytes.len() as u64);
            }
            self.zios.buffers.give(slot.take_payload());
            return;
        }
        if let Some(bytes) = incoming {
            self.zios.keep_payload(id, bytes);
        }
        let slot = &mut self.zios.slots[id];
        let (payload, cancelled) = (slot.take_payload(), slot.cancellation());
        self.storage
            .send_to_thread(id, device, &request, payload, cancelled);
    }

    /// Takes the result of work that the ring has done.
    pub(crate) fn take_completion(&mut self, completion: Completion) -> Option<(ZioId, Outcome)> {
        let Completion {
            token,
            result,
            buffer,
        } = completion;
        let id = ZioId(token as u32);
        let (device, request) = self.asked_of_store(id)?;
        let store = self.storage.stores.of(device).and_then(Store::device)?;
        let outcome = match request.operation {
            Operation::Read => store.moved(result, request.length, false),
            Operation::Write { fua } => store.moved(result, request.length, fua),
            _ => store.synced(result),
        };
        let mut bytes = Vec::new();
        if request.operation == Operation::Read && outcome.is_ok() {
            bytes = self.zios.buffers.take(request.length);
            bytes.extend_from_slice(buffer.bytes());
        }
        if let Some(ring) = self.storage.ring.get_mut() {
            ring.give(buffer);
        }
        self.take_result(id, bytes, outcome);
        Some((id, outcome))
    }

    /// Takes the bytes that the ring or a worker thread has read.
    pub(crate) fn take_result(&mut self, id: ZioId, mut bytes: Vec<u8>, outcome: Outcome) {
        if let Some((device, _)) = self.asked_of_store(id)
            && let Some((_, lossy)) = self.storage.stores.lossy(device)
        {
            lossy.end_read(id, &mut bytes);
        }
        if let Some(fault) = self.storage.damages.take(id)
            && outcome.is_ok()
            && let Some((_, request)) = self.asked_of_store(id)
            && request.operation == Operation::Read
        {
            spoil(&fault, request.offset, &mut bytes);
        }
        if id.is_child() {
            return self.take_result_for_pool(id, bytes, outcome);
        }
        if let Some(slot) = self.zios.slots.get_mut(id) {
            slot.put_payload(bytes);
        }
        self.zios.end_work(id);
    }

    /// The device and the request of a zio whose work a store has been asked to do.
    fn asked_of_store(&self, id: ZioId) -> Option<(Device, Request)> {
        if id.is_child() {
            let zio = self.engine.child(id)?;
            return Some((Device::Disk(zio.device), request_of(&zio)));
        }
        let slot = self.zios.slots.get(id)?;
        Some((slot.device(), *slot.request()))
    }

    /// Does the next piece of a zio's work, of which `done` bytes are already done. Returns how many bytes
    /// are done now, or the outcome if the work has ended.
    pub(crate) fn work_piece(&mut self, id: ZioId, done: u64) -> Option<Result<u64, Outcome>> {
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
        let store = self.storage.stores.of_mut(device)?;
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
