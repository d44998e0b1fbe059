//! The naive model: the semantics of injection in their plainest and slowest form.
//!
//! It keeps lists and scans them. Each question about a zio's wait computes the answer anew from
//! the bookings, and the model never removes an item only to be faster.

use dashpot_engine::inject::{Effect, GroupId, Limit, Mode, RuleId, RuleSpec};
use dashpot_engine::{
    Action, Answer, ClientId, Command, CommandError, CommandId, DiskId, Duration, Errno, Input,
    Instant, Op, OpSet, Outcome, Random, Target, Wait, Zio, ZioId,
};

use crate::machine::{DISK, Machine, RuleState, Waiting};
use crate::naive_rule::{Fault, Rule};

pub(crate) struct Naive {
    seed: u64,
    now: Instant,
    rules: Vec<Rule>,
    /// Every reservation of a lane that was not returned, the oldest first.
    bookings: Vec<Booking>,
    /// The zios that the model still has, in the order of their arrival.
    tickets: Vec<Ticket>,
    issued: u64,
    /// The transfers that reached the bandwidth's server and were not returned, the oldest first.
    transfers: Vec<Transfer>,
    suspension: Option<Suspension>,
    /// Suspensions that wait for the zios in flight.
    unanswered: Vec<CommandId>,
    names: Vec<(ClientId, String)>,
    /// Set while the daemon shuts down: the model then holds nothing any more.
    closing: Option<Errno>,
}

struct Booking {
    number: u64,
    rule: RuleId,
    /// `None` if the rule has no lanes, or no longer exists.
    lane: Option<u32>,
    mode: Mode,
    issue: Instant,
    service: Duration,
    start: Instant,
}

struct Transfer {
    number: u64,
    rule: RuleId,
    /// Whether later transfers wait for it. Removing its rule, or the rule's bandwidth, ends that.
    queued: bool,
    reached: Instant,
    service: Duration,
    start: Instant,
}

struct Ticket {
    zio: Zio,
    aborted: bool,
    /// `None` while the disk is suspended.
    charge: Option<Charge>,
    store: Store,
}

/// The holds and faults that a zio got when it was issued.
struct Charge {
    /// The position in the order of issue. A FUA write gets a second number for its flush.
    number: u64,
    at: Instant,
    fault: Option<(RuleId, Fault)>,
    /// The lowest bandwidth that applies to it; of equal ones the older rule's.
    rate: Option<(u64, RuleId, Mode)>,
    /// Whether it reached the server of the bandwidth before the model asked the store.
    served_before: bool,
    /// When a command last cleared rules with release. The zio cannot have moved on before that.
    released: Instant,
    /// The rules that took it.
    takers: Vec<RuleId>,
    /// Whether this is the flush after a FUA write.
    flush: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Store {
    NotAsked,
    Working,
    Done(Instant, Outcome),
    /// The reply is on the way. The moment is when the store finished, if the model asked it.
    Replying(Option<Instant>),
}

/// The result of a rule's claim on a zio.
enum Fate {
    Held,
    Overrun,
    Beaten,
    Failed,
}

struct Suspension {
    until: Option<Instant>,
}

impl Machine for Naive {
    fn new(seed: u64) -> Naive {
        Naive {
            seed,
            now: Instant::ZERO,
            rules: Vec::new(),
            bookings: Vec::new(),
            tickets: Vec::new(),
            issued: 0,
            transfers: Vec::new(),
            suspension: None,
            unanswered: Vec::new(),
            names: Vec::new(),
            closing: None,
        }
    }

    fn step(&mut self, now: Instant, input: Input<'_>, actions: &mut Vec<Action>) {
        self.now = now;
        self.advance(actions);
        match input {
            Input::Submit(zio) => self.submit(zio),
            Input::SubmitToVolume(_) => unreachable!("the model is of a lone disk"),
            Input::Done(zio, outcome) => self.done(zio, outcome, actions),
            Input::Replied { zio, .. } => self.replied(zio),
            Input::Abort(zios) => self.abort(zios, actions),
            Input::Join { client, name, .. } => self.join(client, name),
            Input::Command(id, command) => self.command(id, command, actions),
            Input::Stopped { .. } | Input::Tick => {}
        }
        self.advance(actions);
    }

    fn next_deadline(&self) -> Option<Instant> {
        let mut deadlines: Vec<Instant> = Vec::new();
        deadlines.extend(self.suspension.as_ref().and_then(|s| s.until));
        for ticket in &self.tickets {
            deadlines.extend(self.start_due(ticket));
            deadlines.extend(self.completion_due(ticket).map(|(at, _)| at));
            deadlines.extend(self.server_due(ticket));
        }
        deadlines
            .into_iter()
            .filter(|at| *at < Instant::NEVER)
            .min()
    }

