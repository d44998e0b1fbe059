//! A client's zio to a volume, from its submission until its reply has left.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use crate::bytes::Buf;
use crate::event::{Device, Event};
use crate::stats::{InFlight, Wait};
use crate::time::Instant;
use crate::zio::{Outcome, VolumeId, Zio, ZioId};

/// The phase of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The request waits for the lock of this block, and has the locks of all its earlier blocks.
    Locking(u32),
    /// The pool reads the bytes that the request asked for, or the rest of the blocks that the request
    /// replaces only in part.
    Reading,
    /// The pool admits no writes until a disk works again.
    Stalled,
    /// The request waits for the throttle.
    Throttled,
    /// The request waits while the pool forgets the data that a power cut has taken.
    Cut,
    /// The request's blocks are on their way to the disks.
    Writing,
    /// The disks make the request durable.
    Syncing,
    /// The transport sends the reply.
    Reply,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) zio: Zio<VolumeId>,
    /// A number that is never used again, unlike the zio's id.
    pub(super) number: u64,
    /// The volume's index in its pool.
    pub(super) volume: usize,
    /// The number of zios that the volume had in flight once this zio was submitted, including this zio.
    depth: u32,
    pub(super) phase: Phase,
    /// When the current phase began.
    since: Instant,
    pub(super) submitted: Instant,
    pub(super) admitted: Instant,
    /// When the engine asked for the request's reply.
    pub(super) completed: Instant,
    /// How many things the request still waits for: reads, writes, syncs, and blocks and extents that are not
    /// yet on the disks.
    pub(super) pending: u32,
    /// Whether the request has the locks of all of its blocks.
    pub(super) locked: bool,
    /// When the request got its last lock, which is when its transaction began.
    pub(super) began: Instant,
    /// Whether the request needs the old content of its first or its last block.
    pub(super) has_edges: bool,
    pub(super) outcome: Outcome,
    /// The buffer with the data of the reply, if the pool has lent one.
    pub(super) lent: Option<Buf>,
    /// Whether the client's connection is gone.
    pub(super) aborted: bool,
    /// The index of the request's id in [`Requests::live`].
    at: u32,
}

impl Request {
    pub(super) fn new(zio: Zio<VolumeId>, number: u64, volume: usize, now: Instant) -> Request {
        Request {
            zio,
            number,
            volume,
            depth: 0,
            phase: Phase::Reading,
            since: now,
            submitted: now,
            admitted: now,
            completed: now,
            pending: 0,
            locked: false,
            began: now,
            has_edges: false,
            outcome: Ok(()),
            lent: None,
            aborted: false,
            at: 0,
        }
    }

    pub(super) fn at_depth(self, depth: u32) -> Request {
        Request { depth, ..self }
    }

    /// Enters a phase.
    pub(super) fn go_to(&mut self, phase: Phase, now: Instant) {
        (self.phase, self.since) = (phase, now);
    }

    /// The request in the form in which reports show it.
    pub(super) fn view(&self) -> InFlight {
        InFlight {
            zio: self.zio.id,
            op: self.zio.op,
            call: None,
            client: self.zio.client,
            offset: self.zio.offset,
            length: self.zio.length,
            arrived: self.zio.arrived,
            wait: self.wait(),
            since: self.since,
            rule: None,
            target: None,
        }
    }

    fn wait(&self) -> Wait {
        match self.phase {
            Phase::Locking(_) => Wait::Lock,
            Phase::Reading => Wait::Read,
            Phase::Stalled => Wait::Stalled,
            Phase::Throttled => Wait::Throttle,
            Phase::Cut => Wait::PowerCut,
            Phase::Writing => Wait::Write,
            Phase::Syncing => Wait::Sync,
            Phase::Reply => Wait::Reply,
        }
    }

    /// The request's event, once its reply has left.
    pub(super) fn event(&self, offered: Instant, now: Instant) -> Event {
        Event {
            number: self.number,
            depth: self.depth,
            outcome: self.outcome,
            submitted: self.submitted,
            admitted: self.admitted,
            issued: self.admitted,
            started: self.admitted,
            store_done: self.completed,
            target: self.completed,
            offered,
            ended: now,
            ..Event::of(&self.zio, Device::Volume(self.zio.device))
        }
    }
}

/// The requests of a pool. The driver has chosen their ids, which are small numbers.
#[derive(Debug, Default)]
pub(super) struct Requests {
    slots: Vec<Option<Request>>,
    /// The ids in use, in no order. To find them in `slots` would take longer, because many more ids may have
    /// been in use before.
    live: Vec<ZioId>,
    /// Requests that wait for nothing more. This step still has to continue them.
    ready: VecDeque<ZioId>,
}

