//! The bandwidth of a disk: one serial server that zios pass after their lanes.
//!
//! The server's queue works like the queue of a lane: a zio that is aborted before its transfer has begun
//! gives up its place. The server differs from the lanes of a rule in three ways. The server serves the
//! transfers of all rules of the disk. A zio books its place when it reaches the server, at its target, not
//! when it is issued. And because the server outlives its rules, a removed rule takes its transfers out of
//! the queue, including the one in service. The zios of those transfers keep their times, but other zios need
//! not wait for the transfers.

use alloc::vec::Vec;

use super::booking::{BookingId, Bookings};
use super::id::RuleId;
use super::lane::Lane;
use crate::time::{Duration, Instant};
use crate::zio::ZioId;

#[derive(Debug, Default)]
pub(crate) struct Bandwidth {
    queue: Lane,
    free: Instant,
    /// The rule whose transfer has left the queue but still keeps the server busy.
    busy_for: Option<RuleId>,
}

impl Bandwidth {
    /// The moment at which all booked transfers will be done.
    pub(super) fn free_at(&self) -> Instant {
        self.free
    }

    /// Puts a booking at the end of the queue. The caller must push zios in the order in which they reach
    /// the server.
    pub(super) fn push(&mut self, id: BookingId, bookings: &mut Bookings) {
        self.queue.push(id, bookings);
        self.free = bookings.get(id).end();
    }

    /// Takes out the transfer of a zio that has ended. Returns whether the transfer leaves a gap.
    pub(super) fn leave(&mut self, id: BookingId, now: Instant, bookings: &mut Bookings) -> bool {
        let (rule, busy) = (bookings.get(id).rule, self.queue.busy());
        let gap = self.queue.leave(id, now, bookings);
        if self.queue.busy() > busy {
            self.busy_for = Some(rule);
        }
        gap
    }

    /// Takes a transfer out of the queue, and frees the time that the transfer has booked.
    pub(super) fn vacate(&mut self, id: BookingId, bookings: &mut Bookings) {
        self.queue.vacate(id, bookings);
    }

    /// Closes the gaps in the queue. Appends to `moved` the zios that are now served sooner.
    pub(super) fn move_up(
        &mut self,
        now: Instant,
        bookings: &mut Bookings,
        moved: &mut Vec<ZioId>,
    ) {
        self.free = self.queue.move_up(now, bookings, moved);
    }

    /// Takes out the transfers of removed rules. The zios of these transfers keep their times. Appends to
    /// `moved` the zios that are now served sooner.
    pub(super) fn forget(
        &mut self,
        gone: impl Fn(RuleId) -> bool,
        now: Instant,
        bookings: &mut Bookings,
        moved: &mut Vec<ZioId>,
    ) {
        if self.busy_for.is_some_and(&gone) {
            self.busy_for = None;
            self.queue.make_idle();
        }
        let mut next = self.queue.first();
        while let Some(id) = next {
            next = bookings.get(id).behind;
            if gone(bookings.get(id).rule) {
                self.queue.vacate(id, bookings);
                bookings.get_mut(id).leave_lane();
            }
        }
        self.move_up(now, bookings, moved);
    }
}

/// How long `length` bytes take at `rate` bytes per second, rounded up.
pub(crate) fn transfer_time(length: u32, rate: u64) -> Duration {
    // A `u32` number of bytes takes less than 2^62 ns even at one byte per second.
    let ns = (u64::from(length) * 1_000_000_000).div_ceil(rate);
    Duration::from_nanos(ns)
}

#[cfg(test)]
mod tests {
    use super::transfer_time;
    use crate::time::Duration;

    #[test]
    fn a_part_of_a_nanosecond_counts_as_one() {
        assert_eq!(transfer_time(1, 3_000_000_000), Duration::from_nanos(1));
        assert_eq!(transfer_time(0, 1), Duration::ZERO);
        assert_eq!(transfer_time(1, u64::MAX), Duration::from_nanos(1));
        assert_eq!(
            transfer_time(u32::MAX, 1),
            Duration::from_secs(u64::from(u32::MAX))
        );
    }
}