    fn rule_states(&self, now: Instant) -> Vec<RuleState> {
        let view = |rule: &Rule| RuleState {
            now: self.decided_now(rule.state.id, 0),
            backlog: self.backlog(rule, now),
            ..rule.state.clone()
        };
        self.rules.iter().map(view).collect()
    }

    fn states_since_update(&self, now: Instant) -> Vec<RuleState> {
        let view = |rule: &Rule| RuleState {
            now: self.decided_now(rule.state.id, rule.updated_after),
            backlog: self.backlog(rule, now),
            ..rule.since_update.clone()
        };
        self.rules.iter().map(view).collect()
    }

    fn waits(&self) -> Vec<Waiting> {
        let mut waiting: Vec<Waiting> = self.tickets.iter().map(|t| self.view(t)).collect();
        waiting.sort_by_key(|waiting| waiting.zio);
        waiting
    }

    fn is_suspended(&self) -> bool {
        self.suspension.is_some()
    }
}

/// The effects of passing time.
impl Naive {
    /// Does everything that is due.
    fn advance(&mut self, actions: &mut Vec<Action>) {
        loop {
            let before = actions.len();
            let until = self.suspension.as_ref().and_then(|s| s.until);
            if until.is_some_and(|until| until <= self.now) {
                self.resume(actions);
            }
            self.enter_server();
            self.start_stores(actions);
            let second_phases = self.complete(actions);
            if actions.len() == before && second_phases == 0 {
                break;
            }
        }
        if self.in_flight() == 0 {
            self.answer_suspensions(actions);
        }
    }

    /// Queues the zios that have reached the server of the bandwidth.
    fn enter_server(&mut self) {
        for (due, _, at) in self.due(|ticket| self.server_due(ticket)) {
            let charge = self.tickets[at].charge.as_ref().unwrap();
            let before = self.holds_before_only(charge);
            let ticket = &mut self.tickets[at];
            let charge = ticket.charge.as_mut().unwrap();
            let length = ticket.zio.length;
            charge.served_before = before;
            let (rate, rule, _) = charge.rate.unwrap();
            let service = (u128::from(length) * 1_000_000_000).div_ceil(u128::from(rate)) as u64;
            let number = charge.number;
            let has_bandwidth = |r: &Rule| r.state.id == rule && r.spec.bandwidth.is_some();
            let queued = self.rules.iter().any(has_bandwidth);
            self.transfers.push(Transfer {
                number,
                rule,
                queued,
                reached: due,
                service: Duration::from_nanos(service),
                start: if queued {
                    due.max(server_free(&self.transfers))
                } else {
                    due
                },
            });
        }
    }

    fn start_stores(&mut self, actions: &mut Vec<Action>) {
        for (_, _, at) in self.due(|ticket| self.start_due(ticket)) {
            self.tickets[at].store = Store::Working;
            actions.push(Action::Start(self.tickets[at].zio.id));
        }
    }

    /// Completes all zios that may complete, and returns how many. A FUA write may flush first.
    fn complete(&mut self, actions: &mut Vec<Action>) -> usize {
        let queue = self.due(|ticket| Some(self.completion_due(ticket)?.0));
        let mut flushes = 0;
        for (due, _, at) in queue {
            let Some((_, outcome)) = self.completion_due(&self.tickets[at]) else {
                continue;
            };
            if self.owes_flush(&self.tickets[at], outcome) {
                flushes += 1;
                self.account(at);
                self.charge(at, due, true);
            } else {
                self.reply(at, outcome, actions);
            }
        }
        flushes
    }

    /// The zios that are due by now, the oldest first: the moment, the number, and the position.
    fn due(&self, when: impl Fn(&Ticket) -> Option<Instant>) -> Vec<(Instant, u64, usize)> {
        let mut due: Vec<(Instant, u64, usize)> = Vec::new();
        for (at, ticket) in self.tickets.iter().enumerate() {
            if let (Some(when), Some(charge)) = (when(ticket), &ticket.charge) {
                due.push((when, charge.number, at));
            }
        }
        due.retain(|(when, ..)| *when <= self.now);
        due.sort();
        due
    }

