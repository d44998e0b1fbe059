//! One disk (ZFS: leaf vdev): its rules, its suspension, and the path of a zio through them.
//!
//! ```text
//! submit ─ suspended? ─ charge ─ hold (add) ─ store ─ hold (floor) ─ reply
//! ```
//!
//! Modelled on OpenZFS's `zio_inject.c` and `zio.c: zio_delay_interrupt`. Three things differ. The target
//! is exact, not rounded to scheduler ticks. A hold may come before the store's work, as in dm-delay. And
//! zios are dropped when their connection is gone.

use alloc::vec::Vec;

use crate::client::{ClientId, Clients};
use crate::command::{Action, Answer, CommandError, CommandId};
use crate::deadlines::Deadlines;
use crate::depths::DepthTimes;
use crate::flight::{Flight, Flights, State};
use crate::inject::{Gaps, Injector, Kind, RuleId, RuleSpec};
use crate::lines::{Line, Lines};
use crate::occupancy::Occupancy;
use crate::stats::{DiskStats, InFlight, Wait};
use crate::suspension::Suspension;
use crate::time::{Duration, Instant};
use crate::zio::{DiskId, Errno, Op, OpSet, Outcome, ZioId};

/// The parts of the engine that a disk uses during one step.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) deadlines: &'a mut Deadlines,
    pub(crate) actions: &'a mut Vec<Action>,
}

#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) seed: u64,
    pub(crate) injector: Injector,
    pub(crate) clients: Clients,
    pub(crate) stats: DiskStats,
    suspension: Option<Suspension>,
    /// Zios that wait for the disk to resume, in the order of arrival.
    suspended: Line,
    lines: Lines<()>,
    /// The number of zios that are issued, and neither completed nor dropped.
    active: u32,
    /// The zios that are submitted, and neither replied to nor dropped.
    occupancy: Occupancy,
    /// Set when the daemon ends: from then on the disk holds no zio, and takes no new zio.
    closing: Option<Errno>,
}

impl Disk {
    pub(crate) fn new(seed: u64) -> Disk {
        Disk {
            seed,
            injector: Injector::default(),
            clients: Clients::default(),
            stats: DiskStats::default(),
            suspension: None,
            suspended: Line::EMPTY,
            lines: Lines::default(),
            active: 0,
            occupancy: Occupancy::default(),
            closing: None,
        }
    }

    /// Gives a client a name.
    pub(crate) fn join(&mut self, client: ClientId, name: &str) {
        self.clients.join(client, name);
        self.injector.find_clients(&self.clients);
    }

    pub(crate) fn submit(&mut self, flight: &mut Flight, ctx: &mut Context<'_>) {
        flight.depth = self.occupancy.enter(ctx.now, &mut self.stats);
        if let Some(errno) = self.closing {
            self.active += 1;
            self.complete(flight, Err(errno), ctx);
        } else if self.suspension.is_some() || !self.suspended.is_empty() {
            // A new zio also waits while the disk issues suspended zios, so that it overtakes none of them.
            self.lines.push_back(&mut self.suspended, flight.zio.id, ());
        } else {
            self.issue(flight, flight.submitted, ctx);
        }
    }

    /// Applies the rules to a zio, as of the moment `since`, then begins its hold or the store's work.
    fn issue(&mut self, flight: &mut Flight, since: Instant, ctx: &mut Context<'_>) {
        self.charge(flight, since, ctx);
        match flight.hold_before {
            Some(until) => {
                flight.state = State::HeldBefore;
                flight.wake(until, ctx.deadlines);
            }
            None => self.start(flight, ctx),
        }
    }

    fn charge(&mut self, flight: &mut Flight, since: Instant, ctx: &mut Context<'_>) {
        self.active += 1;
        flight.order = ctx.deadlines.next_order();
        (flight.issued, flight.charged) = (since, since);
        let ops = flight.zio.ops();
        self.injector.charge(ctx.now, flight, ops);
        self.injector.uncount_beaten(flight);
    }

    /// Asks the store to work on a zio, unless the zio fails without that work. A zio that must book a transfer
    /// wakes at its target, even if the store is not done by then, so that transfers are booked in the order of
    /// the targets.
    #[inline(always)]
    fn start(&mut self, flight: &mut Flight, ctx: &mut Context<'_>) {
        let meant = flight.hold_before.unwrap_or(flight.charged);
        flight.late_before = ctx.now.since(meant);
        if flight.skips_store {
            return self.skip_store(flight, ctx);
        }
        flight.state = State::Store;
        flight.started = ctx.now;
        if flight.owes_transfer() {
            flight.wake(flight.target, ctx.deadlines);
        }
        let id = flight.zio.id;
        ctx.actions.push(match self.injector.damage_of(flight) {
            None => Action::Start(id),
            Some(fault) => {
                self.injector.count_damage(&fault, flight);
                Action::StartDamaged(id, fault)
            }
        });
    }

