//! The lanes of one rule: servers, each busy until the target of the last zio that booked it.
//!
//! The model is OpenZFS's (`zio_inject.c: zio_handle_io_delay`): a lane is busy until the target of its last
//! zio, even if the store takes longer. There are two differences. OpenZFS takes the lanes in turn; here a
//! heap finds the soonest lane, because with service times that vary the next lane in turn may not be the
//! soonest. And if a zio's connection ends before the lane has begun to serve the zio, the zio gives up its
//! place, and the zios behind it move up.

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

    /// The earliest moment at which a lane is free.
    pub(crate) fn free_at(&self) -> Instant {
        self.soonest
            .peek()
            .map_or(Instant::ZERO, |((free, _), _)| free)
    }

    /// The lane that becomes free first.
    pub(crate) fn soonest(&self) -> u32 {
        self.soonest.peek().map_or(0, |(_, lane)| lane)
    }

    /// Puts a booking at the end of its lane's queue.
    pub(crate) fn push(&mut self, lane: u32, id: BookingId, bookings: &mut Bookings) {
        self.lanes[lane as usize].push(id, bookings);
        self.soonest.set(lane, (bookings.get(id).end(), lane));
    }

    /// Takes a booking out of its lane's queue. Returns whether the booking leaves a gap.
    pub(crate) fn leave(
        &mut self,
        lane: u32,
        id: BookingId,
        now: Instant,
        bookings: &mut Bookings,
    ) -> bool {
        self.lanes[lane as usize].leave(id, now, bookings)
    }

    /// Closes the gaps in a lane's queue. Appends to `moved` the zios whose bookings have moved.
    pub(crate) fn move_up(
        &mut self,
        lane: u32,
        now: Instant,
        bookings: &mut Bookings,
        moved: &mut Vec<ZioId>,
    ) {
        let free = self.lanes[lane as usize].move_up(now, bookings, moved);
        self.soonest.set(lane, (free, lane));
    }

    /// Reduces the number of lanes to `count`. Bookings of removed lanes keep their times.
    pub(crate) fn shrink(&mut self, count: u32, bookings: &mut Bookings) {
        while self.len() > count {
            let Some(lane) = self.lanes.pop() else { return };
            self.soonest.remove(self.len());
            lane.dissolve(bookings);
        }
    }

    /// Removes the lanes. Their bookings keep their times, but belong to no lane.
    pub(crate) fn dissolve(&self, bookings: &mut Bookings) {
        for lane in &self.lanes {
            lane.dissolve(bookings);
        }
    }

    /// When a service of `nominal` that begins on the soonest lane would end.
    pub(crate) fn finish(&self, now: Instant, nominal: Duration) -> Instant {
        self.free_at().max(now) + nominal
    }
}

/// One server, and its queue of bookings in the order of service.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// The moment until which bookings that have left the queue keep the lane busy.
    busy: Instant,
    first: Option<BookingId>,
    last: Option<BookingId>,
    /// The first booking behind a gap, if there is one. Bookings before the gap cannot move up.
    gap: Option<BookingId>,
}

impl Lane {
    pub(super) fn first(&self) -> Option<BookingId> {
        self.first
    }

    pub(super) fn busy(&self) -> Instant {
        self.busy
    }

    /// Puts a booking at the end of the queue.
    pub(super) fn push(&mut self, id: BookingId, bookings: &mut Bookings) {
        bookings.get_mut(id).ahead = self.last;
        match self.last {
            Some(last) => bookings.get_mut(last).behind = Some(id),
            None => self.first = Some(id),
        }
        self.last = Some(id);
    }

    /// Takes a booking out of the queue. If the booking's service has begun, the lane stays busy until the
    /// service ends. Otherwise the booking leaves a gap, and this function returns true.
    pub(super) fn leave(&mut self, id: BookingId, now: Instant, bookings: &mut Bookings) -> bool {
        let booking = bookings.get(id);
        let begun = booking.start <= now;
        if begun {
            self.busy = self.busy.max(booking.end());
            self.unlink(id, bookings);
        } else {
            self.vacate(id, bookings);
        }
        !begun
    }

    /// Takes a booking out of the queue, and frees its time.
    pub(super) fn vacate(&mut self, id: BookingId, bookings: &mut Bookings) {
        let booking = bookings.get(id);
        // Comparing the starts is enough. If two bookings have the same start, either the one ahead takes no
        // time, or their start is `Instant::NEVER`.
        let is_first = |gap| booking.start < bookings.get(gap).start;
        if self.gap.is_none_or(is_first) {
            self.gap = booking.behind;
        }
        self.unlink(id, bookings);
    }

