//! The rules of one disk: what they ask of a zio, and what becomes of their promises.

use alloc::vec::Vec;

use super::bandwidth::{Bandwidth, transfer_time};
use super::booking::{Booking, BookingId, Bookings, Kind};
use super::rule::{Rule, lane_count};
use super::spec::{Effect, GroupId, Mode, RuleId, RuleSpec};
use crate::client::Clients;
use crate::flight::{Flight, Transfer};
use crate::time::{Duration, Instant};
use crate::zio::{Errno, OpSet, ZioId};

/// The rules of one disk and all that they have promised.
#[derive(Debug, Default)]
pub(crate) struct Injector {
    /// In the order of their ids, which is the order of their registration.
    rules: Vec<Rule>,
    bookings: Bookings,
    bandwidth: Bandwidth,
    /// How many rules decide errors and hangs; with none, the pass that looks for them is saved.
    faults: usize,
    /// Used again by each zio, so that none allocates: the soonest rule of each group.
    soonest: Vec<Candidate>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    group: GroupId,
    rule: usize,
    finish: Instant,
}

impl Injector {
    /// Asks the rules about a zio that is charged at `flight.charged`, and books what they say.
    /// An error that keeps the store from working is returned.
    pub(crate) fn charge(
        &mut self,
        now: Instant,
        flight: &mut Flight,
        ops: OpSet,
    ) -> Option<Errno> {
        if self.faults > 0
            && let Some(rule) = self.find_fault(now, flight, ops)
        {
            return self.fault(rule, flight);
        }
        self.choose(now, flight, ops);
        for at in 0..self.soonest.len() {
            self.book(self.soonest[at].rule, flight);
        }
        self.schedule(flight);
        None
    }

    /// The first rule that decides an error or a hang.
    fn find_fault(&mut self, now: Instant, flight: &Flight, ops: OpSet) -> Option<usize> {
        (0..self.rules.len()).find(|rule| {
            let rule = &mut self.rules[*rule];
            rule.is_fault() && rule.triggers(now, &flight.zio, ops)
        })
    }

    fn fault(&mut self, rule: usize, flight: &mut Flight) -> Option<Errno> {
        let Effect::Fail { errno, work } = self.rules[rule].spec.effect else {
            self.promise(rule, flight, Kind::Hang, flight.charged, Duration::MAX);
            self.schedule(flight);
            return None;
        };
        self.promise(rule, flight, Kind::Fail, flight.charged, Duration::ZERO);
        self.schedule(flight);
        flight.outcome = Err(errno);
        (!work).then_some(errno)
    }

    /// Finds the rule of each group that would finish soonest; ties go to the older rule.
    fn choose(&mut self, now: Instant, flight: &mut Flight, ops: OpSet) {
        self.soonest.clear();
        for index in 0..self.rules.len() {
            let rule = &mut self.rules[index];
            if rule.is_fault() || !rule.triggers(now, &flight.zio, ops) {
                continue;
            }
            if let Some(rate) = rule.spec.bandwidth {
                slow_down(flight, rate, rule);
            }
            if rule.spec.effect == Effect::Pass {
                self.promise(index, flight, Kind::Pass, flight.charged, Duration::ZERO);
            } else {
                self.compete(index, flight.charged);
            }
        }
    }

    /// Keeps the sooner of a rule and the best of its group so far.
    fn compete(&mut self, index: usize, charged: Instant) {
        let rule = &self.rules[index];
        let candidate = Candidate {
            group: rule.group,
            rule: index,
            finish: rule.finish(charged),
        };
        let best = self
            .soonest
            .iter_mut()
            .find(|best| best.group == candidate.group);
        let Some(best) = best else {
            self.soonest.push(candidate);
            return;
        };
        let loser = if candidate.finish < best.finish {
            core::mem::replace(best, candidate).rule
        } else {
            index
        };
        let winner = best.rule;
        self.beat(loser, self.rules[winner].id);
    }

    fn beat(&mut self, loser: usize, winner: RuleId) {
        let stats = &mut self.rules[loser].stats;
        stats.beaten += 1;
        stats.beaten_by = Some(winner);
    }