    /// Completes a zio that fails without the store's work.
    #[cold]
    fn skip_store(&mut self, flight: &mut Flight, ctx: &mut Context<'_>) {
        if flight.hold_before.is_some() {
            flight.started = ctx.now;
        }
        flight.store_done = ctx.now;
        self.complete(flight, flight.outcome, ctx);
    }

    /// Takes the store's result for a zio.
    pub(crate) fn done(&mut self, flight: &mut Flight, outcome: Outcome, ctx: &mut Context<'_>) {
        if flight.state == State::Abandoned {
            self.drop_zio(flight, ctx);
            self.leave(ctx);
            return;
        }
        flight.state = State::Held;
        flight.store_done = ctx.now;
        flight.worked = ctx.now.since(flight.started);
        // If a rule has decided on an error, the zio fails with that error even if the store has succeeded.
        flight.outcome = flight.outcome.and(outcome);
        self.hold(flight, ctx);
    }

    /// After the store's work on a zio, holds the zio until its target, or completes it if the target has
    /// passed.
    fn hold(&mut self, flight: &mut Flight, ctx: &mut Context<'_>) {
        let early = flight.target > ctx.now;
        if early && let Some(errno) = self.closing {
            self.complete(flight, Err(errno), ctx);
        } else if early || flight.owes_transfer() {
            flight.wake(flight.target, ctx.deadlines);
        } else if flight.zio.fua && !flight.flushing {
            self.flush_after_write(flight, ctx);
        } else {
            self.complete(flight, flight.outcome, ctx);
        }
    }

    /// Begins the second half of a write, zero or trim with FUA: a flush. The disk applies its rules to the
    /// flush when the write has ended. The store has already made the write durable, so the flush is only a
    /// hold.
    #[cold]
    fn flush_after_write(&mut self, flight: &mut Flight, ctx: &mut Context<'_>) {
        flight.flushing = true;
        let flush = OpSet::of(Op::Flush);
        if flight.outcome.is_ok() && self.injector.has_rule_for(flush) {
            self.injector.settle(ctx.now, flight, ctx.now);
            flight.charged = flight.target.max(flight.store_done);
            flight.store_done = flight.charged;
            flight.late_before = Duration::ZERO;
            // The rule alone decides the outcome of the flush. The store is not asked.
            self.injector.charge(ctx.now, flight, flush);
            // The flush carries no bytes, and the store has nothing to do after a hold.
            flight.transfer = None;
            (flight.hold_before, flight.before_only) = (None, false);
            self.injector.uncount_beaten(flight);
        }
        self.hold(flight, ctx);
    }

    /// Acts on a zio whose deadline has come.
    pub(crate) fn due(&mut self, flight: &mut Flight, ctx: &mut Context<'_>) {
        // If a zio wakes late at the end of its `add` hold, its target may have passed, too. Even then, the
        // zio books no transfer until it wakes again for its target, so that zios with earlier targets book
        // first.
        let holds_on = flight.state == State::HeldBefore && !flight.before_only;
        if flight.owes_transfer() && flight.target <= ctx.now && !holds_on {
            self.injector.transfer(flight);
            flight.wake_as_scheduled(ctx.now, ctx.deadlines);
            return;
        }
        match flight.state {
            State::HeldBefore => match flight.hold_before.filter(|until| *until > ctx.now) {
                Some(until) => flight.wake(until, ctx.deadlines),
                None => self.start(flight, ctx),
            },
            State::Held => self.hold(flight, ctx),
            _ => {}
        }
    }

    fn complete(&mut self, flight: &mut Flight, outcome: Outcome, ctx: &mut Context<'_>) {
        ctx.deadlines.clear(flight.zio.id);
        flight.state = State::Reply;
        flight.outcome = outcome;
        ctx.actions.push(Action::Complete(flight.zio.id, outcome));
        self.leave(ctx);
    }

    /// Counts a zio when its reply has left, because all its times are then known.
    pub(crate) fn replied(&mut self, flight: &mut Flight, offered: Instant, ctx: &mut Context<'_>) {
        self.occupancy.leave(ctx.now, &mut self.stats);
        self.injector.settle(ctx.now, flight, offered);
        self.stats.suspended += flight.issued.since(flight.submitted);
        let stats = self.stats.op_mut(flight.zio.op);
        stats.completed += 1;
        match flight.outcome {
            Ok(()) => stats.bytes += u64::from(flight.zio.length),
            Err(_) => stats.failed += 1,
        }
        let total = ctx.now.since(flight.zio.arrived);
        stats.record_reply(total, offered.since(flight.issued));
        let due = flight.due().min(offered);
        if flight.was_held(due) {
            stats.record_lateness(offered.since(due));
        }
        flight.state = State::Ended;
    }

