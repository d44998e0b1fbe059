//! A client's zio of a volume, from its submission until its reply has left.

use alloc::vec::Vec;

use crate::bytes::Buf;
use crate::event::{Device, Event};
use crate::time::Instant;
use crate::zio::{Outcome, VolumeId, Zio, ZioId};

/// Where a zio of a volume waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeWait {
    /// Another zio has the lock of one of its blocks.
    Lock,
    /// The disks read what it asked for, or what it does not replace of a block.
    Read,
    /// The pool admits no writes until a disk works again.
    Stalled,
    /// The throttle has not admitted it.
    Throttle,
    /// The disks write its blocks.
    Write,
    /// The disks make it durable.
    Sync,
    /// Its reply is on the way to the client.
    Reply,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waits for the lock of this block; those before it are its own.
    Locking(u32),
    /// Reads what it does not replace of its first and last block, or what it asked for.
    Reading,
    /// The pool admits no writes until a disk works again.
    Stalled,
    /// Waits for the throttle.
    Throttled,
    /// Its blocks are on their way to the disks.
    Writing,
    /// The disks make it durable.
    Syncing,
    /// Its reply is on the way.
    Reply,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) zio: Zio<VolumeId>,
    /// Unlike the zio's id, never used again.
    pub(super) number: u64,
    /// The volume's place in its pool.
    pub(super) volume: usize,
    pub(super) phase: Phase,
    /// When that phase began.
    since: Instant,
    pub(super) submitted: Instant,
    pub(super) admitted: Instant,
    /// When the engine asked for its reply.
    pub(super) completed: Instant,
    /// Reads, writes, syncs or watched blocks that it waits for.
    pub(super) pending: u32,
    /// Whether it has the locks of all of its blocks.
    pub(super) locked: bool,
    /// What its first and its last block held, if it replaces only a part of them.
    pub(super) edges: [Option<(u32, Buf)>; 2],
    pub(super) outcome: Outcome,
    /// Its connection is gone.
    pub(super) aborted: bool,
}

impl Request {
    pub(super) fn new(zio: Zio<VolumeId>, number: u64, volume: usize, now: Instant) -> Request {
        Request {
            zio,
            number,
            volume,
            phase: Phase::Reading,
            since: now,
            submitted: now,
            admitted: now,
            completed: now,
            pending: 0,
            locked: false,
            edges: [None; 2],
            outcome: Ok(()),
            aborted: false,
        }
    }

    /// Begins a phase.
    pub(super) fn go_to(&mut self, phase: Phase, now: Instant) {
        (self.phase, self.since) = (phase, now);
    }

    /// Where it waits, and since when.
    pub(super) fn waits(&self) -> (VolumeWait, Instant) {
        let wait = match self.phase {
            Phase::Locking(_) => VolumeWait::Lock,
            Phase::Reading => VolumeWait::Read,
            Phase::Stalled => VolumeWait::Stalled,
            Phase::Throttled => VolumeWait::Throttle,
            Phase::Writing => VolumeWait::Write,
            Phase::Syncing => VolumeWait::Sync,
            Phase::Reply => VolumeWait::Reply,
        };
        (wait, self.since)
    }

    /// What is known of it when its reply has left.
    pub(super) fn event(&self, offered: Instant, now: Instant) -> Event {
        Event {
            number: self.number,
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

    /// Takes the buffer that was filled from a block's disk.
    pub(super) fn take_edge(&mut self, block: u32) -> Option<Buf> {
        let of_block = |edge: &&mut Option<(u32, Buf)>| matches!(edge, Some((b, _)) if *b == block);
        let edge = self.edges.iter_mut().find(of_block)?;
        edge.take().map(|(_, buf)| buf)
    }
}

/// The requests of a pool, by the ids that their clients' side has chosen.
#[derive(Debug, Default)]
pub(super) struct Requests {
    slots: Vec<Option<Request>>,
}

impl Requests {
    pub(super) fn insert(&mut self, request: Request) {
        let at = request.zio.id.0 as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        debug_assert!(self.slots[at].is_none(), "zio {at} is in use");
        self.slots[at] = Some(request);
    }

    #[inline]
    pub(super) fn get(&self, id: ZioId) -> Option<&Request> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: ZioId) -> Option<&mut Request> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, id: ZioId) -> Option<Request> {
        self.slots.get_mut(id.0 as usize)?.take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Request> {
        self.slots.iter().flatten()
    }
}