    fn reply(&mut self, at: usize, outcome: Outcome, actions: &mut Vec<Action>) {
        let ticket = &mut self.tickets[at];
        ticket.store = Store::Replying(ticket.store.done_at());
        actions.push(Action::Complete(self.tickets[at].zio.id, outcome));
    }

    fn refuse_suspensions(&mut self, actions: &mut Vec<Action>) {
        for id in self.unanswered.drain(..) {
            actions.push(Action::Answer(id, Err(CommandError::Resumed)));
        }
    }

    fn answer_suspensions(&mut self, actions: &mut Vec<Action>) {
        let in_flight = self.in_flight();
        for id in self.unanswered.drain(..) {
            actions.push(Action::Answer(id, Ok(Answer::Suspended { in_flight })));
        }
    }

    fn resume(&mut self, actions: &mut Vec<Action>) -> u32 {
        self.refuse_suspensions(actions);
        self.suspension = None;
        let mut waiting = 0;
        for at in 0..self.tickets.len() {
            if self.tickets[at].charge.is_none() && !self.tickets[at].aborted {
                self.charge(at, self.now, false);
                waiting += 1;
            }
        }
        waiting
    }
}

/// The moments of a zio's next event.
impl Naive {
    /// When its lanes release it.
    fn lane_target(&self, charge: &Charge) -> Instant {
        let floors = self.winners(charge, Mode::Floor);
        let base = floors.map(Booking::end).max();
        let target = base.unwrap_or(charge.at).max(charge.at) + self.held_before(charge);
        target.max(charge.released)
    }

    /// The sum of its `add` lanes.
    fn held_before(&self, charge: &Charge) -> Duration {
        let mut sum = Duration::ZERO;
        for booking in self.winners(charge, Mode::Add) {
            sum += booking.end().since(charge.at);
        }
        sum
    }

    fn winners(&self, charge: &Charge, mode: Mode) -> impl Iterator<Item = &Booking> {
        let number = charge.number;
        self.bookings
            .iter()
            .filter(move |booking| booking.number == number && booking.mode == mode)
    }

    /// When it reaches the server of the bandwidth, if it still has to.
    fn server_due(&self, ticket: &Ticket) -> Option<Instant> {
        let charge = ticket.charge.as_ref()?;
        if charge.rate.is_none() || self.served(charge).is_some() || !ticket.is_waiting() {
            return None;
        }
        Some(self.lane_target(charge))
    }

    /// When the server of the bandwidth finishes it, once it has reached the server.
    fn served(&self, charge: &Charge) -> Option<Instant> {
        let own = self.transfers.iter().find(|t| t.number == charge.number);
        own.map(Transfer::end)
    }

    /// The earliest moment at which it may complete; None while the server may still delay it.
    fn target(&self, charge: &Charge) -> Option<Instant> {
        match charge.fault {
            Some((_, Fault::Hang(_))) => Some(Instant::NEVER),
            Some((_, Fault::Fail(..))) => Some(charge.at),
            None if charge.rate.is_none() => Some(self.lane_target(charge)),
            None => self.served(charge),
        }
    }

    /// Whether its whole hold comes before the store. False for the flush after a FUA write.
    fn holds_before_only(&self, charge: &Charge) -> bool {
        if charge.flush || self.winners(charge, Mode::Floor).next().is_some() {
            return false;
        }
        match charge.rate {
            Some(_) if self.served(charge).is_some() => charge.served_before,
            Some((_, _, mode)) => mode == Mode::Add,
            None => self.winners(charge, Mode::Add).next().is_some(),
        }
    }

    fn start_due(&self, ticket: &Ticket) -> Option<Instant> {
        let charge = ticket.charge.as_ref()?;
        if ticket.store != Store::NotAsked {
            return None;
        }
        match charge.fault {
            Some((_, Fault::Hang(Mode::Add) | Fault::Fail(_, false))) => None,
            Some(_) => Some(charge.at),
            None if self.holds_before_only(charge) => self.target(charge),
            None => Some((charge.at + self.held_before(charge)).max(charge.released)),
        }
    }

    fn completion_due(&self, ticket: &Ticket) -> Option<(Instant, Outcome)> {
        let charge = ticket.charge.as_ref()?;
        let target = self.target(charge)?;
        match (ticket.store, charge.fault) {
            (Store::NotAsked, Some((_, Fault::Fail(errno, false)))) => Some((target, Err(errno))),
            (Store::Done(at, _), Some((_, Fault::Fail(errno, _)))) => Some((at, Err(errno))),
            (Store::Done(at, outcome), _) => Some((target.max(at), outcome)),
            _ => None,
        }
    }
}

/// The rules that apply to a zio when it is issued.
impl Naive {
    fn submit(&mut self, zio: Zio) {
        self.tickets.push(Ticket {
            zio,
            aborted: false,
            charge: None,
            store: Store::NotAsked,
        });
        if self.suspension.is_none() {
            self.charge(self.tickets.len() - 1, self.now, false);
        }
    }

