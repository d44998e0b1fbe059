//! A zio on its way through the engine, and what all disks of an engine share.

use alloc::vec::Vec;

use crate::deadlines::Deadlines;
use crate::inject::{BookingId, Mode, RuleId};
use crate::time::{Duration, Instant};
use crate::zio::{Outcome, Zio, ZioId};

/// Where a zio is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its disk is suspended.
    Suspended,
    /// Held before the store is asked.
    HeldBefore,
    /// The store is at work.
    Store,
    /// The store is at work, and nobody waits for it any more.
    Abandoned,
    /// The store has worked; held until the target.
    Held,
    /// Its reply is on the way.
    Reply,
}

/// The part of a disk's bandwidth that a zio needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) rate: u64,
    pub(crate) rule: RuleId,
    pub(crate) mode: Mode,
    /// Its place there, once the zio has reached it.
    pub(crate) place: Option<BookingId>,
}

#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) zio: Zio,
    pub(crate) state: State,
    /// The order of issue; equal deadlines are met in it.
    pub(crate) order: u64,
    /// When the zio was issued to its disk; reports count from here.
    pub(crate) issued: Instant,
    /// When its rules were asked: the issue, or for the flush of a FUA write the end of the write.
    pub(crate) charged: Instant,
    pub(crate) bookings: Option<BookingId>,
    pub(crate) transfer: Option<Transfer>,
    /// The latest of its `floor` rules.
    pub(crate) decider: Option<RuleId>,
    /// Until when it is held before the store is asked.
    pub(crate) hold_before: Option<Instant>,
    /// Whether that is the whole of its hold.
    pub(crate) before_only: bool,
    /// The earliest moment at which it may complete.
    pub(crate) target: Instant,
    /// How late the hold before the store ended.
    pub(crate) late_before: Duration,
    pub(crate) store_done: Instant,
    pub(crate) outcome: Outcome,
    /// Whether the write of a FUA write is over, and its flush has begun.
    pub(crate) flushing: bool,
    /// Whether a rule's hold was cut short by a command.
    pub(crate) cut_short: bool,
}

impl Flight {
    #[inline]
    fn new(zio: Zio, now: Instant) -> Flight {
        Flight {
            zio,
            state: State::Suspended,
            order: 0,
            issued: now,
            charged: Instant::ZERO,
            bookings: None,
            transfer: None,
            decider: None,
            hold_before: None,
            before_only: false,
            target: Instant::ZERO,
            late_before: Duration::ZERO,
            store_done: Instant::ZERO,
            outcome: Ok(()),
            flushing: false,
            cut_short: false,
        }
    }

    /// Its place in the disk's bandwidth, once it has reached that.
    pub(crate) fn place(&self) -> Option<BookingId> {
        self.transfer?.place
    }

    /// The rule that sent it through the disk's bandwidth, once it has reached that.
    pub(crate) fn passed(&self) -> Option<RuleId> {
        self.transfer
            .filter(|transfer| transfer.place.is_some())
            .map(|transfer| transfer.rule)
    }

    /// Whether it must still pass the disk's bandwidth, and has not reached it.
    pub(crate) fn owes_transfer(&self) -> bool {
        self.transfer
            .is_some_and(|transfer| transfer.place.is_none())
    }
}

/// What the disks of an engine share: the zios by id, and their deadlines.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    slots: Vec<Option<Flight>>,
    deadlines: Deadlines,
    issued: u64,
}

impl Flights {
    /// Makes room for a zio where it stays until it is removed.
    pub(crate) fn insert(&mut self, zio: Zio, now: Instant) -> &mut Flight {
        let index = zio.id.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        debug_assert!(self.slots[index].is_none(), "zio {index} is in use");
        self.slots[index].insert(Flight::new(zio, now))
    }

    pub(crate) fn get(&self, id: ZioId) -> Option<&Flight> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: ZioId) -> Option<&mut Flight> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    /// Lets go of a zio that has no deadline.
    pub(crate) fn remove(&mut self, id: ZioId) {
        if let Some(slot) = self.slots.get_mut(id.0 as usize) {
            *slot = None;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.slots.iter().flatten()
    }

    /// The next number in the order of issue.
    pub(crate) fn next_order(&mut self) -> u64 {
        self.issued += 1;
        self.issued
    }

    /// Wakes a zio at `at`; one that never wakes has no deadline.
    pub(crate) fn set_deadline(&mut self, id: ZioId, order: u64, at: Instant) {
        self.deadlines.set(id, order, at);
    }

    pub(crate) fn clear_deadline(&mut self, id: ZioId) {
        self.deadlines.clear(id);
    }

    pub(crate) fn due_by(&self, by: Instant) -> impl Iterator<Item = ZioId> {
        self.deadlines.due_by(by)
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// A zio whose deadline has come; it has none from then on.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<ZioId> {
        self.deadlines.pop_due(now)
    }
}
