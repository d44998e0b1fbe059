//! The zios in flight on a shard. The slot of a zio has the zio's bytes, if there are any, and the connection
//! that gets the zio's reply.

use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashpot_engine::{ClientId, Device, Instant, Outcome, Span, ZioId};

use super::buffers::Buffers;
use crate::complain::complain;
use crate::export::ExportId;
use crate::frontend::boundary::Request;

/// A client's zio that the engine has not finished with.
#[derive(Debug)]
pub(super) struct Slot {
    /// The place of the zio's connection, unless the connection is gone.
    connection: Option<u32>,
    export: ExportId,
    client: ClientId,
    /// The device behind the export.
    device: Device,
    request: Request,
    data: Data,
    /// How many bytes are charged to the budget for the zio.
    charged: u64,
    /// Set to tell a worker thread not to start the zio's work any more.
    cancelled: Option<Arc<AtomicBool>>,
    /// The outcome that the engine decided. Once there is an outcome, a reply is on its way.
    outcome: Option<Outcome>,
    /// Whether the store has begun the zio's work, or the whole payload has been copied to a volume's blocks.
    started: bool,
    /// How many bytes of the payload have been copied to the blocks of a volume.
    copied: u32,
    /// When the shard first offered the reply to the transport, or could have offered it if the transport had
    /// not been blocked.
    offered: Option<Instant>,
    /// The next younger zio in the list of the connection's zios.
    previous: Option<ZioId>,
    /// The next older zio in the list of the connection's zios.
    next: Option<ZioId>,
}

/// The bytes to write, or those that were read.
#[derive(Debug)]
enum Data {
    /// The zio's own buffer. It is empty for most of the zio's life.
    Own(Vec<u8>),
    /// The part of a volume's block that the engine has lent for the reply.
    Lent(Span),
}

/// The compiler copies larger slots with a call of `memcpy`, which took 1 % of a small read's time.
const _: () = assert!(size_of::<Slot>() <= 128);

/// The client that sent a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The place of the client's connection.
    pub(super) connection: usize,
    pub(super) export: ExportId,
    pub(super) client: ClientId,
}

impl Slot {
    #[inline]
    pub(super) fn new(origin: Origin, device: Device, request: Request, charged: u64) -> Slot {
        Slot {
            connection: Some(origin.connection as u32),
            export: origin.export,
            client: origin.client,
            device,
            request,
            data: Data::Own(Vec::new()),
            charged,
            cancelled: None,
            outcome: None,
            started: false,
            copied: 0,
            offered: None,
            previous: None,
            next: None,
        }
    }

    #[inline]
    pub(super) fn connection(&self) -> Option<usize> {
        self.connection.map(|at| at as usize)
    }

    #[inline]
    pub(super) fn export(&self) -> ExportId {
        self.export
    }

    #[inline]
    pub(super) fn client(&self) -> ClientId {
        self.client
    }

    #[inline]
    pub(super) fn device(&self) -> Device {
        self.device
    }

    #[inline]
    pub(super) fn request(&self) -> &Request {
        &self.request
    }

    /// Notes that the shard has asked the store to do the zio's work.
    #[inline]
    pub(super) fn start(&mut self) {
        self.started = true;
    }

    #[inline]
    pub(super) fn is_started(&self) -> bool {
        self.started
    }

    /// Notes that this many more bytes of the payload have been copied to the blocks of a volume. Returns
    /// whether the whole payload has been copied.
    pub(super) fn copied(&mut self, bytes: u32) -> bool {
        self.copied += bytes;
        self.started = self.copied >= self.request.length;
        self.started
    }

    /// The buffer for the data of a read's reply, which the caller fills part by part.
    pub(super) fn reply_mut(&mut self, buffers: &mut Buffers) -> &mut [u8] {
        if self.payload().is_empty() {
            self.data = Data::Own(buffers.take_full(self.request.length));
        }
        match &mut self.data {
            Data::Own(payload) => payload,
            Data::Lent(_) => &mut [],
        }
    }

    /// Notes the part of a volume's block that is the whole data of the reply.
    pub(super) fn lend(&mut self, from: Span) {
        self.data = Data::Lent(from);
    }