    /// Applies the rules in force now to a zio that is issued at `issue`.
    fn charge(&mut self, at: usize, issue: Instant, flush: bool) {
        let zio = self.tickets[at].zio;
        self.issued += 1;
        let mut charge = Charge {
            number: self.issued,
            at: issue,
            fault: None,
            rate: None,
            served_before: false,
            released: issue,
            takers: Vec::new(),
            flush,
        };
        let faults = (0..self.rules.len()).filter(|r| self.rules[*r].fault().is_some());
        for rule in faults.collect::<Vec<_>>() {
            if self.triggers(rule, &zio, flush) {
                let rule = &mut self.rules[rule];
                rule.count(charge.number, |state| state.chosen += 1);
                charge.takers.push(rule.state.id);
                charge.fault = rule.fault().map(|fault| (rule.state.id, fault));
                break;
            }
        }
        match charge.fault {
            Some((winner, _)) => self.preempt(winner, &zio, flush),
            None => self.delay(&zio, &mut charge),
        }
        self.tickets[at].charge = Some(charge);
    }

    /// Counts a preemption for each rule that the deciding fault kept from matching.
    fn preempt(&mut self, winner: RuleId, zio: &Zio, flush: bool) {
        for at in 0..self.rules.len() {
            let rule = &self.rules[at];
            let comes_after = rule.fault().is_none() || rule.state.id > winner;
            if comes_after && self.matches(rule, zio, flush) {
                let issued = self.issued;
                self.rules[at].count(issued, |state| state.preempted += 1);
            }
        }
    }

    fn delay(&mut self, zio: &Zio, charge: &mut Charge) {
        let delays = (0..self.rules.len()).filter(|r| self.rules[*r].fault().is_none());
        let mut candidates: Vec<usize> = Vec::new();
        for rule in delays.collect::<Vec<_>>() {
            if !self.triggers(rule, zio, charge.flush) {
                continue;
            }
            let of_rule = &mut self.rules[rule];
            let (spec, id) = (&of_rule.spec, of_rule.state.id);
            // The flush after a FUA write carries no bytes.
            let rate = spec.bandwidth.filter(|_| !charge.flush);
            let rate = rate.map(|rate| (rate, id, spec.mode));
            let rates = charge.rate.into_iter().chain(rate);
            charge.rate = rates.min_by_key(|(rate, _, _)| *rate);
            if spec.effect == Effect::Pass {
                of_rule.count(charge.number, |state| state.chosen += 1);
                charge.takers.push(id);
            } else {
                candidates.push(rule);
            }
        }
        let mut groups: Vec<GroupId> = candidates.iter().map(|r| self.rules[*r].group).collect();
        groups.sort();
        groups.dedup();
        for group in groups {
            let members = candidates.iter().copied();
            let members = members.filter(|rule| self.rules[*rule].group == group);
            self.choose(&members.collect::<Vec<_>>(), charge);
        }
    }

    /// Books the lane of one group that would finish soonest; of equal lanes, the older rule's.
    fn choose(&mut self, candidates: &[usize], charge: &mut Charge) {
        let finish = |rule: &usize| {
            let rule = &self.rules[*rule];
            let free = self.soonest_lane(rule).map_or(charge.at, |(free, _)| free);
            free.max(charge.at) + rule.delay().0
        };
        let winner = *candidates
            .iter()
            .min_by_key(|rule| (finish(rule), self.rules[**rule].state.id))
            .unwrap();
        for loser in candidates.iter().filter(|rule| **rule != winner) {
            self.rules[*loser].count(charge.number, |state| state.beaten += 1);
        }
        let soonest = self.soonest_lane(&self.rules[winner]);
        let rule = &mut self.rules[winner];
        rule.count(charge.number, |state| state.chosen += 1);
        charge.takers.push(rule.state.id);
        self.bookings.push(Booking {
            number: charge.number,
            rule: rule.state.id,
            lane: soonest.map(|(_, lane)| lane),
            mode: rule.spec.mode,
            issue: charge.at,
            service: rule.sample(),
            start: soonest.map_or(charge.at, |(free, _)| free.max(charge.at)),
        });
    }

