//! The naive model: the semantics of injection in their plainest and slowest form.
//!
//! The model keeps lists and scans them. It computes each answer about a zio's wait anew from the bookings.
//! It removes an item only if the semantics demand it, never to save time.

mod commands;
mod ends;
mod issue;
mod times;

use dashpot_engine::inject::{Count, Damage, DataFault, Effect, GroupId, Mode, RuleId, RuleSpec};
use dashpot_engine::{
    Action, Answer, ClientId, Command, CommandError, CommandId, DiskId, Duration, Errno, Input,
    Instant, Left, Op, OpSet, Outcome, Release, Target, Wait, Zio, ZioId,
};

use crate::machine::{DISK, Machine, RuleState, Waiting};
use crate::naive_rule::{Fault, Rule};

pub(crate) struct Naive {
    seed: u64,
    now: Instant,
    rules: Vec<Rule>,
    /// All bookings of lanes except those that were given back, the oldest first.
    bookings: Vec<Booking>,
    /// The zios that the model still has, in the order of their arrival.
    tickets: Vec<Ticket>,
    issued: u64,
    /// The disk's bandwidth is a server that does one transfer at a time. This list has all transfers that
    /// have reached the server, except those that were given back, the oldest first.
    transfers: Vec<Transfer>,
    suspension: Option<Suspension>,
    /// Suspend commands that wait until no zio is in flight.
    unanswered: Vec<CommandId>,
    names: Vec<(ClientId, String)>,
    /// Set while the daemon shuts down. From then on, the model delays no zio.
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
    /// Whether later transfers wait for this transfer. Later transfers no longer wait once the rule of this
    /// transfer, or the rule's bandwidth, is removed.
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
    /// The zio's number in the order of issue. A FUA write gets a second number for its flush.
    number: u64,
    at: Instant,
    fault: Option<(RuleId, Fault)>,
    damage: Option<DataFault>,
    /// Whether the model has counted the damage.
    damage_counted: bool,
    /// The lowest bandwidth that applies to the zio, and the rule that sets this bandwidth. If several rules
    /// set it, the oldest of them.
    rate: Option<(u64, RuleId, Mode)>,
    /// Whether the zio reached the server of [`Naive::transfers`] before the model asked the store.
    served_before: bool,
    /// When a command last cleared rules and released their zios. The next stage of the zio does not begin
    /// before this moment.
    released: Instant,
    /// The rules that took the zio.
    takers: Vec<RuleId>,
    /// Whether the charge is that of the flush after a FUA write.
    flush: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Store {
    NotAsked,
    Working,
    Done(Instant, Outcome),
    /// The reply is on the way. Has the moment at which the store finished; `None` if the model did not ask
    /// the store.
    Replying(Option<Instant>),
}

/// The final effect of a rule on a zio that the rule has taken.
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
            Input::Submit(zio) => self.submit(zio, now),
            Input::SubmitSinceArrival(zio) => self.submit(zio, zio.arrived),
            Input::SubmitToVolume(_) | Input::Recorded(..) => {
                unreachable!("the model is of a lone disk")
            }
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

    fn spare(&mut self, zio: ZioId) {
        let mut tickets = self.tickets.iter().filter(|it| it.zio.id == zio);
        if let Some(charge) = tickets.next_back().and_then(|it| it.charge.as_ref()) {
            let (number, fault) = (charge.number, charge.damage);
            let rules = self.rules.iter_mut();
            let rule = rules.filter(|rule| fault.is_some_and(|it| it.rule == rule.state.id));
            rule.for_each(|rule| {
                rule.count(number, |state| {
                    state.damaged -= 1;
                    state.spared += 1;
                });
            });
        }
    }

    fn is_suspended(&self) -> bool {
        self.suspension.is_some()
    }
}

/// Carries out what is due as time passes.
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
            let ticket = &mut self.tickets[at];
            let damage = ticket.charge.as_ref().and_then(|charge| charge.damage);
            if let (Some(charge), Some(fault)) = (&mut ticket.charge, damage) {
                charge.damage_counted = true;
                let rules = self.rules.iter_mut();
                let rule = rules.filter(|rule| fault.rule == rule.state.id);
                rule.for_each(|rule| rule.count(charge.number, |state| state.damaged += 1));
            }
            actions.push(match damage {
                Some(fault) => Action::StartDamaged(ticket.zio.id, fault),
                None => Action::Start(ticket.zio.id),
            });
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

    /// The zios that are due by now, the oldest first, each as (moment, number, index in `tickets`).
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
    /// Whether one of the rules in `gone` hangs the zio.
    fn hangs_by(&self, gone: &impl Fn(RuleId) -> bool) -> bool {
        let fault = self.fault.as_ref();
        fault.is_some_and(|(rule, fault)| matches!(fault, Fault::Hang(..)) && gone(*rule))
    }

    /// Ends the holds of the rules in `gone`, because a command has cleared these rules and released their
    /// zios.
    fn forget(&mut self, gone: &impl Fn(RuleId) -> bool, now: Instant) {
        self.released = now;
        if self.hangs_by(gone) {
            self.fault = None;
        }
        self.rate = self.rate.filter(|(_, rule, _)| !gone(*rule));
        self.takers.retain(|rule| !gone(*rule));
    }
}

impl Ticket {
    fn is_damaged_by(&self, rule: RuleId) -> bool {
        let charge = self.charge.as_ref();
        let damage = charge.filter(|charge| !charge.damage_counted);
        let damage = damage.and_then(|charge| charge.damage);
        damage.is_some_and(|fault| fault.rule == rule)
    }

    fn is_waiting(&self) -> bool {
        !self.aborted && !self.is_replied()
    }

    fn is_replied(&self) -> bool {
        matches!(self.store, Store::Replying(_))
    }
}
