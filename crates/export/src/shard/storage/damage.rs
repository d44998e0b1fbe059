//! Does the work of zios whose data a rule damages, and notes which bytes are wrong then.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use dashpot_engine::inject::{Damage, DataFault};
use dashpot_engine::{Device, DiskId, Outcome, ZioId};

use super::StoreWork;
use super::lossy::changes;
use crate::damage::{DamageLog, DamageReport, DamagedIo, Plan, spoil};
use crate::frontend::boundary::{Operation, Request};
use crate::shard::slots::Slot;
use crate::shard::submission::Submission;
use crate::store::{Attempt, Change, ChangeAnswer};

/// The damage of a shard's disks.
#[derive(Debug, Default)]
pub(crate) struct Damages {
    logs: HashMap<DiskId, DamageLog>,
    /// The disks that have begun to be full of wrong bytes, or have room again.
    news: Vec<(DiskId, bool)>,
    /// How many disks have wrong bytes.
    wrong: usize,
    /// The zios that are still to be damaged: reads that a store works on, and changes that wait.
    faults: HashMap<ZioId, DataFault>,
}

impl Damages {
    /// Notes that a zio makes these bytes right.
    #[inline]
    pub(super) fn overwrite(&mut self, device: Device, offset: u64, length: u32) {
        if self.wrong > 0 {
            self.overwrite_wrong(device, offset..offset + u64::from(length));
        }
    }

    #[cold]
    fn overwrite_wrong(&mut self, device: Device, range: Range<u64>) {
        if let Device::Disk(disk) = device
            && let Some(log) = self.logs.get_mut(&disk)
        {
            let was_full = log.is_full();
            log.overwrite(&range);
            self.notice(disk, was_full);
        }
    }

    /// Counts a disk anew, whose wrong bytes have changed.
    fn notice(&mut self, disk: DiskId, was_full: bool) {
        self.wrong = self.logs.values().filter(|log| log.has_wrong()).count();
        let is_full = self.logs.get(&disk).is_some_and(DamageLog::is_full);
        if is_full != was_full {
            self.news.push((disk, is_full));
        }
    }

    /// Takes the disks that have begun to be full of wrong bytes, or have room again.
    #[inline]
    pub(crate) fn take_news(&mut self) -> Option<(DiskId, bool)> {
        self.news.pop()
    }

    /// Takes the damage that a zio still is to get.
    #[inline]
    pub(super) fn take(&mut self, id: ZioId) -> Option<DataFault> {
        if self.faults.is_empty() {
            return None;
        }
        self.faults.remove(&id)
    }

    /// Whether a zio still is to be damaged.
    #[inline]
    pub(super) fn awaits(&self, id: ZioId) -> bool {
        !self.faults.is_empty() && self.faults.contains_key(&id)
    }

    pub(super) fn put(&mut self, id: ZioId, fault: DataFault) {
        self.faults.insert(id, fault);
    }

    fn note(&mut self, disk: DiskId, io: DamagedIo) {
        let log = self.logs.entry(disk).or_default();
        let was_full = log.is_full();
        log.note(io);
        self.notice(disk, was_full);
    }

    /// How many I/Os of a disk have been damaged, and how many of its bytes are wrong now.
    pub(crate) fn of(&self, disk: DiskId) -> (u64, u64) {
        let log = self.logs.get(&disk);
        log.map_or((0, 0), |log| (log.total(), log.wrong_bytes()))
    }

    pub(crate) fn report(&self, disk: DiskId) -> DamageReport {
        let log = self.logs.get(&disk);
        log.map_or_else(DamageReport::default, DamageLog::report)
    }
}

impl StoreWork<'_> {
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
        if request.operation == Operation::Read {
            return self.read_damaged(id, device, request, fault);
        }
        if let Some(write) = submission.as_ref().filter(|write| write.zio() == id) {
            self.zios.keep_payload(id, write.payload());
        }
        let bytes = self.zios.slots[id].take_payload();
        let outcome = self.change_damaged(id, device, request, bytes, fault);
        if !self.storage.damages.awaits(id) {
            self.zios.end_work(id);
        }
        outcome
    }

    /// Reads for a zio, perhaps elsewhere.
    pub(super) fn read_damaged(
        &mut self,
        id: ZioId,
        device: Device,
        request: Request,
        fault: DataFault,
    ) -> Option<Outcome> {
        let from = self.note(id, device, &request, &fault).done;
        let mut bytes = self.zios.buffers.take_full(request.length);
        let store = self.storage.stores.of(device)?;
        let reads_at_reply = store.reads_at_reply();
        self.timers.note_call(store.may_wait());
        let attempt = match &from {
            None => {
                bytes.fill(0);
                Attempt::Done(Ok(()))
            }
            Some(_) if store.reads_slowly(request.length.into()) => Attempt::WouldBlock,
            Some((offset, _)) => store.read(*offset, &mut bytes),
        };
        self.storage.damages.put(id, fault);
        let slot = self.zios.slots.get_mut(id).filter(|_| !id.is_child());
        match (attempt, from) {
            (Attempt::Done(outcome), _) => {
                if let Some(slot) = slot.filter(|_| reads_at_reply) {
                    // A read of memory is charged for no bytes, because it usually holds none.
                    let held = request.length.into();
                    slot.charge(held);
                    self.zios.budget.charge(slot.export(), 0, held);
                }
                self.take_result(id, bytes, outcome);
                Some(outcome)
            }
            (Attempt::WouldBlock, from) => {
                let cancelled = slot.map(Slot::cancellation).unwrap_or_default();
                let offset = from.map_or(request.offset, |(offset, _)| offset);
                let asked = Request { offset, ..request };
                self.storage
                    .send_to_thread(id, device, &asked, bytes, cancelled);
                None
            }
        }
    }

    /// Damages the bytes that a store has read for a zio.
    pub(super) fn spoil_read(&mut self, id: ZioId, bytes: &mut [u8], outcome: Outcome) {
        if let Some(fault) = self.storage.damages.take(id)
            && outcome.is_ok()
            && let Some((_, request)) = self.asked_of_store(id)
            && request.operation == Operation::Read
        {
            spoil(&fault, request.offset, bytes);
        }
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
                    .send_to_thread(id, device, &request, bytes, Arc::default());
                None
            }
        }
    }

    /// Notes what a damaged zio does to the disk.
    fn note(&mut self, id: ZioId, device: Device, request: &Request, fault: &DataFault) -> Plan {
        let Device::Disk(disk) = device else {
            unreachable!("rules are on disks");
        };
        let (op, _) = request.operation.for_engine();
        let size = self.storage.sizes[disk.0 as usize];
        let plan = Plan::of(fault, op, request.offset, request.length, size);
        if changes(request.operation) {
            self.storage
                .damages
                .overwrite(device, request.offset, request.length);
        }
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
        self.storage.damages.note(disk, io);
        plan
    }
}