    /// The lane that is free first, and the moment; the first of equal lanes.
    fn soonest_lane(&self, rule: &Rule) -> Option<(Instant, u32)> {
        let lanes = rule.delay().1?;
        (0..lanes)
            .map(|lane| (self.lane_free(rule.state.id, lane), lane))
            .min()
    }

    fn lane_free(&self, rule: RuleId, lane: u32) -> Instant {
        let bookings = self.bookings.iter();
        let bookings = bookings.filter(|b| b.rule == rule && b.lane == Some(lane));
        bookings.map(Booking::end).max().unwrap_or(Instant::ZERO)
    }

    /// Whether a rule takes a zio. Counts the reason if it does not.
    fn triggers(&mut self, rule: usize, zio: &Zio, flush: bool) -> bool {
        if !self.matches(&self.rules[rule], zio, flush) {
            return false;
        }
        let issued = self.issued;
        let rule = &mut self.rules[rule];
        rule.count(issued, |state| state.matched += 1);
        rule.counted += 1;
        let counted = match rule.spec.limit {
            Limit::Always => true,
            Limit::First(n) => rule.counted <= n,
            Limit::Every(n) => rule.counted.is_multiple_of(n),
        };
        if !counted {
            rule.count(issued, |state| state.not_counted += 1);
            return false;
        }
        let chance = rule.spec.chance;
        let drawn = chance.is_none_or(|chance| rule.random.draw(chance));
        if !drawn {
            rule.count(issued, |state| state.not_drawn += 1);
        }
        drawn
    }

    fn matches(&self, rule: &Rule, zio: &Zio, flush: bool) -> bool {
        let from = rule.armed + rule.spec.after;
        let to = rule.spec.lasts.map_or(Instant::NEVER, |lasts| from + lasts);
        let ops = match (flush, zio.op, zio.fua) {
            (true, _, _) => OpSet::of(Op::Flush),
            (false, op, true) => OpSet::of(op).union(OpSet::FUA),
            (false, op, false) => OpSet::of(op),
        };
        let length = if flush { 0 } else { u128::from(zio.length) };
        let end_of_zio = u128::from(zio.offset) + length;
        let touched = rule.spec.range.is_none_or(|(start, end)| {
            length > 0 && zio.offset < end && u128::from(start) < end_of_zio
        });
        let client = rule.spec.client.as_deref().is_none_or(|glob| {
            let known = self.names.iter().find(|(id, _)| *id == zio.client);
            let name = match known {
                Some((_, name)) => Some(name.as_str()),
                None => (zio.client == ClientId::OTHER).then_some("other"),
            };
            name.is_some_and(|name| glob_matches(glob, name))
        });
        from <= self.now && self.now < to && rule.spec.ops.meets(ops) && touched && client
    }

    fn owes_flush(&self, ticket: &Ticket, outcome: Outcome) -> bool {
        let Some(charge) = &ticket.charge else {
            return false;
        };
        let durable = ticket.zio.fua;
        let flush = OpSet::of(Op::Flush);
        durable
            && !charge.flush
            && outcome.is_ok()
            && self.rules.iter().any(|rule| rule.spec.ops.meets(flush))
    }
}

/// The events that end or change a zio's charge.
impl Naive {
    fn done(&mut self, zio: ZioId, outcome: Outcome, actions: &mut Vec<Action>) {
        let at = self.position(zio);
        if self.tickets[at].aborted {
            self.tickets.remove(at);
            actions.push(Action::Drop(zio));
            return;
        }
        self.tickets[at].store = Store::Done(self.now, outcome);
        self.advance(actions);
        if let Some(errno) = self.closing {
            self.fail_held(errno, actions);
        }
    }

    fn replied(&mut self, zio: ZioId) {
        let at = self.position(zio);
        self.account(at);
        self.tickets.remove(at);
    }

    fn abort(&mut self, zios: &[ZioId], actions: &mut Vec<Action>) {
        for zio in zios {
            self.count_aborted(self.position(*zio));
        }
        for zio in zios {
            let at = self.position(*zio);
            self.tickets[at].aborted = true;
            if let Some(charge) = self.tickets[at].charge.take() {
                self.give_back(charge.number);
            }
            if self.tickets[at].store != Store::Working {
                self.tickets.remove(at);
                actions.push(Action::Drop(*zio));
            }
        }
    }

