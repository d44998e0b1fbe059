//! The rules of one disk: their decisions about each zio, the bookings that they make for it, and what
//! becomes of these bookings when the rules change.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::bandwidth::{Bandwidth, transfer_time};
use super::booking::{Booking, BookingId, Bookings, Kind};
use super::damage::{Damage, DataFault};
use super::id::RuleId;
use super::lane::Lanes;
use super::rule::Rule;
use super::spec::{Effect, Mode, RuleSpec};
use crate::client::Clients;
use crate::flight::{Flight, Transfer};
use crate::stats::{RuleCounts, RuleView};
use crate::stops::Stops;
use crate::time::{Duration, Instant};
use crate::zio::{OpSet, ZioId};

/// The rules of one disk and all their bookings.
#[derive(Debug, Default)]
pub(crate) struct Injector {
    /// The rules, sorted by id, which is the order of their registration.
    pub(super) rules: Vec<Rule>,
    pub(super) bookings: Bookings,
    pub(super) bandwidth: Bandwidth,
    /// The periods in which the driver was stopped, which made holds end late.
    pub(crate) stops: Stops,
    /// Whether no rule may damage data, because the driver has no room to note more of it.
    pub(crate) spares_data: bool,
    /// How many rules inject errors or hangs. If there are none, the engine does not search the rules for
    /// one.
    faults: usize,
    /// For each group, the rule that would finish the zio soonest. The list is kept between zios, so that
    /// no zio allocates.
    soonest: Vec<Candidate>,
    /// The index in `soonest` of each group's candidate, by the index of the group's leader, its first rule.
    /// An index from an earlier zio need not be cleared: at that index, `soonest` has no candidate, or one
    /// with another leader.
    places: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    leader: usize,
    rule: usize,
    finish: Instant,
}

impl Injector {
    /// Applies the rules to a zio that is charged at `flight.charged`, and books their holds.
    pub(crate) fn charge(&mut self, now: Instant, flight: &mut Flight, ops: OpSet) {
        if self.rules.is_empty() {
            flight.target = flight.charged;
            return;
        }
        if self.faults > 0
            && let Some(rule) = self.find_fault(now, flight, ops)
        {
            self.preempt(rule, now, flight, ops);
            self.soonest.clear();
            self.fault(rule, flight);
        } else {
            self.choose(now, flight, ops);
        }
        for at in 0..self.soonest.len() {
            self.book(self.soonest[at].rule, flight);
        }
        self.schedule(flight);
    }

    /// The first rule that makes the zio fail or hang.
    fn find_fault(&mut self, now: Instant, flight: &Flight, ops: OpSet) -> Option<usize> {
        (0..self.rules.len()).find(|rule| {
            let rule = &mut self.rules[*rule];
            rule.is_fault() && rule.triggers(now, &flight.zio, ops)
        })
    }

    /// Counts the zio for the rules that would have matched it if the rule `winner` had not decided first:
    /// rules with delays, and later rules with errors or hangs.
    fn preempt(&mut self, winner: usize, now: Instant, flight: &Flight, ops: OpSet) {
        let id = self.rules[winner].id;
        for (index, rule) in self.rules.iter_mut().enumerate() {
            let was_asked = rule.is_fault() && index <= winner;
            if !was_asked && rule.matches(now, &flight.zio, ops) {
                let stats = &mut rule.present.stats;
                stats.preempted += 1;
                stats.preempted_by = Some(id);
            }
        }
    }

    #[cold]
    fn fault(&mut self, index: usize, flight: &mut Flight) {
        let rule = &self.rules[index];
        let Effect::Fail { errno, work, .. } = rule.spec.effect else {
            let lasts = rule.hangs_for(flight.charged);
            self.promise(index, flight, Kind::Hang, flight.charged, lasts);
            return;
        };
        flight.outcome = Err(errno);
        flight.skips_store = !work;
        if rule.spec.effect.delay().is_some() {
            self.soonest.push(Candidate {
                leader: rule.leader,
                rule: index,
                finish: flight.charged,
            });
        } else {
            self.promise(index, flight, Kind::Fail, flight.charged, Duration::ZERO);
        }
    }

    /// Finds for each group the rule that would finish the zio soonest. The older rule wins a tie.
    fn choose(&mut self, now: Instant, flight: &mut Flight, ops: OpSet) {
        self.soonest.clear();
        for index in 0..self.rules.len() {
            let rule = &mut self.rules[index];
            if rule.is_fault() || rule.is_spared(self.spares_data) {
                continue;
            }
            if !rule.triggers(now, &flight.zio, ops) {
                continue;
            }
            if let Some(rate) = rule.spec.bandwidth {
                slow_down(flight, rate, rule);
            }
            match rule.spec.effect {
                Effect::Pass => {
                    self.promise(index, flight, Kind::Pass, flight.charged, Duration::ZERO);
                }
                Effect::Damage(damage) => self.damage(index, damage, flight),
                _ => self.compete(index, flight.charged),
            }
        }
    }