impl Requests {
    #[inline]
    pub(super) fn insert(&mut self, mut request: Request) {
        let id = request.zio.id;
        let slot = id.0 as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        debug_assert!(self.slots[slot].is_none(), "zio {slot} is in use");
        request.at = self.live.len() as u32;
        self.live.push(id);
        self.slots[slot] = Some(request);
    }

    /// A request, if it is in flight. Only a caller that may have a stale id asks in this way.
    #[inline]
    pub(super) fn get(&self, id: ZioId) -> Option<&Request> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// Removes a request, which must be in flight.
    pub(super) fn remove(&mut self, id: ZioId) -> Request {
        let request = self.slots[id.0 as usize].take();
        let request = request.unwrap_or_else(|| gone(id));
        let at = request.at as usize;
        self.live.swap_remove(at);
        if let Some(moved) = self.live.get(at)
            && let Some(moved) = &mut self.slots[moved.0 as usize]
        {
            moved.at = request.at;
        }
        request
    }

    /// Makes a request enter a phase. Returns its volume and its zio.
    pub(super) fn begin(
        &mut self,
        id: ZioId,
        phase: Phase,
        now: Instant,
    ) -> (usize, Zio<VolumeId>) {
        let request = &mut self[id];
        request.go_to(phase, now);
        (request.volume, request.zio)
    }

    /// Notes that one of the things that a request waits for has ended.
    pub(super) fn one_less(&mut self, id: ZioId, outcome: Outcome) {
        let request = &mut self[id];
        request.outcome = request.outcome.and(outcome);
        request.pending -= 1;
        if request.pending == 0 {
            self.ready.push_back(id);
        }
    }

    /// The next request that waits for nothing more.
    pub(super) fn next_ready(&mut self) -> Option<ZioId> {
        self.ready.pop_front()
    }

    /// The requests, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Request> {
        self.live.iter().filter_map(|id| self.get(*id))
    }

    /// The ids of the requests in a certain phase, the oldest first.
    pub(super) fn ids(&self, in_phase: impl Fn(Phase) -> bool) -> Vec<ZioId> {
        let found = self.iter().filter(|request| in_phase(request.phase));
        let mut found: Vec<(u64, ZioId)> = found
            .map(|request| (request.number, request.zio.id))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }
}

impl Index<ZioId> for Requests {
    type Output = Request;

    #[inline]
    fn index(&self, id: ZioId) -> &Request {
        self.get(id).unwrap_or_else(|| gone(id))
    }
}

impl IndexMut<ZioId> for Requests {
    #[inline]
    fn index_mut(&mut self, id: ZioId) -> &mut Request {
        let slot = self.slots.get_mut(id.0 as usize);
        slot.and_then(Option::as_mut).unwrap_or_else(|| gone(id))
    }
}

/// A request that ends twice, or that is asked for after its end, is an error of the pool. To go on would lose
/// an I/O without a trace.
#[cold]
fn gone(id: ZioId) -> ! {
    panic!("zio {} is not in flight", id.0)
}

#[cfg(test)]
mod tests {
    use super::{Phase, Request, Requests};
    use crate::client::ClientId;
    use crate::time::Instant;
    use crate::zio::{Op, VolumeId, Zio, ZioId};
    use alloc::vec::Vec;

    fn request(id: u32, number: u64) -> Request {
        let zio = Zio {
            id: ZioId(id),
            device: VolumeId(0),
            client: ClientId(0),
            op: Op::Read,
            fua: false,
            call: None,
            offset: 0,
            length: 0,
            arrived: Instant::ZERO,
        };
        Request::new(zio, number, 0, Instant::ZERO)
    }

    #[test]
    fn looking_at_requests_takes_as_long_as_there_are_requests() {
        let mut requests = Requests::default();
        for id in 0..10_000 {
            requests.insert(request(id, u64::from(id)));
        }
        for id in (0..10_000).filter(|id| id % 4_000 != 7) {
            assert_eq!(requests.remove(ZioId(id)).zio.id.0, id);
        }
        assert_eq!(requests.live.len(), 3);
        assert!(requests.get(ZioId(5)).is_none());
        requests.insert(request(5, 10_000));
        let ids: Vec<u32> = requests.ids(|_| true).iter().map(|id| id.0).collect();
        assert_eq!(ids, [7, 4_007, 8_007, 5], "the oldest first");
        assert!(requests.ids(|phase| phase == Phase::Reply).is_empty());
        for id in ids {
            assert_eq!(requests.remove(ZioId(id)).zio.id.0, id);
        }
        assert_eq!(requests.iter().count(), 0);
    }
}