    #[inline]
    pub(super) fn lent(&self) -> Option<Span> {
        match self.data {
            Data::Lent(span) => Some(span),
            Data::Own(_) => None,
        }
    }

    /// Notes the outcome that the engine decided.
    #[inline]
    pub(super) fn end(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }

    #[inline]
    pub(super) fn outcome(&self) -> Outcome {
        self.outcome.unwrap_or(Ok(()))
    }

    /// Notes that the shard offers the reply to the transport now, or could offer it. An earlier time stays.
    #[inline]
    pub(super) fn offer(&mut self, now: Instant) {
        self.offered.get_or_insert(now);
    }

    #[inline]
    pub(super) fn offered(&self) -> Option<Instant> {
        self.offered
    }

    #[inline]
    pub(super) fn payload(&self) -> &[u8] {
        match &self.data {
            Data::Own(payload) => payload,
            Data::Lent(_) => &[],
        }
    }

    pub(super) fn put_payload(&mut self, payload: Vec<u8>) {
        self.data = Data::Own(payload);
    }

    #[inline]
    pub(super) fn take_payload(&mut self) -> Vec<u8> {
        match std::mem::replace(&mut self.data, Data::Own(Vec::new())) {
            Data::Own(payload) => payload,
            Data::Lent(_) => Vec::new(),
        }
    }

    #[inline]
    pub(super) fn charge(&mut self, bytes: u64) {
        self.charged = bytes;
    }

    #[inline]
    pub(super) fn take_charge(&mut self) -> u64 {
        std::mem::take(&mut self.charged)
    }

    /// A new flag for the worker thread that gets the zio's work. Once the flag is set, the thread does not
    /// start the work.
    pub(super) fn cancellation(&mut self) -> Arc<AtomicBool> {
        Arc::clone(self.cancelled.insert(Arc::default()))
    }

    /// Tells a worker thread not to start this zio's work.
    pub(super) fn cancel(&self) {
        if let Some(cancelled) = &self.cancelled {
            cancelled.store(true, Ordering::Release);
        }
    }
}

/// The zios of one connection: the head of a linked list through the slots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ZioList {
    first: Option<ZioId>,
}

impl ZioList {
    pub(super) fn is_empty(self) -> bool {
        self.first.is_none()
    }
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Option<Slot>>,
    free: Vec<ZioId>,
}

impl Slots {
    /// Gives a new zio its id and a slot, and puts the zio into the list of its connection.
    ///
    /// The compiler builds the slot in its place only if `new` is called last, and if it can see that the
    /// place is empty. Otherwise it copies the slot, and the copy waits for the store instructions that built
    /// the slot.
    #[inline]
    pub(super) fn insert(&mut self, list: &mut ZioList, new: impl FnOnce() -> Slot) -> ZioId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            ZioId(self.slots.len() as u32 - 1)
        });
        let next = list.first.replace(id);
        if let Some(next) = next {
            self[next].previous = Some(id);
        }
        if let Some(place @ None) = self.slots.get_mut(id.0 as usize) {
            *place = Some(Slot { next, ..new() });
        }
        id
    }

    /// The slot of an id that need not be in flight: a child's, or one kept beyond the zio's end.
    pub(super) fn get(&self, id: ZioId) -> Option<&Slot> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// The slot of a client's zio that must be in flight. If it is not, its client waits in vain: the shard
    /// says so, and goes on for the others.
    #[inline]
    pub(super) fn get_mut(&mut self, id: ZioId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(id.0 as usize).and_then(Option::as_mut);
        if slot.is_none() {
            missing(id);
        }
        slot
    }

    /// Takes a zio out of the list of its connection. The zio's id stays in use.
    pub(super) fn unlink(&mut self, id: ZioId, list: &mut ZioList) {
        let slot = &mut self[id];
        let (previous, next) = (slot.previous.take(), slot.next.take());
        slot.connection = None;
        match previous {
            Some(previous) => self[previous].next = next,
            None => list.first = next,
        }
        if let Some(next) = next {
            self[next].previous = previous;
        }
    }

    /// Frees the id of a zio that is no longer in a list.
    #[inline]
    pub(super) fn remove(&mut self, id: ZioId) {
        let slot = self.slots.get_mut(id.0 as usize);
        if let Some(slot) = slot.filter(|slot| slot.is_some()) {
            // A slot is large, so it is dropped in its place and never moved out.
            *slot = None;
            self.free.push(id);
        }
    }

    /// The zios of a list, the youngest first.
    pub(super) fn list(&self, list: ZioList) -> Vec<ZioId> {
        self.youngest(list, usize::MAX)
    }

    /// The zio with this cookie in a list, unless its reply is already on its way.
    pub(super) fn find(&self, list: ZioList, cookie: u64) -> Option<ZioId> {
        let is_it = |slot: &Slot| slot.request.cookie == cookie && slot.outcome.is_none();
        let mut zios = self.list(list).into_iter();
        zios.find(|id| is_it(&self[*id]))
    }

    /// The `most` youngest zios of a list, or all of them if there are fewer. The youngest comes first.
    pub(super) fn youngest(&self, list: ZioList, most: usize) -> Vec<ZioId> {
        let next = |id: &ZioId| self[*id].next;
        std::iter::successors(list.first, next).take(most).collect()
    }
}