    /// Gives the zio the rule's soonest lane, or its own time if the rule has no lanes.
    fn book(&mut self, index: usize, flight: &mut Flight) {
        let rule = &mut self.rules[index];
        let Effect::Delay { service, .. } = &rule.spec.effect else {
            return;
        };
        let service = service.sample(&mut rule.random);
        let Some(lanes) = &rule.lanes else {
            let kind = Kind::Delay { lane: None };
            self.promise(index, flight, kind, flight.charged, service);
            return;
        };
        let (lane, start) = (lanes.soonest(), lanes.free_at().max(flight.charged));
        let kind = Kind::Delay { lane: Some(lane) };
        let id = self.promise(index, flight, kind, start, service);
        if let Some(lanes) = &mut self.rules[index].lanes {
            lanes.push(lane, id, &mut self.bookings);
        }
    }

    fn promise(
        &mut self,
        index: usize,
        flight: &mut Flight,
        kind: Kind,
        start: Instant,
        service: Duration,
    ) -> BookingId {
        let rule = &mut self.rules[index];
        rule.stats.chosen += 1;
        rule.stats.now += 1;
        let id = self.bookings.insert(Booking {
            rule: rule.id,
            zio: flight.zio.id,
            kind,
            mode: rule.spec.mode,
            issued: flight.charged,
            start,
            service,
            next_of_zio: flight.bookings,
            ahead: None,
            behind: None,
        });
        flight.bookings = Some(id);
        id
    }

    /// Works out from its bookings how long a zio is held: until the latest of its `floor` rules,
    /// later by the sum of its `add` rules, which hold it before the store is asked.
    pub(crate) fn schedule(&self, flight: &mut Flight) {
        let mut floor = flight.charged;
        let mut added = Duration::ZERO;
        let (mut decider, mut any_floor, mut any_add) = (None, false, false);
        for booking in self.bookings.of_zio(flight.bookings) {
            match booking.mode {
                _ if !booking.holds() => {}
                Mode::Add => {
                    any_add = true;
                    added += booking.end().since(booking.issued);
                }
                Mode::Floor => {
                    any_floor = true;
                    // Of equals the oldest rule decides.
                    let older = decider.is_none_or(|decider| booking.rule < decider);
                    if booking.end() > floor || (booking.end() == floor && older) {
                        floor = booking.end();
                        decider = Some(booking.rule);
                    }
                }
            }
        }
        let transfer_before = flight
            .transfer
            .is_some_and(|transfer| transfer.mode == Mode::Add);
        any_floor |= flight.transfer.is_some() && !transfer_before;
        flight.decider = decider;
        flight.target = floor + added;
        flight.before_only = !any_floor && (any_add || transfer_before);
        flight.hold_before = (any_add || flight.before_only).then_some(flight.charged + added);
    }

    /// Sends a zio that has reached its target through the disk's bandwidth.
    pub(crate) fn transfer(&mut self, flight: &mut Flight) {
        let Some(transfer) = flight.transfer.take() else {
            return;
        };
        let end = self
            .bandwidth
            .pass(flight.target, flight.zio.length, transfer.rate);
        flight.target = end;
        if flight.before_only {
            flight.hold_before = Some(end);
        }
        flight.transferred = Some(transfer);
    }

    /// Ends the promises to a zio that was replied to at `offered`, or whose write has ended then.
    pub(crate) fn settle(&mut self, now: Instant, flight: &mut Flight, offered: Instant) {
        while let Some(id) = flight.bookings {
            let booking = self.close(now, id);
            flight.bookings = booking.next_of_zio;
            self.account(&booking, flight, offered);
        }
    }

    /// Counts what became of one promise.
    fn account(&mut self, booking: &Booking, flight: &Flight, offered: Instant) {
        let Some(rule) = self.find_mut(booking.rule) else {
            return;
        };
        rule.stats.now -= 1;
        match fate(booking, flight) {
            Fate::Failed => rule.stats.failed += 1,
            Fate::Overrun => rule.stats.overrun += 1,
            Fate::Beaten => {
                rule.stats.beaten += 1;
                rule.stats.beaten_by = winner_over(booking, flight);
            }
            Fate::Held => {
                rule.stats.held += 1;
                if !flight.cut_short {
                    let late = lateness_of(booking, flight, offered);
                    rule.count_hold(service_of(booking, flight), late);
                }
            }
        }
    }

