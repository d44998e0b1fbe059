//! Does the store's work with damage, and notes which bytes are wrong then.

use dashpot_engine::inject::{Damage, DataFault};
use dashpot_engine::{Device, Outcome, ZioId};

use super::StoreWork;
use crate::damage::{DamagedIo, Plan, spoil};
use crate::frontend::boundary::{Operation, Request};
use crate::shard::slots::Slot;
use crate::store::{Attempt, Change, ChangeAnswer};

impl StoreWork<'_> {
    /// Reads for a zio. Returns the damaged bytes and the outcome; `None` if a worker thread reads.
    pub(super) fn read_damaged(
        &mut self,
        id: ZioId,
        device: Device,
        request: Request,
        fault: DataFault,
    ) -> Option<(Vec<u8>, Outcome)> {
        let from = self.note(id, device, &request, &fault).done;
        let mut bytes = self.zios.buffers.take_full(request.length);
        let Some((offset, _)) = from else {
            bytes.fill(0);
            return Some((bytes, Ok(())));
        };
        let store = self.storage.stores.of(device)?;
        self.timers.note_call(store.may_wait());
        if !store.reads_slowly(request.length.into())
            && let Attempt::Done(outcome) = store.read(offset, &mut bytes)
        {
            spoil(&fault, request.offset, &mut bytes);
            return Some((bytes, outcome));
        }
        self.storage.damages.put(id, fault);
        let slot = self.zios.slots.get_mut(id).filter(|_| !id.is_child());
        let cancelled = slot.map(Slot::cancellation).unwrap_or_default();
        let asked = Request { offset, ..request };
        self.storage
            .send_to_thread(id, device, &asked, bytes, cancelled);
        None
    }

    /// Does the work of a zio that changes the store. `bytes` has the payload of a write. If the zio must wait for
    /// room in a lossy store, its slot gets the payload back, and it awaits its damage.
    pub(super) fn change_damaged(
        &mut self,
        id: ZioId,
        device: Device,
        request: Request,
        mut bytes: Vec<u8>,
        fault: DataFault,
    ) -> Option<Outcome> {
        let room = bytes.len() as u64;
        if let Some((_, lossy)) = self.storage.stores.lossy(device)
            && fault.damage != Damage::Drop
            && lossy.is_full_for(room)
        {
            if !id.is_child() {
                self.zios.slots[id].put_payload(bytes);
            }
            self.storage.damages.put(id, fault);
            self.storage.park(id, device, 0);
            return None;
        }
        let plan = self.note(id, device, &request, &fault);
        let Some((offset, part)) = plan.done else {
            return Some(Ok(()));
        };
        spoil(&fault, request.offset, &mut bytes);
        bytes.truncate(part.end);
        bytes.drain(..part.start);
        let fua = request.operation == Operation::Write { fua: true };
        let asked = Request {
            offset,
            length: bytes.len() as u32,
            operation: Operation::Write {
                fua: fua && fault.damage != Damage::Lie,
            },
            ..request
        };
        self.write_damaged(id, device, asked, bytes)
    }

    fn write_damaged(
        &mut self,
        id: ZioId,
        device: Device,
        request: Request,
        bytes: Vec<u8>,
    ) -> Option<Outcome> {
        let offset = request.offset;
        let fua = request.operation == Operation::Write { fua: true };
        let store = self.storage.stores.of_mut(device)?;
        if store.loses() {
            let bytes = &bytes;
            let change = Change::Write { offset, bytes, fua };
            return (self.ask_lossy(id, device, change) == ChangeAnswer::Done).then_some(Ok(()));
        }
        match store.write(offset, &bytes, fua) {
            Attempt::Done(outcome) => Some(outcome),
            Attempt::WouldBlock => {
                self.storage
                    .send_to_thread(id, device, &request, bytes, Default::default());
                None
            }
        }
    }

    /// Notes what a damaged zio does to the disk.
    fn note(&mut self, id: ZioId, device: Device, request: &Request, fault: &DataFault) -> Plan {
        let (op, _) = request.operation.for_engine();
        let size = self.storage.size(device);
        let plan = Plan::of(fault, op, request.offset, request.length, size);
        self.storage.damages.begin(device, request);
        let io = DamagedIo {
            at: self.timers.now(),
            rule: fault.rule,
            damage: fault.damage,
            seed: fault.seed,
            client: self.client_of(id),
            op,
            offset: request.offset,
            length: request.length,
            wrong: plan.wrong.clone(),
            other: plan.other,
        };
        self.storage.damages.note(device, io);
        plan
    }
}