/// The slot of a zio in flight. A missing one would be a reply that a client waits for in vain, so it panics.
impl Index<ZioId> for Slots {
    type Output = Slot;

    #[inline]
    fn index(&self, id: ZioId) -> &Slot {
        match self.get(id) {
            Some(slot) => slot,
            None => panic!("{id:?} has no slot"),
        }
    }
}

impl IndexMut<ZioId> for Slots {
    #[inline]
    fn index_mut(&mut self, id: ZioId) -> &mut Slot {
        match self.slots.get_mut(id.0 as usize).and_then(Option::as_mut) {
            Some(slot) => slot,
            None => panic!("{id:?} has no slot"),
        }
    }
}

#[cold]
fn missing(id: ZioId) {
    debug_assert!(false, "{id:?} has no slot");
    complain(format_args!("zio {} has no slot: its I/O is lost", id.0));
}

#[cfg(test)]
mod tests {
    use super::{Origin, Slot, Slots, ZioList};
    use crate::export::ExportId;
    use crate::frontend::boundary::{Operation, Request};
    use dashpot_engine::{ClientId, Device, DiskId, ZioId};

    fn slot() -> Slot {
        let origin = Origin {
            connection: 0,
            export: ExportId(0),
            client: ClientId(0),
        };
        let flush = Request {
            cookie: 0,
            operation: Operation::Flush,
            offset: 0,
            length: 0,
        };
        Slot::new(origin, Device::Disk(DiskId(0)), flush, 0)
    }

    #[test]
    #[should_panic(expected = "ZioId(0) has no slot")]
    fn a_zio_that_is_not_in_flight_is_no_place_to_look() {
        let (mut slots, mut list) = (Slots::default(), ZioList::default());
        let id = slots.insert(&mut list, slot);
        slots.unlink(id, &mut list);
        slots.remove(id);
        slots.unlink(id, &mut list);
    }

    #[test]
    fn a_list_loses_its_first_its_last_and_its_middle() {
        let (mut slots, mut list) = (Slots::default(), ZioList::default());
        let add = |slots: &mut Slots, list: &mut ZioList| slots.insert(list, slot);
        let ids: Vec<ZioId> = (0..4).map(|_| add(&mut slots, &mut list)).collect();
        assert_eq!(slots.list(list), [ids[3], ids[2], ids[1], ids[0]]);
        for (gone, left) in [
            (3, vec![2, 1, 0]),
            (1, vec![2, 0]),
            (0, vec![2]),
            (2, vec![]),
        ] {
            slots.unlink(ids[gone], &mut list);
            slots.remove(ids[gone]);
            let left: Vec<ZioId> = left.into_iter().map(|at| ids[at]).collect();
            assert_eq!(slots.list(list), left);
        }
        assert!(list.is_empty());
        assert_eq!(slots.slots.len(), slots.free.len());
        assert_eq!(add(&mut slots, &mut list), ids[2], "ids are used again");
    }
}