    /// Aborts these zios of this disk, because their connection is gone.
    pub(crate) fn abort(&mut self, ids: &[ZioId], flights: &mut Flights, ctx: &mut Context<'_>) {
        let mut gone: Vec<(ZioId, State)> = Vec::with_capacity(ids.len());
        let mut gaps = Gaps::default();
        for id in ids {
            if let Some(flight) = flights.get_mut(*id) {
                gone.push((*id, flight.state));
                flight.state = State::Abandoned;
                self.injector.abandon(ctx.now, flight, &mut gaps);
            }
        }
        for (id, state) in gone {
            let Some(flight) = flights.get_mut(id) else {
                continue;
            };
            match state {
                State::Store | State::Abandoned | State::Ended => {}
                State::Suspended => {
                    self.lines.take(&mut [&mut self.suspended], id);
                    self.drop_zio(flight, ctx);
                }
                State::Reply => self.drop_zio(flight, ctx),
                State::HeldBefore | State::Held => {
                    self.drop_zio(flight, ctx);
                    self.leave(ctx);
                }
            }
            flights.remove_ended(id);
        }
        let moved = self.injector.close_gaps(ctx.now, gaps);
        self.reschedule(&moved, flights, ctx);
    }

    fn drop_zio(&mut self, flight: &mut Flight, ctx: &mut Context<'_>) {
        self.occupancy.leave(ctx.now, &mut self.stats);
        self.stats.aborted += 1;
        ctx.deadlines.clear(flight.zio.id);
        flight.state = State::Ended;
        ctx.actions.push(Action::Drop(flight.zio.id));
    }

    /// Ends those holds on a zio that are `gone` by their rule and kind. The caller may remove the rules before or
    /// after this call. `order` is the zio's order of issue. If the zio with this order has ended, this
    /// function does nothing.
    pub(crate) fn release(
        &mut self,
        gone: impl Fn(RuleId, Kind) -> bool,
        id: ZioId,
        order: u64,
        flights: &mut Flights,
        ctx: &mut Context<'_>,
    ) {
        if let Some(flight) = flights.get_mut(id)
            && flight.order == order
            && self.injector.release(ctx.now, gone, flight)
        {
            flight.wake_as_scheduled(ctx.now, ctx.deadlines);
        }
    }

    pub(crate) fn remove(
        &mut self,
        rules: &[RuleId],
        flights: &mut Flights,
        ctx: &mut Context<'_>,
    ) {
        let moved = self.injector.remove(rules, ctx.now);
        self.reschedule(&moved, flights, ctx);
    }

    pub(crate) fn update(
        &mut self,
        disk: DiskId,
        rule: RuleId,
        spec: RuleSpec,
        flights: &mut Flights,
        ctx: &mut Context<'_>,
    ) {
        let held = flights.of_disk(disk).map(|flight| flight.bookings);
        let moved = self
            .injector
            .update(rule, spec, ctx.now, &self.clients, held);
        self.reschedule(&moved, flights, ctx);
    }

    /// Sets the deadlines of zios whose bookings have changed.
    fn reschedule(&mut self, ids: &[ZioId], flights: &mut Flights, ctx: &mut Context<'_>) {
        for id in ids {
            if let Some(flight) = flights.get_mut(*id) {
                self.injector.reschedule(flight);
                flight.wake_as_scheduled(ctx.now, ctx.deadlines);
            }
        }
    }

    /// Counts one zio fewer in flight. After the last zio, answers the commands that wait until none is in
    /// flight.
    #[inline]
    fn leave(&mut self, ctx: &mut Context<'_>) {
        self.active -= 1;
        if self.active == 0
            && let Some(suspension) = &mut self.suspension
        {
            suspension.answer_waiters(ctx.actions);
        }
    }

    /// Makes new zios wait, and sets the moment at which the disk resumes automatically.
    pub(crate) fn suspend(
        &mut self,
        command: CommandId,
        lasts: Option<Duration>,
        at_once: bool,
        ctx: &mut Context<'_>,
    ) {
        let since = || Suspension::since(ctx.now);
        let suspension = self.suspension.get_or_insert_with(since);
        suspension.lasts = lasts.map(|lasts| ctx.now.since(suspension.since) + lasts);
        if self.active > 0 && !at_once {
            suspension.waiters.push(command);
            return;
        }
        let in_flight = self.active;
        ctx.actions
            .push(Action::Answer(command, Ok(Answer::Suspended { in_flight })));
    }

