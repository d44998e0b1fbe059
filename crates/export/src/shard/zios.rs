//! The zios of clients that are in flight, with the payloads and the memory that they hold.

use dashpot_engine::{Device, ZioId};

use super::budget::Budget;
use super::buffers::Buffers;
use super::slots::Slots;
use crate::frontend::boundary::Operation;

pub(super) struct Zios {
    pub(super) slots: Slots,
    pub(super) buffers: Buffers,
    pub(super) budget: Budget,
}

impl Zios {
    pub(super) fn new(exports: usize) -> Zios {
        Zios {
            slots: Slots::default(),
            buffers: Buffers::default(),
            budget: Budget::new(exports),
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

    /// Copies a payload from the receive buffer to a buffer of its own.
    pub(super) fn keep_payload(&mut self, id: ZioId, bytes: &[u8]) {
        let slot = &mut self.slots[id];
        let mut payload = self.buffers.take(slot.request().length);
        payload.extend_from_slice(bytes);
        slot.put_payload(payload);
        slot.charge(bytes.len() as u64);
        self.budget.charge(slot.export(), 0, bytes.len() as u64);
    }

    /// A part of the data of a read's reply.
    pub(super) fn reply_part(&mut self, zio: ZioId, at: u32, length: u32) -> &mut [u8] {
        let (at, length) = (at as usize, length as usize);
        &mut self.slots[zio].reply_mut(&mut self.buffers)[at..at + length]
    }

    /// Forgets a zio that the engine has finished with. Returns its device.
    pub(super) fn forget(&mut self, id: ZioId) -> Option<Device> {
        let slot = self.slots.get_mut(id)?;
        self.buffers.give(slot.take_payload());
        let device = slot.device();
        self.budget.give_back(slot.export(), 1, slot.take_charge());
        self.slots.remove(id);
        Some(device)
    }
}