    /// Damages the zio, unless an older rule does.
    fn damage(&mut self, index: usize, damage: Damage, flight: &mut Flight) {
        let rule = &mut self.rules[index];
        let fault = DataFault {
            rule: rule.id,
            damage,
            seed: rule.random.next_u64(),
        };
        if flight.is_damaged {
            let winner = self.damage_of(flight).map(|fault| fault.rule);
            self.rules[index].present.stats.count_beaten(winner);
            return;
        }
        flight.is_damaged = true;
        self.promise(
            index,
            flight,
            Kind::Damage(fault),
            flight.charged,
            Duration::ZERO,
        );
    }

    /// The damage of a zio.
    #[inline]
    pub(crate) fn damage_of(&self, flight: &Flight) -> Option<DataFault> {
        if !flight.is_damaged {
            return None;
        }
        let mut bookings = self.bookings.of_zio(flight.bookings);
        bookings.find_map(|booking| match booking.kind {
            Kind::Damage(fault) => Some(fault),
            _ => None,
        })
    }

    /// Counts the damage of a zio when the store is asked for it. From then on the data is damaged, whatever
    /// becomes of the zio and of its rule.
    #[cold]
    pub(crate) fn count_damage(&mut self, fault: &DataFault, flight: &mut Flight) {
        flight.damage_counted = true;
        if let Some(counts) = self.damage_counts(fault, flight) {
            counts.now -= 1;
            counts.stats.damaged += 1;
        }
    }

    /// Notes that a zio has not got its damage.
    pub(crate) fn spare(&mut self, flight: &mut Flight) {
        let Some(fault) = self.damage_of(flight).filter(|_| flight.damage_counted) else {
            return;
        };
        flight.is_damaged = false;
        if let Some(counts) = self.damage_counts(&fault, flight) {
            counts.stats.damaged -= 1;
            counts.stats.spared += 1;
        }
    }

    /// The counters of the rule that damages a zio; `None` if the rule is gone.
    fn damage_counts(&mut self, fault: &DataFault, flight: &Flight) -> Option<&mut RuleCounts> {
        let of_rule = |booking: &&Booking| booking.rule == fault.rule;
        let booking = self.bookings.of_zio(flight.bookings).find(of_rule)?;
        let version = booking.version;
        self.find_mut(fault.rule).map(|rule| rule.counts(version))
    }

    /// Makes this rule its group's candidate if it would finish the zio sooner than the current candidate.
    fn compete(&mut self, index: usize, charged: Instant) {
        let rule = &self.rules[index];
        let candidate = Candidate {
            leader: rule.leader,
            rule: index,
            finish: rule.finish(charged),
        };
        let best = self.soonest.get_mut(self.places[candidate.leader]);
        let Some(best) = best.filter(|best| best.leader == candidate.leader) else {
            self.places[candidate.leader] = self.soonest.len();
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
        let rule = &mut self.rules[loser];
        rule.present.stats.count_beaten(Some(winner));
    }

    /// Books the rule's soonest lane for the zio or, if the rule has no lanes, only a time.
    fn book(&mut self, index: usize, flight: &mut Flight) {
        let rule = &mut self.rules[index];
        let Some(delay) = rule.spec.effect.delay() else {
            return;
        };
        let mut service = delay.service.sample(&mut rule.random);
        if rule.is_ramp {
            service = rule.ramped(flight.charged, service);
        }
        let fails = rule.is_fault();
        let Some(lanes) = &rule.lanes else {
            let kind = Kind::Delay { lane: None, fails };
            self.promise(index, flight, kind, flight.charged, service);
            return;
        };
        let (lane, start) = (lanes.soonest(), lanes.free_at().max(flight.charged));
        let kind = Kind::Delay {
            lane: Some(lane),
            fails,
        };
        let id = self.promise(index, flight, kind, start, service);
        if let Some(lanes) = &mut self.rules[index].lanes {
            lanes.push(lane, id, &mut self.bookings);
        }
    }

    /// Gives the zio a booking, and counts the zio as one that the rule decides. If another rule beats this
    /// one, [`Injector::uncount_beaten`] undoes the count.
    #[inline]
    fn promise(
        &mut self,
        index: usize,
        flight: &mut Flight,
        kind: Kind,
        start: Instant,
        service: Duration,
    ) -> BookingId {
        let rule = &mut self.rules[index];
        rule.present.stats.chosen += 1;
        rule.present.now += 1;
        let id = self.bookings.insert(Booking {
            rule: rule.id,
            version: rule.version,
            zio: flight.zio.id,
            kind,
            mode: rule.spec.hold_mode(),
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

    /// Computes from a zio's bookings how long the zio is held: until the end of its longest `floor` hold,
    /// plus the sum of its `add` holds, which come before the store's work.
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
                    // If several rules end at the same time, the oldest decides.
                    let older = decider.is_none_or(|decider| booking.rule < decider);
                    if booking.end() > floor || (booking.end() == floor && older) {
                        floor = booking.end();
                        decider = Some(booking.rule);
                    }
                }
            }
        }
        flight.decider = decider;
        if let Some(place) = flight.place() {
            self.schedule_transfer(flight, place);
            return;
        }
        let transfer_before = flight
            .transfer
            .is_some_and(|transfer| transfer.mode == Mode::Add);
        any_floor |= flight.transfer.is_some() && !transfer_before;
        flight.target = floor + added;
        flight.before_only = !any_floor && (any_add || transfer_before);
        flight.hold_before = (any_add || flight.before_only).then_some(flight.charged + added);
    }