    /// Ends the suspension, and returns how many zios have waited. The caller then
    /// [issues](Disk::issue_suspended) these zios.
    pub(crate) fn resume(&mut self, ctx: &mut Context<'_>) -> u32 {
        let waiters = self.suspension.take().map(|suspension| suspension.waiters);
        for waiter in waiters.into_iter().flatten() {
            let answer = Err(CommandError::Resumed);
            ctx.actions.push(Action::Answer(waiter, answer));
        }
        self.lines.count()
    }

    /// Issues at most `most` of the suspended zios, and returns whether there are no more to issue. If the
    /// disk has been suspended again, the remaining zios continue to wait. Every zio gets a deadline, even a
    /// zio that no rule holds: its deadline is now. So all zios, including held ones, keep the order of
    /// issue.
    pub(crate) fn issue_suspended(
        &mut self,
        most: usize,
        flights: &mut Flights,
        ctx: &mut Context<'_>,
    ) -> bool {
        for _ in 0..most {
            if self.suspension.is_some() {
                return true;
            }
            let Some((id, ())) = self.lines.pop_front(&mut self.suspended) else {
                return true;
            };
            if let Some(flight) = flights.get_mut(id) {
                self.charge(flight, ctx.now, ctx);
                flight.state = State::HeldBefore;
                flight.wake_as_scheduled(ctx.now, ctx.deadlines);
            }
        }
        self.suspended.is_empty()
    }

    /// When the disk resumes automatically.
    pub(crate) fn resumes_at(&self) -> Option<Instant> {
        self.suspension.as_ref()?.ends_at()
    }

    pub(crate) fn suspended(&self) -> Option<(Instant, Option<Duration>)> {
        let suspension = self.suspension.as_ref()?;
        Some((suspension.since, suspension.lasts))
    }

    /// From now on, fails all zios that would wait or be held. The caller [fails](Disk::fail) the zios that
    /// already wait or are held.
    pub(crate) fn close(&mut self, errno: Errno) {
        self.closing = Some(errno);
        (self.suspended, self.lines) = (Line::EMPTY, Lines::default());
    }

    /// Fails the zio with this order of issue, if it still waits or is held.
    pub(crate) fn fail(
        &mut self,
        errno: Errno,
        id: ZioId,
        order: u64,
        flights: &mut Flights,
        ctx: &mut Context<'_>,
    ) {
        let Some(flight) = flights.get_mut(id).filter(|flight| flight.order == order) else {
            return;
        };
        match flight.state {
            State::Suspended => {
                self.active += 1;
                flight.issued = ctx.now;
            }
            State::HeldBefore | State::Held => {}
            _ => return,
        }
        flight.cut_short = true;
        self.complete(flight, Err(errno), ctx);
    }

    /// How many zios are submitted, and neither replied to nor dropped.
    pub(crate) fn outstanding(&self) -> u32 {
        self.occupancy.outstanding()
    }

    /// The counters as of `now`.
    pub(crate) fn stats_at(&self, now: Instant) -> DiskStats {
        self.occupancy.stats_at(now, &self.stats)
    }

    /// The time spent at each depth as of `now`.
    pub(crate) fn depths_at(&self, now: Instant) -> DepthTimes {
        self.occupancy.depths_at(now, &self.stats)
    }

    pub(crate) fn view(&self, flight: &Flight) -> InFlight {
        let holding = matches!(flight.state, State::HeldBefore | State::Held);
        InFlight {
            zio: flight.zio.id,
            op: flight.zio.op,
            call: flight.zio.call,
            client: flight.zio.client,
            offset: flight.zio.offset,
            length: flight.zio.length,
            arrived: flight.zio.arrived,
            wait: match flight.state {
                State::Suspended => Wait::Suspended,
                State::HeldBefore | State::Held if flight.target == Instant::NEVER => Wait::Hung,
                State::HeldBefore => Wait::HeldBefore,
                State::Held => Wait::Held,
                State::Store | State::Abandoned => Wait::Store,
                State::Reply | State::Ended => Wait::Reply,
            },
            since: match flight.state {
                State::Suspended => flight.submitted,
                State::HeldBefore => flight.charged,
                State::Store | State::Abandoned => flight.started,
                State::Held => flight.store_done,
                State::Reply | State::Ended => flight.store_done.max(flight.target),
            },
            rule: holding.then(|| self.injector.holder(flight)).flatten(),
            target: (flight.state != State::Suspended).then_some(flight.target),
        }
    }
}