    fn unlink(&mut self, id: BookingId, bookings: &mut Bookings) {
        let (ahead, behind) = (bookings.get(id).ahead, bookings.get(id).behind);
        if self.gap == Some(id) {
            self.gap = behind;
        }
        match ahead {
            Some(ahead) => bookings.get_mut(ahead).behind = behind,
            None => self.first = behind,
        }
        match behind {
            Some(behind) => bookings.get_mut(behind).ahead = ahead,
            None => self.last = ahead,
        }
    }

    /// Makes the lane free even if bookings that have left the queue would still keep it busy.
    pub(super) fn make_idle(&mut self) {
        self.busy = Instant::ZERO;
        self.gap = self.first;
    }

    /// Closes the gaps in the queue, and appends to `moved` the zios whose bookings have moved. Returns the
    /// moment at which the lane is then free.
    pub(super) fn move_up(
        &mut self,
        now: Instant,
        bookings: &mut Bookings,
        moved: &mut Vec<ZioId>,
    ) -> Instant {
        let mut next = self.gap.take();
        let ahead = next.map_or(self.last, |id| bookings.get(id).ahead);
        let mut free = ahead.map_or(self.busy, |id| self.busy.max(bookings.get(id).end()));
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
        free
    }

    /// Takes the bookings of the queue out of the lane.
    fn dissolve(&self, bookings: &mut Bookings) {
        let mut next = self.first;
        while let Some(id) = next {
            let booking = bookings.get_mut(id);
            next = booking.behind;
            booking.leave_lane();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lane;
    use crate::inject::booking::{Booking, BookingId, Bookings, Kind};
    use crate::inject::{Mode, RuleId};
    use crate::time::{Duration, Instant};
    use crate::zio::ZioId;
    use alloc::vec;
    use alloc::vec::Vec;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// A lane with `count` bookings of 10 ns, all issued at 0.
    fn queue(count: u32) -> (Lane, Bookings, Vec<BookingId>) {
        let (mut lane, mut bookings) = (Lane::default(), Bookings::default());
        let booking = |zio: u32| Booking {
            rule: RuleId(1),
            version: 0,
            zio: ZioId(zio),
            kind: Kind::Delay {
                lane: Some(0),
                fails: false,
            },
            mode: Mode::Floor,
            issued: at(0),
            start: at(u64::from(zio) * 10),
            service: Duration::from_nanos(10),
            next_of_zio: None,
            ahead: None,
            behind: None,
        };
        let ids: Vec<_> = (0..count)
            .map(|zio| bookings.insert(booking(zio)))
            .collect();
        for id in &ids {
            lane.push(*id, &mut bookings);
        }
        (lane, bookings, ids)
    }

    #[test]
    fn those_behind_gaps_move_up() {
        let (mut lane, mut bookings, ids) = queue(8);
        // The places are out of order. Two of them are neighbours, and one is the last place.
        for at_place in [5, 2, 7, 3] {
            assert!(lane.leave(ids[at_place], at(5), &mut bookings));
        }
        let mut moved = Vec::new();
        assert_eq!(lane.move_up(at(5), &mut bookings, &mut moved), at(40));
        assert_eq!(moved, vec![ZioId(4), ZioId(6)]);
        assert_eq!(bookings.get(ids[4]).start, at(20));
        assert_eq!(bookings.get(ids[6]).start, at(30));
    }

    #[test]
    fn those_before_the_first_gap_are_not_even_looked_at() {
        let (mut lane, mut bookings, ids) = queue(8);
        // If the lane closed gaps from the head of the queue, it would move this booking.
        bookings.get_mut(ids[3]).start = at(31);
        let mut moved = Vec::new();
        for at_place in [7, 6] {
            assert!(lane.leave(ids[at_place], at(5), &mut bookings));
            lane.move_up(at(5), &mut bookings, &mut moved);
        }
        assert!(lane.leave(ids[4], at(5), &mut bookings));
        lane.move_up(at(5), &mut bookings, &mut moved);
        assert_eq!(moved, vec![ZioId(5)]);
        assert_eq!(bookings.get(ids[3]).start, at(31));
    }
}