    /// Sends a zio through the disk's bandwidth once it has reached its target.
    pub(crate) fn transfer(&mut self, flight: &mut Flight) {
        let Some(transfer) = flight.transfer.as_mut() else {
            return;
        };
        let reached = flight.target;
        let index = self.index(transfer.rule);
        // If the zio's rule was removed or lost its bandwidth meanwhile, the zio does not wait for other
        // transfers, and they do not wait for it.
        let queued = index.is_ok_and(|index| self.rules[index].spec.bandwidth.is_some());
        let place = self.bookings.insert(Booking {
            rule: transfer.rule,
            version: index.map_or(0, |index| self.rules[index].version),
            zio: flight.zio.id,
            kind: Kind::Transfer { queued },
            mode: transfer.mode,
            issued: reached,
            start: if queued {
                self.bandwidth.free_at().max(reached)
            } else {
                reached
            },
            service: transfer_time(flight.zio.length, transfer.rate),
            next_of_zio: None,
            ahead: None,
            behind: None,
        });
        if queued {
            self.bandwidth.push(place, &mut self.bookings);
        }
        transfer.place = Some(place);
        self.schedule_transfer(flight, place);
    }

    /// Makes a zio whose transfer is booked wait until the transfer is done.
    fn schedule_transfer(&self, flight: &mut Flight, place: BookingId) {
        flight.target = self.bookings.get(place).end();
        if flight.before_only {
            flight.hold_before = Some(flight.target);
        }
    }

    pub(crate) fn add(&mut self, rules: impl Iterator<Item = Rule>) {
        self.rules.extend(rules);
        self.survey();
    }

    /// Replaces the specification of a rule. Lanes that remain keep their bookings. The rule's transfers stay
    /// in the queue if the rule still has a bandwidth. `held` has the bookings of the zios that may hang.
    /// Returns the zios whose times have changed.
    pub(crate) fn update(
        &mut self,
        id: RuleId,
        spec: RuleSpec,
        now: Instant,
        clients: &Clients,
        held: impl Iterator<Item = Option<BookingId>>,
    ) -> Vec<ZioId> {
        let mut moved = Vec::new();
        let Ok(index) = self.index(id) else {
            return moved;
        };
        let rule = &mut self.rules[index];
        match (&mut rule.lanes, spec.lanes()) {
            (Some(lanes), Some(count)) => {
                lanes.shrink(count, &mut self.bookings);
                lanes.grow(count);
            }
            (lanes, count) => {
                if let Some(lanes) = lanes {
                    lanes.dissolve(&mut self.bookings);
                }
                *lanes = count.map(Lanes::new);
            }
        }
        rule.update(spec, now, clients);
        if rule.spec.bandwidth.is_none() {
            let gone = |rule| rule == id;
            self.bandwidth
                .forget(gone, now, &mut self.bookings, &mut moved);
        }
        self.hang_until_the_end(index, held, &mut moved);
        self.survey();
        moved
    }

    /// Makes the zios that a rule hangs wait until the rule's new end.
    fn hang_until_the_end(
        &mut self,
        index: usize,
        held: impl Iterator<Item = Option<BookingId>>,
        moved: &mut Vec<ZioId>,
    ) {
        let rule = &self.rules[index];
        for hang in held.flatten() {
            let booking = self.bookings.get_mut(hang);
            // A zio that hangs has no other booking.
            if booking.kind == Kind::Hang && booking.rule == rule.id {
                booking.service = rule.hangs_for(booking.start);
                moved.push(booking.zio);
            }
        }
    }

