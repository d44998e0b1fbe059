//! The fate of bookings: each is kept, given back because its zio was aborted, or withdrawn by a command.
//! This file also finds which rules held a zio, and which rules lost to other rules.

use alloc::vec::Vec;

use super::booking::{Booking, BookingId, Kind};
use super::id::RuleId;
use super::injector::Injector;
use super::spec::Mode;
use crate::flight::{Flight, Transfer};
use crate::stats::RuleCounts;
use crate::time::{Duration, Instant};
use crate::zio::ZioId;

/// The gaps that aborted zios have left in queues, until [`Injector::close_gaps`] closes them.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    lanes: Vec<(RuleId, u32)>,
    bandwidth: bool,
}

impl Injector {
    /// Ends the bookings of a zio whose reply was offered at `offered`, or of a FUA write whose first half
    /// ended at that moment.
    pub(crate) fn settle(&mut self, now: Instant, flight: &mut Flight, offered: Instant) {
        while let Some(id) = flight.bookings {
            flight.bookings = self.bookings.get(id).next_of_zio;
            self.account(id, flight, offered);
            self.close(now, id);
        }
        if let Some(place) = flight.transfer.take().and_then(|transfer| transfer.place) {
            self.close(now, place);
        }
    }

    /// Counts the fate of one booking. If this function were inlined, the caller's loop would need more
    /// registers than the processor has.
    #[inline(never)]
    fn account(&mut self, id: BookingId, flight: &Flight, offered: Instant) {
        let booking = self.bookings.get(id);
        let Ok(index) = self.index(booking.rule) else {
            return;
        };
        let service = self.service_of(booking, flight);
        let stops = &self.stops;
        let RuleCounts { stats, now } = self.rules[index].counts(booking.version);
        *now -= u64::from(decides(booking, flight));
        let is_held = match fate(booking, flight) {
            Fate::Held => {
                stats.held += 1;
                true
            }
            Fate::Failed => {
                stats.failed += 1;
                was_held(booking, flight)
            }
            other => {
                match other {
                    Fate::Damaged => {}
                    Fate::Spared => stats.spared += 1,
                    Fate::Overrun => stats.overrun += 1,
                    _ => stats.count_beaten(winner_over(booking, flight)),
                }
                false
            }
        };
        if is_held && !flight.cut_short {
            let (late, ended) = lateness_of(booking, flight, offered);
            stats.count_hold(service, late, stops.explain(late, ended));
        }
    }

    /// The time that a rule asked for: its service time, plus the time of the transfer if the rule caused
    /// one.
    fn service_of(&self, booking: &Booking, flight: &Flight) -> Duration {
        match flight.place().map(|place| self.bookings.get(place)) {
            Some(transfer) if transfer.rule == booking.rule => booking.service + transfer.service,
            _ => booking.service,
        }
    }

    /// Ends the bookings of an aborted zio. A booking whose service has not begun gives up its place in its
    /// lane's queue.
    pub(crate) fn abandon(&mut self, now: Instant, flight: &mut Flight, gaps: &mut Gaps) {
        while let Some(id) = flight.bookings {
            let booking = *self.bookings.get(id);
            let gap = self.close(now, id);
            flight.bookings = booking.next_of_zio;
            if let Some(rule) = self.find_mut(booking.rule) {
                let counts = rule.counts(booking.version);
                if decides(&booking, flight) {
                    counts.now -= 1;
                    counts.stats.aborted += 1;
                } else if !matches!(booking.kind, Kind::Damage(_)) {
                    let winner = winner_over(&booking, flight);
                    counts.stats.count_beaten(winner);
                }
            }
            if let Kind::Delay {
                lane: Some(lane), ..
            } = booking.kind
                && gap
            {
                gaps.lanes.push((booking.rule, lane));
            }
        }
        if let Some(place) = flight.transfer.take().and_then(|transfer| transfer.place) {
            gaps.bandwidth |= self.close(now, place);
        }
    }

    /// Corrects the counts of a zio that was just charged. Every rule that took the zio has counted it; this
    /// function undoes the counts of the rules that do not decide it. If only one rule took the zio, that
    /// rule decides.
    #[inline]
    pub(crate) fn uncount_beaten(&mut self, flight: &Flight) {
        let first = flight.bookings.map(|first| self.bookings.get(first));
        let is_alone = first.is_none_or(|booking| booking.next_of_zio.is_none());
        if !is_alone || flight.transfer.is_some() {
            self.count_with(flight, false, |now| *now -= 1);
        }
    }

