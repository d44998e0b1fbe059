//! Takes the results of an io_uring, which does the work of stores on block devices in parallel.

use dashpot_engine::{Input, ZioId};
use dashpot_sys::Completion;

use super::Shard;
use crate::frontend::boundary::Operation;
use crate::store::Store;

impl Shard {
    /// Takes the results of finished work, at most [`COMPLETIONS_PER_PASS`] of them.
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
        let Some((device, request)) = self.asked_of_store(id) else {
            return;
        };
        let store = self.stores.of(device);
        let Some(store) = store.and_then(Store::device) else {
            return;
        };
        let outcome = match request.operation {
            Operation::Read => store.moved(result, request.length, false),
            Operation::Write { fua } => store.moved(result, request.length, fua),
            _ => store.synced(result),
        };
        let mut bytes = Vec::new();
        if request.operation == Operation::Read && outcome.is_ok() {
            bytes = self.buffers.take(request.length);
            bytes.extend_from_slice(buffer.bytes());
        }
        if let Some(ring) = self.device_ring.get_mut() {
            ring.give(buffer);
        }
        self.take_result(id, bytes, outcome);
        self.step(Input::Done(id, outcome), None);
    }
}

/// How many results the shard takes before it looks at the sockets.
const COMPLETIONS_PER_PASS: usize = 256;
