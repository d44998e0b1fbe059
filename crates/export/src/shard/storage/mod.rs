//! Storage: the stores of a shard's disks, the blocks of its volumes, and the work that stores have not
//! finished.
//!
//! Storage never calls the engine. It returns outcomes, and the shard passes them on.

mod damage;
mod lossy;
mod moves;
mod pool;
mod work;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dashpot_engine::{Device, DiskId, Engine, Errno, Instant, PoolId, ZioId};

use super::block_memory::BlockMemory;
use super::connections::Connections;
use super::damages::Damages;
use super::device_ring::DeviceRing;
use super::exports::{Exports, Stores};
use super::timers::Timers;
use super::unfinished::Unfinished;
use super::zios::Zios;
use crate::complain::complain;
use crate::frontend::boundary::{Operation, Request};
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::power::{Cut, CutError, Loss};
use crate::store::{Finished, Job, Keeper, PoolOperation, Store, Workers};

pub(super) struct Storage {
    pub(super) stores: Stores,
    blocks: BlockMemory,
    unfinished: Unfinished,
    ring: DeviceRing,
    pub(super) damages: Damages,
    /// The sizes of the disks, in bytes.
    sizes: Vec<u64>,
    /// The keepers, which write the records of pools' mirrors. A pool whose mirrors have no durable record
    /// has no keeper.
    keepers: HashMap<PoolId, Keeper>,
    /// Worker threads and keepers send their results to this mailbox.
    mailbox: Arc<Mailbox<Message>>,
}

/// The work of stores on zios: the storage, and the parts of the shard that it works with.
pub(super) struct StoreWork<'a> {
    pub(super) storage: &'a mut Storage,
    pub(super) engine: &'a Engine,
    pub(super) exports: &'a Exports,
    pub(super) connections: &'a mut Connections,
    pub(super) zios: &'a mut Zios,
    pub(super) timers: &'a mut Timers,
}

impl Storage {
    pub(super) fn new(
        stores: Vec<Store>,
        sizes: Vec<u64>,
        workers: Arc<Workers>,
        ring: DeviceRing,
        keepers: HashMap<PoolId, Keeper>,
        mailbox: Arc<Mailbox<Message>>,
    ) -> Storage {
        Storage {
            stores: Stores::new(stores),
            blocks: BlockMemory::default(),
            unfinished: Unfinished::new(workers),
            ring,
            damages: Damages::default(),
            sizes,
            keepers,
            mailbox,
        }
    }

    /// The size of a disk in bytes. A volume has no rules, so nobody asks for its size.
    fn size(&self, device: Device) -> u64 {
        match device {
            Device::Disk(disk) => self.sizes[disk.0 as usize],
            Device::Volume(_) => 0,
        }
    }

    pub(super) fn blocks(&self) -> &BlockMemory {
        &self.blocks
    }

    pub(super) fn ring(&mut self) -> &mut DeviceRing {
        &mut self.ring
    }

    /// Whether there is work for the next pass.
    pub(super) fn is_busy(&mut self) -> bool {
        self.unfinished.has_pieces() || self.ring.is_busy()
    }

    /// See [`Unfinished::copy_now`].
    pub(super) fn copy_now(&mut self, received: &[u8]) {
        self.unfinished.copy_now(&mut self.stores, received);
    }

    pub(super) fn unfinished(&mut self) -> &mut Unfinished {
        &mut self.unfinished
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
        if let Some((_, lossy)) = self.stores.lossy(device) {
            lossy.begin_read(id, request.offset, u64::from(request.length));
        }
        let operation = pool_operation(request, payload);
        self.submit(device, operation, cancelled, move |finished| {
            Message::Done(id, finished)
        });
    }