    /// Whether one of these rules, which must be sorted by id, decides the target or the error of a zio.
    pub(crate) fn is_decided_by(&self, rules: &[RuleId], flight: &Flight) -> bool {
        let bookings = self.bookings.of_zio(flight.bookings);
        bookings
            .filter(|booking| !matches!(booking.kind, Kind::Damage(_)))
            .any(|booking| rules.binary_search(&booking.rule).is_ok() && decides(booking, flight))
    }

    /// Counts a zio for the rules that decide it according to its current bookings.
    fn count(&mut self, flight: &Flight) {
        self.count_with(flight, true, |now| *now += 1);
    }

    /// Undoes what `count` has counted, before the zio's bookings change.
    fn uncount(&mut self, flight: &Flight) {
        self.count_with(flight, true, |now| *now -= 1);
    }

    /// If `deciding`, applies `count` to the counters of the rules that decide a zio; if not, to the counters
    /// of the other rules that took the zio.
    fn count_with(&mut self, flight: &Flight, deciding: bool, count: impl Fn(&mut u64)) {
        for booking in self.bookings.of_zio(flight.bookings) {
            if decides(booking, flight) == deciding {
                let index = self
                    .rules
                    .binary_search_by_key(&booking.rule, |rule| rule.id);
                if let Some(rule) = index.ok().and_then(|index| self.rules.get_mut(index)) {
                    count(&mut rule.counts(booking.version).now);
                }
            }
        }
    }

    /// Recomputes how long a zio is held, because its bookings have moved.
    pub(crate) fn reschedule(&mut self, flight: &mut Flight) {
        self.uncount(flight);
        self.schedule(flight);
        self.count(flight);
    }

    /// Closes the gaps that aborted zios have left. Returns the zios that are served sooner now.
    pub(crate) fn close_gaps(&mut self, now: Instant, mut gaps: Gaps) -> Vec<ZioId> {
        let mut moved = Vec::new();
        gaps.lanes.sort_unstable();
        gaps.lanes.dedup();
        for (rule, lane) in gaps.lanes {
            if let Ok(index) = self.index(rule)
                && let Some(lanes) = &mut self.rules[index].lanes
            {
                lanes.move_up(lane, now, &mut self.bookings, &mut moved);
            }
        }
        if gaps.bandwidth {
            self.bandwidth.move_up(now, &mut self.bookings, &mut moved);
        }
        moved
    }

    /// Takes a booking out of its lane and out of the slab. Returns whether the booking leaves a gap.
    fn close(&mut self, now: Instant, id: BookingId) -> bool {
        let booking = self.bookings.get(id);
        let gap = match booking.kind {
            Kind::Delay {
                lane: Some(lane), ..
            } => self.leave_lane(booking.rule, lane, now, id),
            Kind::Transfer { queued: true } => self.bandwidth.leave(id, now, &mut self.bookings),
            _ => false,
        };
        self.bookings.remove(id);
        gap
    }

    fn leave_lane(&mut self, rule: RuleId, lane: u32, now: Instant, id: BookingId) -> bool {
        let rule = self.index(rule).map(|index| &mut self.rules[index]);
        match rule.map(|rule| rule.lanes.as_mut()) {
            Ok(Some(lanes)) => lanes.leave(lane, id, now, &mut self.bookings),
            _ => false,
        }
    }

