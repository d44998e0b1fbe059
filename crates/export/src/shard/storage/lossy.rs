//! Makes lossy stores do the work of zios, and tells them which zios have happened: those whose clients have
//! got the reply.

use std::sync::Arc;

use dashpot_engine::{Device, DiskId, Engine, Outcome, ZioId};

use super::{Storage, StoreWork};
use crate::frontend::boundary::{Operation, Request};
use crate::message::Message;
use crate::store::{Asker, Change, ChangeAnswer, Ended, Finished, Going, PoolOperation, Settled};

impl StoreWork<'_> {
    /// Asks a lossy store for the work of a client's zio that changes the store. Returns the outcome if it is
    /// already known.
    pub(super) fn change_lossy(&mut self, id: ZioId, incoming: Option<&[u8]>) -> Option<Outcome> {
        let slot = self.zios.slots.get_mut(id)?;
        let (device, request) = (slot.device(), *slot.request());
        let own = match incoming {
            Some(_) => Vec::new(),
            None => slot.take_payload(),
        };
        let bytes = incoming.unwrap_or(&own);
        match self.ask_lossy(id, device, change_of(&request, bytes)?) {
            ChangeAnswer::Full => {
                match incoming {
                    Some(bytes) => self.zios.keep_payload(id, bytes),
                    None => self.zios.slots.get_mut(id)?.put_payload(own),
                }
                self.storage.park(id, device, 0);
                None
            }
            asked => {
                self.zios.buffers.give(own);
                self.zios.end_work(id);
                (asked == ChangeAnswer::Done).then_some(Ok(()))
            }
        }
    }

    /// Asks a lossy store for the work of a pool's zio that changes the store. Returns the outcome if it is
    /// already known.
    pub(super) fn change_lossy_for_pool(
        &mut self,
        id: ZioId,
        device: Device,
        request: &Request,
        bytes: Vec<u8>,
    ) -> Option<Outcome> {
        let asked = self.ask_lossy(id, device, change_of(request, &bytes)?);
        self.zios.buffers.give(bytes);
        if asked == ChangeAnswer::Full {
            self.storage.park(id, device, 0);
        }
        (asked == ChangeAnswer::Done).then_some(Ok(()))
    }

    /// Asks a lossy store for a piece of a zeroing or a trim, of which `done` bytes are already done. Returns
    /// how many bytes are done now, or the outcome if the work has ended.
    pub(super) fn zero_lossy_piece(
        &mut self,
        id: ZioId,
        device: Device,
        piece: Change<'_>,
        done: u64,
    ) -> Option<Result<u64, Outcome>> {
        let Change::Zero { length, last, .. } = piece else {
            return None;
        };
        match self.ask_lossy(id, device, piece) {
            ChangeAnswer::Done if !last => Some(Ok(done + length)),
            ChangeAnswer::Done => Some(Err(Ok(()))),
            ChangeAnswer::Later => None,
            ChangeAnswer::Full => {
                self.storage.park(id, device, done);
                None
            }
        }
    }

    /// The name of a zio's client.
    pub(super) fn client_of(&self, id: ZioId) -> Arc<str> {
        match self.zios.slots.get(id).filter(|_| !id.is_child()) {
            Some(slot) if slot.connection().is_some() => {
                self.exports.client_name(slot.export(), slot.client())
            }
            Some(_) => "gone".into(),
            None => volume_name(self.engine, id),
        }
    }

    pub(super) fn ask_lossy(
        &mut self,
        id: ZioId,
        device: Device,
        change: Change<'_>,
    ) -> ChangeAnswer {
        let at = self.timers.now();
        let client = self.client_of(id);
        let asker = Asker {
            zio: Some(id),
            client,
            told_before: self.engine.told_before(id).unwrap_or(0),
            at,
        };
        let Some((disk, lossy)) = self.storage.stores.lossy(device) else {
            return ChangeAnswer::Done;
        };
        let asked = lossy.ask(asker, change);
        if asked == ChangeAnswer::Later {
            self.storage.unfinished.tend(disk);
        }
        asked
    }
}

impl Storage {
    /// Makes a zio wait until its lossy store has room.
    pub(super) fn park(&mut self, id: ZioId, device: Device, done: u64) {
        if let Some((disk, lossy)) = self.stores.lossy(device) {
            lossy.park(id, done);
            self.unfinished.tend(disk);
        }
    }

    /// Lets a lossy store move some bytes. Returns the tasks that have ended.
    pub(crate) fn tend(&mut self, disk: DiskId) -> Vec<Ended> {
        let (mut ended, mut moved) = (Vec::new(), 0);
        let Some((_, lossy)) = self.stores.lossy(Device::Disk(disk)) else {
            return ended;
        };
        let going = loop {
            match lossy.go_on(&mut ended) {
                Going::More(bytes) if moved + bytes < MOVED_MAX && ended.len() < ENDED_MAX => {
                    moved += bytes;
                }
                going => break going,
            }
        };
        match going {
            Going::Idle => {}
            Going::More(_) => self.unfinished.tend(disk),
            Going::Elsewhere(batch) => {
                let settle = PoolOperation::Settle(batch);
                self.submit(
                    Device::Disk(disk),
                    settle,
                    Arc::default(),
                    move |finished| Message::Settled(disk, finished),
                );
            }
        }
        ended
    }

    /// Takes the result of a batch. Returns the tasks that have ended.
    pub(crate) fn settled(&mut self, disk: DiskId, finished: Finished) -> Vec<Ended> {
        let mut ended = Vec::new();
        if let Some((_, lossy)) = self.stores.lossy(Device::Disk(disk)) {
            let settled = Settled::new(finished.outcome, finished.buffer);
            lossy.settled(&settled, &mut ended);
            self.unfinished.tend(disk);
        }
        ended
    }
}

/// Whether an operation changes the state of a store.
pub(super) fn changes(operation: Operation) -> bool {
    !matches!(
        operation,
        Operation::Read | Operation::Cache | Operation::Call(..)
    )
}

/// The change that a request makes. `None` if it makes none.
fn change_of<'a>(request: &Request, bytes: &'a [u8]) -> Option<Change<'a>> {
    let (offset, length) = (request.offset, u64::from(request.length));
    let last = true;
    match request.operation {
        Operation::Write { fua } => Some(Change::Write { offset, bytes, fua }),
        Operation::Trim { fua } | Operation::Zero { fua, .. } => Some(Change::Zero {
            offset,
            length,
            fua,
            last,
        }),
        Operation::Flush => Some(Change::Flush),
        Operation::Read | Operation::Cache | Operation::Call(..) => None,
    }
}

/// The name of the volume or the pool that has sent a zio to its disk.
fn volume_name(engine: &Engine, id: ZioId) -> Arc<str> {
    let name = engine.child(id).and_then(|zio| {
        let mut clients = engine.clients(zio.device);
        clients.find_map(|(id, name)| (id == zio.client).then_some(name))
    });
    name.unwrap_or("other").into()
}

/// In a pass, a lossy store moves about this many bytes.
const MOVED_MAX: u64 = 1 << 20;
/// In a pass, a lossy store ends at most this many tasks.
const ENDED_MAX: usize = 64;