    /// Removes rules. `rules` must be sorted by id. Zios keep the times that these rules have booked for
    /// them, but no longer occupy the lanes and the bandwidth. Returns the zios that are served sooner now.
    pub(crate) fn remove(&mut self, rules: &[RuleId], now: Instant) -> Vec<ZioId> {
        let gone = |rule: RuleId| rules.binary_search(&rule).is_ok();
        let mut moved = Vec::new();
        for rule in self.rules.extract_if(.., |rule| gone(rule.id)) {
            if let Some(lanes) = &rule.lanes {
                lanes.dissolve(&mut self.bookings);
            }
        }
        self.bandwidth
            .forget(gone, now, &mut self.bookings, &mut moved);
        self.survey();
        moved
    }

    /// Summarises the rules, so that the data path need not look at each of them.
    fn survey(&mut self) {
        let mut leaders = BTreeMap::new();
        for (index, rule) in self.rules.iter_mut().enumerate() {
            rule.leader = *leaders.entry(rule.group).or_insert(index);
        }
        self.places.resize(self.rules.len(), 0);
        self.faults = self.rules.iter().filter(|rule| rule.is_fault()).count();
    }

    /// Whether any rule may match one of these operations.
    pub(crate) fn has_rule_for(&self, ops: OpSet) -> bool {
        self.rules.iter().any(|rule| rule.spec.ops.meets(ops))
    }

    pub(crate) fn find(&self, id: RuleId) -> Option<&Rule> {
        self.index(id).ok().map(|index| &self.rules[index])
    }

    pub(super) fn find_mut(&mut self, id: RuleId) -> Option<&mut Rule> {
        let index = self.index(id).ok()?;
        self.rules.get_mut(index)
    }

    pub(super) fn index(&self, id: RuleId) -> Result<usize, usize> {
        self.rules.binary_search_by_key(&id, |rule| rule.id)
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    pub(crate) fn views(&self, now: Instant) -> impl Iterator<Item = RuleView<'_>> {
        let passed = self.bandwidth.free_at().since(now);
        self.rules.iter().map(move |rule| rule.view(now, passed))
    }

    /// Matches the rules' globs against the names of the clients again.
    pub(crate) fn find_clients(&mut self, clients: &Clients) {
        for rule in &mut self.rules {
            rule.find_clients(clients);
        }
    }

    /// The rule that decided a zio's target or its error, and the lane of that rule.
    #[inline]
    pub(crate) fn decision(&self, flight: &Flight) -> (Option<RuleId>, Option<u32>) {
        let first = flight.bookings.map(|first| self.bookings.get(first));
        match first {
            _ if flight.transfer.is_some() => self.decision_of_many(flight),
            None => (None, None),
            Some(booking) if booking.next_of_zio.is_some() => self.decision_of_many(flight),
            Some(booking) => match booking.kind {
                Kind::Delay { lane, .. } => (Some(booking.rule), lane),
                Kind::Hang | Kind::Fail | Kind::Damage(_) => (Some(booking.rule), None),
                Kind::Pass | Kind::Transfer { .. } => (None, None),
            },
        }
    }

    /// Does the work of [`Injector::decision`] for a zio with a transfer, or with more than one booking.
    #[cold]
    fn decision_of_many(&self, flight: &Flight) -> (Option<RuleId>, Option<u32>) {
        let rule = self.holder(flight);
        let of_rule = |booking: &&Booking| Some(booking.rule) == rule;
        let booking = self.bookings.of_zio(flight.bookings).find(of_rule);
        let lane = booking.and_then(|booking| match booking.kind {
            Kind::Delay { lane, .. } => lane,
            _ => None,
        });
        (rule, lane)
    }

    /// Whether a rule hangs a zio. Such a zio has no other booking.
    pub(crate) fn hangs(&self, flight: &Flight) -> bool {
        let first = flight.bookings.map(|first| self.bookings.get(first));
        first.is_some_and(|booking| booking.kind == Kind::Hang)
    }

    /// The rule that holds a zio, if one does.
    pub(crate) fn holder(&self, flight: &Flight) -> Option<RuleId> {
        let add = |booking: &&Booking| booking.holds() && booking.mode == Mode::Add;
        let before = self.bookings.of_zio(flight.bookings).find(add);
        let lane = flight.decider.or(before.map(|booking| booking.rule));
        let passes = flight.transfer.map(|transfer| transfer.rule);
        flight.passed().or(lane).or(passes)
    }
}

/// Makes a rule's bandwidth the rate of a zio, unless another rule has given the zio a lower rate.
fn slow_down(flight: &mut Flight, rate: u64, rule: &Rule) {
    if flight.transfer.is_none_or(|transfer| rate < transfer.rate) {
        flight.transfer = Some(Transfer {
            rate,
            rule: rule.id,
            mode: rule.spec.mode,
            place: None,
        });
    }
}