    fn count_aborted(&mut self, at: usize) {
        for at_rule in 0..self.rules.len() {
            let rule = self.rules[at_rule].state.id;
            let Some(decides) = self.decides(&self.tickets[at], rule) else {
                continue;
            };
            let charge = self.tickets[at].charge.as_ref();
            let number = charge.map_or(0, |charge| charge.number);
            self.rules[at_rule].count(number, |state| {
                state.aborted += u64::from(decides);
                state.beaten += u64::from(!decides);
            });
        }
    }

    /// Removes a zio's bookings that have not begun, and moves up those behind them on their lanes.
    fn give_back(&mut self, number: u64) {
        let now = self.now;
        self.bookings
            .retain(|booking| booking.number != number || booking.start <= now);
        for at in 0..self.bookings.len() {
            let booking = &self.bookings[at];
            if booking.lane.is_none() || booking.start <= now {
                continue;
            }
            let (rule, lane) = (booking.rule, booking.lane);
            let before = self.bookings[..at].iter();
            let before = before.filter(|b| b.rule == rule && b.lane == lane);
            let free = before.map(Booking::end).max().unwrap_or(Instant::ZERO);
            self.bookings[at].start = free.max(self.bookings[at].issue).max(now);
        }
        self.transfers
            .retain(|transfer| transfer.number != number || transfer.start <= now);
        self.move_transfers_up();
    }

    fn move_transfers_up(&mut self) {
        for at in 0..self.transfers.len() {
            let transfer = &self.transfers[at];
            if transfer.queued && transfer.start > self.now {
                let free = server_free(&self.transfers[..at]);
                self.transfers[at].start = free.max(transfer.reached).max(self.now);
            }
        }
    }

    /// Keeps no transfer waiting for the transfers of a removed rule, not even for one in service.
    fn leave_server(&mut self, gone: impl Fn(RuleId) -> bool) {
        for transfer in &mut self.transfers {
            transfer.queued &= !gone(transfer.rule);
        }
        self.move_transfers_up();
    }

    fn clear(&mut self, target: Target, release: bool) -> Result<Answer, CommandError> {
        let all = self.rules.iter().map(|rule| rule.state.id);
        let cleared: Vec<RuleId> = match target {
            Target::Rule(id) if !all.clone().any(|other| other == id) => {
                return Err(CommandError::UnknownRule(id));
            }
            Target::Rule(id) => vec![id],
            Target::Disk(disk) if disk != DISK => return Err(CommandError::UnknownDisk(disk)),
            Target::Disk(_) | Target::All => all.collect(),
        };
        let gone = |id: RuleId| cleared.contains(&id);
        self.rules.retain(|rule| !gone(rule.state.id));
        if release {
            // For a whole disk, also the zios that earlier cleared rules still hold.
            let whole = !matches!(target, Target::Rule(_));
            let gone = |id: RuleId| whole || gone(id);
            for ticket in self.tickets.iter_mut().filter(|t| t.is_waiting()) {
                if let Some(charge) = &mut ticket.charge {
                    charge.forget(&gone, self.now);
                    let held = |booking: &Booking| booking.number == charge.number;
                    self.bookings.retain(|b| !held(b) || !gone(b.rule));
                    let passes = |t: &Transfer| t.number == charge.number;
                    self.transfers.retain(|t| !passes(t) || !gone(t.rule));
                }
            }
        }
        for booking in &mut self.bookings {
            if gone(booking.rule) {
                booking.lane = None;
            }
        }
        self.leave_server(gone);
        Ok(Answer::Cleared(cleared))
    }

    /// Counts a zio that ends without an error, for each rule that took it.
    fn account(&mut self, at: usize) {
        let Some(charge) = &self.tickets[at].charge else {
            return;
        };
        let store_done = self.tickets[at].store.done_at();
        for taker in charge.takers.clone() {
            let charge = self.tickets[at].charge.as_ref().unwrap();
            let fate = self.fate(
                charge,
                taker,
                store_done.unwrap_or(charge.at).max(charge.at),
            );
            let number = charge.number;
            let Some(rule) = self.rules.iter_mut().find(|r| r.state.id == taker) else {
                continue;
            };
            rule.count(number, |state| match fate {
                Fate::Held => state.held += 1,
                Fate::Overrun => state.overrun += 1,
                Fate::Beaten => state.beaten += 1,
                Fate::Failed => state.failed += 1,
            });
        }
    }