    /// Ends the promises to zios that were aborted. Those whose service has not begun give their
    /// place in the lane back; the zios that are served sooner for it are left in `moved`.
    pub(crate) fn abort(&mut self, now: Instant, flights: &mut [Flight], moved: &mut Vec<ZioId>) {
        let mut gaps: Vec<(RuleId, u32)> = Vec::new();
        for flight in flights {
            while let Some(id) = flight.bookings {
                let booking = self.close(now, id);
                flight.bookings = booking.next_of_zio;
                if let Some(rule) = self.find_mut(booking.rule) {
                    rule.stats.now -= 1;
                    rule.stats.aborted += 1;
                }
                if let Kind::Delay { lane: Some(lane) } = booking.kind {
                    gaps.push((booking.rule, lane));
                }
            }
        }
        gaps.sort_unstable();
        gaps.dedup();
        for (rule, lane) in gaps {
            self.move_up(now, rule, lane, moved);
        }
    }

    fn move_up(&mut self, now: Instant, rule: RuleId, lane: u32, moved: &mut Vec<ZioId>) {
        let Ok(index) = self.index(rule) else {
            return;
        };
        if let Some(lanes) = &mut self.rules[index].lanes {
            lanes.move_up(lane, now, &mut self.bookings, moved);
        }
    }

    /// Takes a booking out of its lane and out of the slab.
    fn close(&mut self, now: Instant, id: BookingId) -> Booking {
        let booking = *self.bookings.get(id);
        if let Kind::Delay { lane: Some(lane) } = booking.kind
            && let Ok(index) = self.index(booking.rule)
            && let Some(lanes) = &mut self.rules[index].lanes
        {
            lanes.unlink(lane, id, now, &mut self.bookings);
        }
        self.bookings.remove(id)
    }

    /// Takes away what a rule holds a zio for, and says whether there was anything.
    pub(crate) fn release(&mut self, now: Instant, rule: RuleId, flight: &mut Flight) -> bool {
        let before = (flight.target, flight.hold_before, flight.before_only);
        let mut kept = None;
        let mut released = false;
        while let Some(id) = flight.bookings {
            let next = self.bookings.get(id).next_of_zio;
            if self.bookings.get(id).rule == rule {
                released = true;
                self.close(now, id);
            } else {
                self.bookings.get_mut(id).next_of_zio = kept;
                kept = Some(id);
            }
            flight.bookings = next;
        }
        flight.bookings = self.reverse(kept);
        if flight
            .transfer
            .is_some_and(|transfer| transfer.rule == rule)
        {
            flight.transfer = None;
            released = true;
        }
        let in_transfer = flight
            .transferred
            .is_some_and(|transfer| transfer.rule != rule);
        released |= flight.transferred.is_some() && !in_transfer;
        flight.transferred = flight.transferred.filter(|_| in_transfer);
        if released {
            flight.cut_short = true;
            self.schedule(flight);
            flight.target = flight.target.max(now);
            flight.hold_before = flight.hold_before.map(|until| until.max(now));
        }
        if in_transfer {
            (flight.target, flight.hold_before, flight.before_only) = before;
        }
        released
    }

    /// Puts a zio's list of bookings back into its order.
    fn reverse(&mut self, mut list: Option<BookingId>) -> Option<BookingId> {
        let mut reversed = None;
        while let Some(id) = list {
            list = core::mem::replace(&mut self.bookings.get_mut(id).next_of_zio, reversed);
            reversed = Some(id);
        }
        reversed
    }

    pub(crate) fn add(&mut self, rule: Rule) {
        self.faults += usize::from(rule.is_fault());
        self.rules.push(rule);
    }

    /// Replaces what a rule says. Lanes that remain keep their bookings.
    pub(crate) fn update(&mut self, id: RuleId, spec: RuleSpec, now: Instant, clients: &Clients) {
        let Ok(index) = self.index(id) else {
            return;
        };
        let rule = &mut self.rules[index];
        match (&mut rule.lanes, lane_count(&spec)) {
            (Some(lanes), Some(count)) => {
                lanes.shrink(count, &mut self.bookings);
                lanes.grow(count);
            }
            (lanes, count) => {
                if let Some(lanes) = lanes {
                    lanes.dissolve(&mut self.bookings);
                }
                *lanes = count.map(super::lane::Lanes::new);
            }
        }
        rule.spec = spec;
        rule.arm(now, clients);
        self.faults = self.rules.iter().filter(|rule| rule.is_fault()).count();
    }

