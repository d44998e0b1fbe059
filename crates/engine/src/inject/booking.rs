//! A promise of one rule to one zio: a place in a lane, or an effect without a lane.
//!
//! The bookings of a disk are in one slab. Each booking is in the list of its zio and, if it has a lane, in
//! the queue of that lane.

use alloc::vec::Vec;

use super::damage::DataFault;
use super::id::RuleId;
use super::spec::Mode;
use crate::time::{Duration, Instant};
use crate::zio::ZioId;

/// The id of a booking in its disk's slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BookingId(u32);

/// The rule's effect on the zio of a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Holds the zio. If there is a lane, the lane serves the zio. Afterwards, the zio may fail.
    Delay { lane: Option<u32>, fails: bool },
    /// Holds the zio until the rule ends, which may be never.
    Hang,
    /// Fails the zio at once.
    Fail,
    /// Damages the zio's data.
    Damage(DataFault),
    /// Sends the zio through the disk's bandwidth only.
    Pass,
    /// The zio's transfer through the disk's bandwidth. This booking is not in the zio's list, because the
    /// zio refers to the booking directly.
    Transfer { queued: bool },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Booking {
    pub(crate) rule: RuleId,
    /// How many times the rule had been updated when it made the booking.
    pub(crate) version: u32,
    pub(crate) zio: ZioId,
    pub(crate) kind: Kind,
    pub(crate) mode: Mode,
    /// When the zio was issued or, for a transfer, when the zio reached the bandwidth. The zio's service does
    /// not begin earlier.
    pub(crate) issued: Instant,
    pub(crate) start: Instant,
    pub(crate) service: Duration,
    /// The next booking of the same zio.
    pub(crate) next_of_zio: Option<BookingId>,
    /// The booking ahead of this one in the lane's queue.
    pub(crate) ahead: Option<BookingId>,
    /// The booking behind this one in the lane's queue.
    pub(crate) behind: Option<BookingId>,
}

impl Booking {
    /// The moment at which the rule stops holding the zio.
    pub(crate) fn end(&self) -> Instant {
        self.start + self.service
    }

    /// Whether the booking by itself holds its zio.
    pub(crate) fn holds(&self) -> bool {
        matches!(self.kind, Kind::Delay { .. } | Kind::Hang)
    }

    /// Takes the booking out of its lane. The booking keeps its times.
    pub(crate) fn leave_lane(&mut self) {
        match &mut self.kind {
            Kind::Delay { lane, .. } => *lane = None,
            Kind::Transfer { queued } => *queued = false,
            Kind::Hang | Kind::Fail | Kind::Damage(_) | Kind::Pass => {}
        }
        self.ahead = None;
        self.behind = None;
    }
}

/// The bookings of one disk.
#[derive(Debug, Default)]
pub(crate) struct Bookings {
    slots: Vec<Booking>,
    free: Vec<BookingId>,
}

impl Bookings {
    pub(crate) fn insert(&mut self, booking: Booking) -> BookingId {
        if let Some(id) = self.free.pop() {
            self.slots[id.0 as usize] = booking;
            return id;
        }
        self.slots.push(booking);
        BookingId(self.slots.len() as u32 - 1)
    }

    /// Frees a booking that is in no lane's queue.
    pub(crate) fn remove(&mut self, id: BookingId) {
        self.free.push(id);
    }

    pub(crate) fn get(&self, id: BookingId) -> &Booking {
        &self.slots[id.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, id: BookingId) -> &mut Booking {
        &mut self.slots[id.0 as usize]
    }

    /// The bookings of one zio, from the head of its list.
    pub(crate) fn of_zio(&self, head: Option<BookingId>) -> impl Iterator<Item = &Booking> {
        let mut next = head;
        core::iter::from_fn(move || {
            let booking = self.get(next?);
            next = booking.next_of_zio;
            Some(booking)
        })
    }
}