    /// Ends those holds on a zio that are `gone` by their rule and kind. The caller may remove the rules
    /// before or after this call. Returns whether there were any such holds.
    pub(crate) fn release(
        &mut self,
        now: Instant,
        gone: impl Fn(RuleId, Kind) -> bool,
        flight: &mut Flight,
    ) -> bool {
        self.uncount(flight);
        let mut kept = None;
        let mut released = false;
        while let Some(id) = flight.bookings {
            let next = self.bookings.get(id).next_of_zio;
            let Booking { rule, kind, .. } = *self.bookings.get(id);
            // What was decided of the data stays decided.
            if gone(rule, kind) && !matches!(kind, Kind::Damage(_)) {
                released = true;
                self.close(now, id);
            } else {
                self.bookings.get_mut(id).next_of_zio = kept;
                kept = Some(id);
            }
            flight.bookings = next;
        }
        flight.bookings = self.reverse(kept);
        let passes = Kind::Transfer { queued: true };
        if let Some(transfer) = flight
            .transfer
            .take_if(|transfer| gone(transfer.rule, passes))
        {
            released = true;
            self.end_transfer(transfer);
        }
        if released {
            flight.cut_short = true;
            self.schedule(flight);
            if flight.place().is_none() {
                flight.target = flight.target.max(now);
                flight.hold_before = flight.hold_before.map(|until| until.max(now));
            }
        }
        self.count(flight);
        released
    }

    /// Ends a released transfer. If the transfer was in service, the server becomes free.
    fn end_transfer(&mut self, transfer: Transfer) {
        let Some(place) = transfer.place else {
            return;
        };
        if self.bookings.get(place).kind == (Kind::Transfer { queued: true }) {
            self.bandwidth.vacate(place, &mut self.bookings);
        }
        self.bookings.remove(place);
    }

    /// Reverses a zio's list of bookings.
    fn reverse(&mut self, mut list: Option<BookingId>) -> Option<BookingId> {
        let mut reversed = None;
        while let Some(id) = list {
            list = core::mem::replace(&mut self.bookings.get_mut(id).next_of_zio, reversed);
            reversed = Some(id);
        }
        reversed
    }
}

/// The fate of a booking.
enum Fate {
    Held,
    Overrun,
    Beaten,
    Failed,
    /// Has been counted already.
    Damaged,
    Spared,
}

fn fate(booking: &Booking, flight: &Flight) -> Fate {
    match (booking.kind, booking.mode) {
        (Kind::Fail | Kind::Delay { fails: true, .. }, _) => Fate::Failed,
        (Kind::Damage(_), _) if flight.damage_counted => Fate::Damaged,
        (Kind::Damage(_), _) => Fate::Spared,
        _ if !decides(booking, flight) => Fate::Beaten,
        _ if was_held(booking, flight) => Fate::Held,
        _ => Fate::Overrun,
    }
}

/// Whether the booking, if it decides its zio, has made the zio wait.
fn was_held(booking: &Booking, flight: &Flight) -> bool {
    match (booking.kind, booking.mode) {
        (Kind::Fail | Kind::Damage(_), _) => false,
        (Kind::Hang, _) | (Kind::Delay { .. }, Mode::Add) => true,
        _ => flight.store_done < flight.target || flight.before_only,
    }
}

/// Whether the rule of `booking` decides the zio. A zio passes the lanes first and the bandwidth next. Among
/// the rules with lanes, every `add` rule decides, and so does the `floor` rule whose hold ends last. For the
/// bandwidth, the rule with the lowest rate decides.
fn decides(booking: &Booking, flight: &Flight) -> bool {
    let slowest = flight.transfer.map(|transfer| transfer.rule);
    match (booking.kind, booking.mode) {
        (Kind::Damage(_), _) => !flight.damage_counted,
        (Kind::Fail | Kind::Hang, _) | (Kind::Delay { .. }, Mode::Add) => true,
        (Kind::Delay { .. }, Mode::Floor) => {
            flight.decider == Some(booking.rule) || slowest == Some(booking.rule)
        }
        (Kind::Pass | Kind::Transfer { .. }, _) => slowest.is_none_or(|rule| rule == booking.rule),
    }
}

/// The rule that decided instead of the rule of `booking`.
fn winner_over(booking: &Booking, flight: &Flight) -> Option<RuleId> {
    match booking.kind {
        Kind::Pass => flight.transfer.map(|transfer| transfer.rule),
        _ => flight.decider,
    }
}

/// How late a hold ended, and when. If the hold comes before the store's work, it ends when the driver asks
/// the store. If the hold comes after the store's work, it ends when the driver offers the reply.
fn lateness_of(booking: &Booking, flight: &Flight, offered: Instant) -> (Duration, Instant) {
    match booking.mode {
        Mode::Add if flight.hold_before.is_some() => (flight.late_before, flight.started),
        Mode::Add | Mode::Floor => (offered.since(flight.target), offered),
    }
}