    /// Removes a rule. What it has promised stays promised, without its lanes.
    pub(crate) fn remove(&mut self, id: RuleId) {
        let Ok(index) = self.index(id) else {
            return;
        };
        let rule = self.rules.remove(index);
        self.faults -= usize::from(rule.is_fault());
        if let Some(lanes) = &rule.lanes {
            lanes.dissolve(&mut self.bookings);
        }
    }

    /// Whether any rule may match one of these operations.
    pub(crate) fn has_rule_for(&self, ops: OpSet) -> bool {
        self.rules.iter().any(|rule| rule.spec.ops.meets(ops))
    }

    pub(crate) fn find(&self, id: RuleId) -> Option<&Rule> {
        self.index(id).ok().map(|index| &self.rules[index])
    }

    fn find_mut(&mut self, id: RuleId) -> Option<&mut Rule> {
        let index = self.index(id).ok()?;
        self.rules.get_mut(index)
    }

    fn index(&self, id: RuleId) -> Result<usize, usize> {
        self.rules.binary_search_by_key(&id, |rule| rule.id)
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Matches the rules' globs with the names of the clients again.
    pub(crate) fn find_clients(&mut self, clients: &Clients) {
        for rule in &mut self.rules {
            rule.find_clients(clients);
        }
    }

    /// The rule that a zio waits for, if it waits for one.
    pub(crate) fn holder(&self, flight: &Flight) -> Option<RuleId> {
        let add = |booking: &&Booking| booking.holds() && booking.mode == Mode::Add;
        let before = self.bookings.of_zio(flight.bookings).find(add);
        let lane = flight.decider.or(before.map(|booking| booking.rule));
        let passes = flight.transferred.or(flight.transfer);
        let passing = flight.transferred.map(|transfer| transfer.rule);
        passing.or(lane).or(passes.map(|transfer| transfer.rule))
    }
}

/// What became of a promise.
enum Fate {
    Held,
    Overrun,
    Beaten,
    Failed,
}

/// Lanes and bandwidth are passed one after the other, so each has a winner of its own: of the
/// lanes the latest `floor` one and every `add` one, of the bandwidths the lowest.
fn fate(booking: &Booking, flight: &Flight) -> Fate {
    let passed = flight.transferred.map(|transfer| transfer.rule);
    let decides = match (booking.kind, booking.mode) {
        (Kind::Fail, _) => return Fate::Failed,
        (Kind::Hang, _) | (Kind::Delay { .. }, Mode::Add) => return Fate::Held,
        (Kind::Delay { .. }, Mode::Floor) => {
            flight.decider == Some(booking.rule) || passed == Some(booking.rule)
        }
        (Kind::Pass, _) => passed.is_none_or(|rule| rule == booking.rule),
    };
    if !decides {
        Fate::Beaten
    } else if flight.store_done < flight.target || flight.before_only {
        Fate::Held
    } else {
        Fate::Overrun
    }
}

/// The rule that decided where the rule of `booking` did not.
fn winner_over(booking: &Booking, flight: &Flight) -> Option<RuleId> {
    match booking.kind {
        Kind::Pass => flight.transferred.map(|transfer| transfer.rule),
        _ => flight.decider,
    }
}

/// The slowest of the rules' bandwidths counts.
fn slow_down(flight: &mut Flight, rate: u64, rule: &Rule) {
    if flight.transfer.is_none_or(|transfer| rate < transfer.rate) {
        flight.transfer = Some(Transfer {
            rate,
            rule: rule.id,
            mode: rule.spec.mode,
        });
    }
}

/// How late a hold ended: that before the store when the store was asked, that after it when the
/// reply was offered.
fn lateness_of(booking: &Booking, flight: &Flight, offered: Instant) -> Duration {
    match booking.mode {
        Mode::Add if flight.hold_before.is_some() => flight.late_before,
        Mode::Add | Mode::Floor => offered.since(flight.target),
    }
}

/// The time that a rule asked for: its service, and the transfer if that is the rule's doing.
fn service_of(booking: &Booking, flight: &Flight) -> Duration {
    match flight.transferred {
        Some(transfer) if transfer.rule == booking.rule => {
            booking.service + transfer_time(flight.zio.length, transfer.rate)
        }
        _ => booking.service,
    }
}