    /// The final effect on a zio of one of the rules that took it.
    fn fate(&self, charge: &Charge, rule: RuleId, store_done: Instant) -> Fate {
        match charge.fault {
            Some((_, Fault::Fail(..))) => return Fate::Failed,
            Some((_, Fault::Hang(_))) => return Fate::Held,
            None => {}
        }
        if self.winners(charge, Mode::Add).any(|b| b.rule == rule) {
            return Fate::Held;
        }
        let floors = || self.winners(charge, Mode::Floor);
        let latest = floors().map(|b| (b.end(), std::cmp::Reverse(b.rule))).max();
        let is_latest = latest.is_some_and(|(_, latest)| latest.0 == rule);
        let only_passes = floors().all(|b| b.rule != rule);
        let is_slowest = match charge.rate {
            Some((_, slowest, _)) => slowest == rule,
            None => only_passes,
        };
        let held_after = self.target(charge).is_none_or(|target| target > store_done);
        if !is_latest && !is_slowest {
            Fate::Beaten
        } else if held_after || self.holds_before_only(charge) {
            Fate::Held
        } else {
            Fate::Overrun
        }
    }
}

/// Commands, and the state that a caller can read.
impl Naive {
    fn command(&mut self, id: CommandId, command: Command, actions: &mut Vec<Action>) {
        let result = match command {
            Command::Inject { disk, group, rules } => self.inject(disk, group, rules),
            Command::Clear { target, release } => self.clear(target, release),
            Command::Suspend { lasts, now, .. } => {
                let until = lasts.map(|lasts| self.now + lasts);
                self.suspension = Some(Suspension { until });
                let in_flight = self.in_flight();
                if !now && in_flight > 0 {
                    self.unanswered.push(id);
                    return;
                }
                Ok(Answer::Suspended { in_flight })
            }
            Command::Resume(_) => {
                let waiting = self.resume(actions);
                Ok(Answer::Resumed { waiting })
            }
            Command::Update(rule, spec) => self.update(rule, spec),
            Command::Tune { pool, .. } | Command::Crash(pool) | Command::Repair(pool) => {
                Err(CommandError::UnknownPool(pool))
            }
            Command::Drain => Ok(Answer::Done),
            Command::FailHeld(errno) => {
                self.closing = Some(errno);
                self.fail_held(errno, actions);
                Ok(Answer::Done)
            }
        };
        actions.push(Action::Answer(id, result));
    }

