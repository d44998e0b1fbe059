//! The lanes of one rule: servers, each busy until the target of the last zio that booked it.
//!
//! The model is OpenZFS's (`zio_inject.c: zio_handle_io_delay`): a lane is busy until its target,
//! whatever the real store did. Two things differ. The soonest lane is found by a heap instead of
//! a cursor, because with a distribution round robin is no longer soonest first. And a zio whose
//! connection is gone before its service began gives its place back: those behind it move up.

use alloc::vec::Vec;

use super::booking::{BookingId, Bookings};
use crate::heap::IndexedHeap;
use crate::time::{Duration, Instant};
use crate::zio::ZioId;

#[derive(Debug)]
pub(crate) struct Lanes {
    soonest: IndexedHeap<(Instant, u32)>,
    lanes: Vec<Lane>,
}

#[derive(Clone, Debug, Default)]
struct Lane {
    /// Until when bookings that have left the queue keep the lane busy.
    busy: Instant,
    first: Option<BookingId>,
    last: Option<BookingId>,
}

impl Lanes {
    pub(crate) fn new(count: u32) -> Lanes {
        let mut lanes = Lanes {
            soonest: IndexedHeap::default(),
            lanes: Vec::new(),
        };
        lanes.grow(count);
        lanes
    }

    /// Adds idle lanes until there are `count`.
    pub(crate) fn grow(&mut self, count: u32) {
        for lane in self.lanes.len() as u32..count {
            self.lanes.push(Lane::default());
            self.soonest.set(lane, (Instant::ZERO, lane));
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// When the soonest lane is free.
    pub(crate) fn free_at(&self) -> Instant {
        self.soonest
            .peek()
            .map_or(Instant::ZERO, |((free, _), _)| free)
    }

    /// The lane that is free soonest.
    pub(crate) fn soonest(&self) -> u32 {
        self.soonest.peek().map_or(0, |(_, lane)| lane)
    }

    /// Puts a booking at the end of its lane's queue.
    pub(crate) fn push(&mut self, lane: u32, id: BookingId, bookings: &mut Bookings) {
        let queue = &mut self.lanes[lane as usize];
        bookings.get_mut(id).ahead = queue.last;
        match queue.last {
            Some(last) => bookings.get_mut(last).behind = Some(id),
            None => queue.first = Some(id),
        }
        queue.last = Some(id);
        self.soonest.set(lane, (bookings.get(id).end(), lane));
    }

    /// Takes a booking out of its lane's queue. One that has begun keeps its time; the time of one
    /// that has not is free for those behind it once the lane is moved up.
    pub(crate) fn unlink(
        &mut self,
        lane: u32,
        id: BookingId,
        now: Instant,
        bookings: &mut Bookings,
    ) {
        let booking = *bookings.get(id);
        let queue = &mut self.lanes[lane as usize];
        if booking.start <= now {
            queue.busy = queue.busy.max(booking.end());
        }
        match booking.ahead {
            Some(ahead) => bookings.get_mut(ahead).behind = booking.behind,
            None => queue.first = booking.behind,
        }
        match booking.behind {
            Some(behind) => bookings.get_mut(behind).ahead = booking.ahead,
            None => queue.last = booking.ahead,
        }
    }

    /// Closes the gaps in a lane's queue, and says whose zios' bookings have moved.
    pub(crate) fn move_up(
        &mut self,
        lane: u32,
        now: Instant,
        bookings: &mut Bookings,
        moved: &mut Vec<ZioId>,
    ) {
        let queue = &self.lanes[lane as usize];
        let mut free = queue.busy;
        let mut next = queue.first;
        while let Some(id) = next {
            let booking = bookings.get_mut(id);
            if booking.start > now {
                let start = free.max(booking.issued).max(now);
                if start != booking.start {
                    booking.start = start;
                    moved.push(booking.zio);
                }
            }
            free = free.max(booking.end());
            next = booking.behind;
        }
        self.soonest.set(lane, (free, lane));
    }

    /// Cuts down to `count` lanes. Bookings of the lanes that go keep their times.
    pub(crate) fn shrink(&mut self, count: u32, bookings: &mut Bookings) {
        while self.len() > count {
            let Some(lane) = self.lanes.pop() else { return };
            self.soonest.remove(self.len());
            leave_lane(lane.first, bookings);
        }
    }

    /// The rule goes away: its bookings keep their times, without a lane.
    pub(crate) fn dissolve(&self, bookings: &mut Bookings) {
        for lane in &self.lanes {
            leave_lane(lane.first, bookings);
        }
    }

    /// What service beginning now would end at.
    pub(crate) fn finish(&self, now: Instant, nominal: Duration) -> Instant {
        self.free_at().max(now) + nominal
    }
}

/// Turns the bookings of a queue into bookings without a lane.
fn leave_lane(first: Option<BookingId>, bookings: &mut Bookings) {
    let mut next = first;
    while let Some(id) = next {
        let booking = bookings.get_mut(id);
        next = booking.behind;
        booking.leave_lane();
    }
}
