//! The naive model's commands, and the state that a caller can read.

use super::*;

impl Naive {
    pub(super) fn command(&mut self, id: CommandId, command: Command, actions: &mut Vec<Action>) {
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
            Command::Update(rule, spec) => self.update(rule, *spec),
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

    pub(super) fn inject(
        &mut self,
        _disk: DiskId,
        group: GroupId,
        rules: Vec<(RuleId, RuleSpec)>,
    ) -> Result<Answer, CommandError> {
        for (id, spec) in rules {
            let seed = self.seed ^ u64::from(id.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let rule = Rule::new(id, group, spec, self.now, seed);
            self.rules.push(rule);
        }
        Ok(Answer::Done)
    }

    /// Updates a rule. Lanes that remain keep their bookings. Zios on removed lanes keep their targets. If
    /// the rule no longer has a bandwidth, the zios of its transfers keep their targets, and no later
    /// transfer waits for these transfers.
    pub(super) fn update(&mut self, id: RuleId, spec: RuleSpec) -> Result<Answer, CommandError> {
        let rule = self.rules.iter_mut().find(|rule| rule.state.id == id);
        let rule = rule.ok_or(CommandError::UnknownRule(id))?;
        rule.update(spec, self.now, self.issued);
        let passes = rule.spec.bandwidth.is_some();
        let lanes = rule.delay().1.unwrap_or(0);
        for charge in self.tickets.iter_mut().filter_map(|t| t.charge.as_mut()) {
            if let Some((of, Fault::Hang(_, until))) = &mut charge.fault
                && *of == id
            {
                *until = rule.hangs_until(charge.at);
            }
        }
        for booking in self.bookings.iter_mut().filter(|b| b.rule == id) {
            booking.lane = booking.lane.filter(|lane| *lane < lanes);
        }
        self.leave_server(|gone| gone == id && !passes);
        Ok(Answer::Done)
    }

    pub(super) fn fail_held(&mut self, errno: Errno, actions: &mut Vec<Action>) {
        for at in 0..self.tickets.len() {
            let store = self.tickets[at].store;
            if !matches!(store, Store::Working | Store::Replying(_)) {
                self.reply(at, Err(errno), actions);
            }
        }
    }

    pub(super) fn join(&mut self, client: ClientId, name: &str) {
        self.names.retain(|(id, _)| *id != client);
        self.names.push((client, name.to_owned()));
    }

    /// The zios that are issued, but neither completed nor dropped.
    pub(super) fn in_flight(&self) -> u32 {
        let issued = self.tickets.iter().filter(|ticket| {
            ticket.store == Store::Working || (ticket.charge.is_some() && !ticket.is_replied())
        });
        issued.count() as u32
    }

    pub(super) fn position(&self, zio: ZioId) -> usize {
        let found = self.tickets.iter().position(|ticket| ticket.zio.id == zio);
        found.expect("a zio that is in use")
    }

    /// How many zios with a number above `after` have not ended, and are decided by `rule` now.
    pub(super) fn decided_now(&self, rule: RuleId, after: u64) -> u64 {
        let is_after = |ticket: &&Ticket| {
            let charge = ticket.charge.as_ref();
            charge.is_some_and(|charge| charge.number > after)
        };
        let tickets = self.tickets.iter().filter(is_after);
        let decided = tickets.filter(|ticket| {
            self.decides(ticket, rule) == Some(true) || ticket.is_damaged_by(rule)
        });
        decided.count() as u64
    }

    /// Whether a rule decides a zio as things stand; `None` if the rule has not taken the zio.
    pub(super) fn decides(&self, ticket: &Ticket, rule: RuleId) -> Option<bool> {
        let charge = ticket.charge.as_ref()?;
        let taken = charge.takers.contains(&rule);
        taken.then(|| !matches!(self.fate(charge, rule, charge.at), Fate::Beaten))
    }

    pub(super) fn backlog(&self, rule: &Rule, now: Instant) -> Duration {
        let soonest = self.soonest_lane(rule);
        let lane = soonest.map_or(Duration::ZERO, |(free, _)| free.since(now));
        let passed = server_free(&self.transfers).since(now);
        let passed = rule.spec.bandwidth.map_or(Duration::ZERO, |_| passed);
        lane.max(passed)
    }

    pub(super) fn view(&self, ticket: &Ticket) -> Waiting {
        let charge = ticket.charge.as_ref();
        let hung = charge.is_some_and(|charge| {
            self.target(charge).unwrap_or(self.lane_target(charge)) == Instant::NEVER
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

    /// The rule that decided the zio's error; without an error, the rule of the `floor` lane that ends last;
    /// without a `floor` lane, the oldest rule that has taken the zio.
    pub(super) fn holder(&self, charge: &Charge) -> Option<RuleId> {
        if let Some((rule, _)) = charge.fault {
            return Some(rule);
        }
        let floors = self.winners(charge, Mode::Floor);
        let latest = floors.max_by_key(|b| (b.end(), std::cmp::Reverse(b.rule)));
        let oldest = charge.takers.iter().min().copied();
        latest.map(|booking| booking.rule).or(oldest)
    }
}