    fn inject(
        &mut self,
        _disk: DiskId,
        group: GroupId,
        rules: Vec<(RuleId, RuleSpec)>,
    ) -> Result<Answer, CommandError> {
        for (id, spec) in rules {
            let seed = self.seed ^ u64::from(id.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let rule = Rule::new(id, group, spec, self.now, Random::new(seed));
            self.rules.push(rule);
        }
        Ok(Answer::Done)
    }

    /// Lanes that remain keep their bookings. Zios on removed lanes keep their targets. The same
    /// holds for the bandwidth.
    fn update(&mut self, id: RuleId, spec: RuleSpec) -> Result<Answer, CommandError> {
        let rule = self.rules.iter_mut().find(|rule| rule.state.id == id);
        let rule = rule.ok_or(CommandError::UnknownRule(id))?;
        rule.update(spec, self.now, self.issued);
        let passes = rule.spec.bandwidth.is_some();
        let lanes = rule.delay().1.unwrap_or(0);
        for booking in self.bookings.iter_mut().filter(|b| b.rule == id) {
            booking.lane = booking.lane.filter(|lane| *lane < lanes);
        }
        self.leave_server(|gone| gone == id && !passes);
        Ok(Answer::Done)
    }

    fn fail_held(&mut self, errno: Errno, actions: &mut Vec<Action>) {
        for at in 0..self.tickets.len() {
            let store = self.tickets[at].store;
            if !matches!(store, Store::Working | Store::Replying(_)) {
                self.reply(at, Err(errno), actions);
            }
        }
    }

    fn join(&mut self, client: ClientId, name: &str) {
        self.names.retain(|(id, _)| *id != client);
        self.names.push((client, name.to_owned()));
    }

    /// The zios that are issued, but neither completed nor dropped.
    fn in_flight(&self) -> u32 {
        let issued = self.tickets.iter().filter(|ticket| {
            ticket.store == Store::Working || (ticket.charge.is_some() && !ticket.is_replied())
        });
        issued.count() as u32
    }

    fn position(&self, zio: ZioId) -> usize {
        let found = self.tickets.iter().position(|ticket| ticket.zio.id == zio);
        found.expect("a zio that is in use")
    }

    /// How many zios with a number above `after` have not ended and are decided by a rule now.
    fn decided_now(&self, rule: RuleId, after: u64) -> u64 {
        let is_after = |ticket: &&Ticket| {
            let charge = ticket.charge.as_ref();
            charge.is_some_and(|charge| charge.number > after)
        };
        let tickets = self.tickets.iter().filter(is_after);
        let decided = tickets.filter(|ticket| self.decides(ticket, rule) == Some(true));
        decided.count() as u64
    }

    /// Whether a rule decides a zio at present; `None` if it has not taken the zio.
    fn decides(&self, ticket: &Ticket, rule: RuleId) -> Option<bool> {
        let charge = ticket.charge.as_ref()?;
        let taken = charge.takers.contains(&rule);
        taken.then(|| !matches!(self.fate(charge, rule, charge.at), Fate::Beaten))
    }

    fn backlog(&self, rule: &Rule, now: Instant) -> Duration {
        let soonest = self.soonest_lane(rule);
        let lane = soonest.map_or(Duration::ZERO, |(free, _)| free.since(now));
        let passed = server_free(&self.transfers).since(now);
        let passed = rule.spec.bandwidth.map_or(Duration::ZERO, |_| passed);
        lane.max(passed)
    }

    fn view(&self, ticket: &Ticket) -> Waiting {
        let charge = ticket.charge.as_ref();
        let hung = charge.is_some_and(|charge| match charge.fault {
            Some((_, fault)) => matches!(fault, Fault::Hang(_)),
            None => self.target(charge).unwrap_or(self.lane_target(charge)) == Instant::NEVER,
        });
        let wait = match ticket.store {
            Store::Working => Wait::Store,
            Store::Replying(_) => Wait::Reply,
            _ if charge.is_none() => Wait::Suspended,
            _ if hung => Wait::Hung,
            Store::NotAsked => Wait::HeldBefore,
            Store::Done(..) => Wait::Held,
        };
        Waiting {
            zio: ticket.zio.id,
            wait,
            rule: charge.and_then(|charge| self.holder(charge)),
            target: charge.and_then(|charge| self.target(charge)),
        }
    }

    /// The rule that decided the error; without one, the rule of the `floor` lane that ends last; without
    /// such a lane, the oldest rule that has taken the zio.
    fn holder(&self, charge: &Charge) -> Option<RuleId> {
        if let Some((rule, _)) = charge.fault {
            return Some(rule);
        }
        let floors = self.winners(charge, Mode::Floor);
        let latest = floors.max_by_key(|b| (b.end(), std::cmp::Reverse(b.rule)));
        let oldest = charge.takers.iter().min().copied();
        latest.map(|booking| booking.rule).or(oldest)
    }
}

impl Store {
    fn done_at(self) -> Option<Instant> {
        match self {
            Store::Done(at, _) => Some(at),
            Store::Replying(at) => at,
            Store::NotAsked | Store::Working => None,
        }
    }
}

impl Booking {
    fn end(&self) -> Instant {
        self.start + self.service
    }
}

impl Transfer {
    fn end(&self) -> Instant {
        self.start + self.service
    }
}

/// When the server finishes its queue.
fn server_free(transfers: &[Transfer]) -> Instant {
    let queued = transfers.iter().filter(|transfer| transfer.queued);
    queued.map(Transfer::end).max().unwrap_or(Instant::ZERO)
}

impl Charge {
    /// Ends all holds of rules that are cleared with release.
    fn forget(&mut self, gone: &impl Fn(RuleId) -> bool, now: Instant) {
        self.released = now;
        let hangs = |fault: &(RuleId, Fault)| matches!(fault.1, Fault::Hang(_));
        if self.fault.as_ref().is_some_and(|f| hangs(f) && gone(f.0)) {
            self.fault = None;
        }
        self.rate = self.rate.filter(|(_, rule, _)| !gone(*rule));
        self.takers.retain(|rule| !gone(*rule));
    }
}

impl Ticket {
    fn is_waiting(&self) -> bool {
        !self.aborted && !self.is_replied()
    }

    fn is_replied(&self) -> bool {
        matches!(self.store, Store::Replying(_))
    }
}

/// `*` matches any run of bytes, `?` one byte.
fn glob_matches(glob: &str, text: &str) -> bool {
    let Some(first) = glob.chars().next() else {
        return text.is_empty();
    };
    let (rest, shorter) = (&glob[1..], text.get(1..));
    match first {
        '*' => glob_matches(rest, text) || shorter.is_some_and(|t| glob_matches(glob, t)),
        '?' => shorter.is_some_and(|t| glob_matches(rest, t)),
        _ => text.starts_with(first) && shorter.is_some_and(|t| glob_matches(rest, t)),
    }
}
