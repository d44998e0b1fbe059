//! The zios of a shard on their way: to whom each is to be replied, and its bytes if it has any.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dashpot_engine::{DiskId, Instant, Outcome, ZioId};

use crate::frontend::boundary::Request;

/// A zio that the engine has not let go of.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Its connection, unless that is gone.
    pub(crate) conn: Option<usize>,
    pub(crate) disk: DiskId,
    pub(crate) request: Request,
    /// What is to be written, or what was read; empty for most of its life.
    pub(crate) payload: Vec<u8>,
    /// Payload bytes that it is charged for.
    pub(crate) charged: u64,
    /// Tells a thread of the pool not to begin any more.
    pub(crate) cancelled: Option<Arc<AtomicBool>>,
    pub(crate) outcome: Outcome,
    /// Whether the store has been asked.
    pub(crate) started: bool,
    /// When its reply was first offered to the transport, or could have been.
    pub(crate) offered: Option<Instant>,
    /// Its neighbours among the zios of its connection.
    previous: Option<ZioId>,
    next: Option<ZioId>,
}

impl Slot {
    pub(crate) fn new(conn: usize, disk: DiskId, request: Request) -> Slot {
        Slot {
            conn: Some(conn),
            disk,
            request,
            payload: Vec::new(),
            charged: 0,
            cancelled: None,
            outcome: Ok(()),
            started: false,
            offered: None,
            previous: None,
            next: None,
        }
    }
}

/// The zios of one connection: the head of a list through the slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ZioList {
    first: Option<ZioId>,
}

impl ZioList {
    pub(crate) fn is_empty(self) -> bool {
        self.first.is_none()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Option<Slot>>,
    free: Vec<ZioId>,
}

impl Slots {
    /// Names a new zio, and puts it into the list of its connection.
    pub(crate) fn insert(&mut self, mut slot: Slot, list: &mut ZioList) -> ZioId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            ZioId(self.slots.len() as u32 - 1)
        });
        slot.next = list.first;
        if let Some(next) = list.first.and_then(|next| self.get_mut(next)) {
            next.previous = Some(id);
        }
        list.first = Some(id);
        self.slots[id.0 as usize] = Some(slot);
        id
    }

    pub(crate) fn get(&self, id: ZioId) -> Option<&Slot> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: ZioId) -> Option<&mut Slot> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    /// Takes a zio out of the list of its connection. Its name stays in use.
    pub(crate) fn unlink(&mut self, id: ZioId, list: &mut ZioList) {
        let Some(slot) = self.get_mut(id) else {
            return;
        };
        let (previous, next) = (slot.previous.take(), slot.next.take());
        slot.conn = None;
        match previous.and_then(|previous| self.get_mut(previous)) {
            Some(previous) => previous.next = next,
            None => list.first = next,
        }
        if let Some(next) = next.and_then(|next| self.get_mut(next)) {
            next.previous = previous;
        }
    }

    /// Frees the name of a zio that is in no list any more.
    pub(crate) fn remove(&mut self, id: ZioId) -> Option<Slot> {
        let slot = self.slots.get_mut(id.0 as usize)?.take()?;
        self.free.push(id);
        Some(slot)
    }

    /// The zios of a list, the youngest first.
    pub(crate) fn list(&self, list: ZioList) -> Vec<ZioId> {
        self.youngest(list, usize::MAX)
    }

    /// At most so many of the zios of a list, the youngest first.
    pub(crate) fn youngest(&self, list: ZioList, most: usize) -> Vec<ZioId> {
        let next = |id: &ZioId| self.get(*id)?.next;
        std::iter::successors(list.first, next).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Slot, Slots, ZioList};
    use crate::frontend::boundary::{Operation, Request};
    use dashpot_engine::{DiskId, ZioId};

    #[test]
    fn a_list_loses_its_first_its_last_and_its_middle() {
        let (mut slots, mut list) = (Slots::default(), ZioList::default());
        let add = |slots: &mut Slots, list: &mut ZioList| {
            let flush = Request {
                cookie: 0,
                operation: Operation::Flush,
                offset: 0,
                length: 0,
            };
            slots.insert(Slot::new(0, DiskId(0), flush), list)
        };
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
        assert_eq!(add(&mut slots, &mut list), ids[2], "names are used again");
    }
}
