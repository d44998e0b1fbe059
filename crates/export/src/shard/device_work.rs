//! The work of stores on block devices. A ring of the kernel does all of it in parallel.

use dashpot_engine::{Input, ZioId};
use dashpot_sys::{Completion, Work};

use super::Shard;
use crate::frontend::boundary::{Operation, Request};
use crate::store::Store;

impl Shard {
    /// Gives a zio's work to the ring. Returns whether the ring does the work; if not, the pool
    /// must do it.
    pub(super) fn send_to_ring(&mut self, id: ZioId, incoming: Option<&[u8]>) -> bool {
        let Some(slot) = self.slots.get_mut(id) else {
            return false;
        };
        let store = self.stores.of(slot.device());
        let Some(store) = store.and_then(Store::device) else {
            return false;
        };
        let Some(ring) = self.device_ring.get_mut() else {
            return false;
        };
        let request = *slot.request();
        let Some(work) = work(&request, incoming.unwrap_or(slot.payload())) else {
            return false;
        };
        if ring.start(store.device(), id.0.into(), work).is_err() {
            return false;
        }
        // The ring has a copy of the payload, for which the zio is charged until the work has ended.
        if let Some(bytes) = incoming {
            slot.charge(bytes.len() as u64);
            self.budget.charge(slot.export(), 0, bytes.len() as u64);
        }
        self.buffers.give(slot.take_payload());
        true
    }

    /// Takes the results of as much work as one pass may.
    pub(super) fn end_device_work(&mut self) {
        for _ in 0..COMPLETIONS_PER_PASS {
            let Some(completion) = self.device_ring.next_completion() else {
                return;
            };
            self.read_clock();
            self.device_work_done(completion);
        }
    }

    fn device_work_done(&mut self, completion: Completion) {
        let Completion {
            token,
            result,
            buffer,
        } = completion;
        let id = ZioId(token as u32);
        let Some(slot) = self.slots.get_mut(id) else {
            return;
        };
        let store = self.stores.of(slot.device());
        let Some(store) = store.and_then(Store::device) else {
            return;
        };
        let request = *slot.request();
        let outcome = match request.operation {
            Operation::Read => store.moved(result, request.length, false),
            Operation::Write { fua } => store.moved(result, request.length, fua),
            _ => store.synced(result),
        };
        if request.operation == Operation::Read && outcome.is_ok() {
            let mut payload = self.buffers.take(request.length);
            payload.extend_from_slice(buffer.bytes());
            slot.put_payload(payload);
        }
        if let Some(ring) = self.device_ring.get_mut() {
            ring.give(buffer);
        }
        self.end_work(id);
        self.step(Input::Done(id, outcome), None);
    }
}

/// The work of a request, if the ring does such work.
fn work<'a>(request: &Request, payload: &'a [u8]) -> Option<Work<'a>> {
    let offset = request.offset;
    match request.operation {
        Operation::Read => Some(Work::Read {
            offset,
            length: request.length,
        }),
        Operation::Write { fua } => Some(Work::Write {
            offset,
            from: payload,
            durable: fua,
        }),
        Operation::Flush => Some(Work::Sync),
        Operation::Trim { .. } | Operation::Zero { .. } | Operation::Cache => None,
    }
}

/// Results taken before the sockets have their turn.
const COMPLETIONS_PER_PASS: usize = 256;