    /// Makes a worker thread work for a store that may block. Its result comes back as a message.
    fn submit(
        &self,
        device: Device,
        operation: PoolOperation,
        cancelled: Arc<AtomicBool>,
        message: impl FnOnce(Finished) -> Message + Send + 'static,
    ) {
        let mailbox = Arc::clone(&self.mailbox);
        let finish: Box<dyn FnOnce(Finished) + Send> = Box::new(move |finished| {
            // If the shard is gone, it needs no answer.
            let _ = mailbox.send(message(finished));
        });
        let Some(store) = self.stores.of(device).and_then(Store::blocking) else {
            debug_assert!(false, "a store that cannot block has refused to work");
            complain(format_args!(
                "the store of {device:?} cannot wait for its medium: an I/O fails"
            ));
            let (outcome, buffer) = (Err(Errno::Io), Vec::new());
            return finish(Finished { outcome, buffer });
        };
        self.unfinished.submit(Job {
            store,
            operation,
            cancelled,
            finish,
        });
    }

    /// Notes that the reply to a zio has left, or that a pool has got the result. `told` is its number.
    pub(super) fn told(&mut self, id: ZioId, device: Device, told: u64) {
        if let Some((disk, lossy)) = self.stores.lossy(device)
            && lossy.told(id, told)
        {
            self.unfinished.tend(disk);
        }
    }

    pub(super) fn forget(&mut self, id: ZioId, device: Device) {
        self.damages.take(id);
        if let Some((_, lossy)) = self.stores.lossy(device) {
            lossy.forget(id);
        }
    }

    /// Makes the lossy stores of these disks begin no batch. Returns whether one is still at the medium.
    pub(super) fn pause(&mut self, disks: &[DiskId]) -> bool {
        let mut is_busy = false;
        for disk in disks {
            if let Some((_, lossy)) = self.stores.lossy(Device::Disk(*disk)) {
                lossy.pause();
                is_busy |= lossy.is_at_medium();
            }
        }
        is_busy
    }

    /// Lets the lossy stores of these disks go on. Returns those whose media lack something, if the power was
    /// cut.
    pub(super) fn resume(&mut self, mut disks: Vec<DiskId>, were_cut: bool) -> Vec<DiskId> {
        disks.retain(|disk| {
            let lossy = self.stores.lossy(Device::Disk(*disk));
            let is_lossy = lossy.is_some();
            if let Some((disk, lossy)) = lossy {
                lossy.resume();
                self.unfinished.tend(disk);
            }
            is_lossy && were_cut
        });
        disks
    }

    /// Cuts the power of a device's store.
    pub(super) fn cut(
        &mut self,
        device: Device,
        cut: &Cut,
        now: Instant,
    ) -> Result<Loss, CutError> {
        let lossy = self.stores.lossy(device);
        let loss = lossy.map(|(_, lossy)| lossy.cut(cut, now));
        loss.ok_or(CutError::LosesNothing)
    }

    /// Makes the keeper of a pool write the record of the pool's mirrors durably. The keeper does so on its
    /// own thread. Returns false if the pool has no keeper, and so nothing to record.
    pub(super) fn record_mirrors(&self, pool: PoolId, engine: &Engine) -> bool {
        let Some(keeper) = self.keepers.get(&pool) else {
            return false;
        };
        let records = engine.mirror_records(pool);
        let mailbox = Arc::clone(&self.mailbox);
        keeper.keep(records, move |outcome| {
            // If the shard is gone, it needs no answer.
            let _ = mailbox.send(Message::Recorded(pool, outcome));
        });
        true
    }

    /// Makes the keepers write their last records, and waits for them. If all stores have been `synced`,
    /// these records name only the regions that are not repaired yet.
    pub(super) fn record_last(&mut self, engine: &Engine, synced: bool) {
        for (pool, keeper) in self.keepers.drain() {
            let records = if synced {
                engine.last_mirror_records(pool)
            } else {
                engine.mirror_records(pool)
            };
            keeper.keep(records, drop);
        }
    }

    /// Takes all unfinished pieces of work, those too that wait for room in a lossy store.
    pub(super) fn take_pieces(&mut self) -> Vec<(ZioId, u64)> {
        let mut pieces = self.unfinished.take_pieces();
        for (_, store) in self.stores.iter_mut() {
            if let Some(lossy) = store.lossy_mut() {
                pieces.extend(lossy.take_parked());
            }
        }
        pieces
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
