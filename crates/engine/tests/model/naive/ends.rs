//! The events that end or change a zio's charge.

use super::*;

impl Naive {
    pub(super) fn done(&mut self, zio: ZioId, outcome: Outcome, actions: &mut Vec<Action>) {
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

    pub(super) fn replied(&mut self, zio: ZioId) {
        let at = self.position(zio);
        self.account(at);
        self.tickets.remove(at);
    }

    pub(super) fn abort(&mut self, zios: &[ZioId], actions: &mut Vec<Action>) {
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

    pub(super) fn count_aborted(&mut self, at: usize) {
        for at_rule in 0..self.rules.len() {
            let rule = self.rules[at_rule].state.id;
            let ticket = &self.tickets[at];
            let decides = self.decides(ticket, rule);
            let Some(decides) = decides.or(ticket.is_damaged_by(rule).then_some(true)) else {
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

    /// Removes a zio's bookings that have not begun, and moves up the bookings behind them on their
    /// lanes.
    pub(super) fn give_back(&mut self, number: u64) {
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

    pub(super) fn move_transfers_up(&mut self) {
        for at in 0..self.transfers.len() {
            let transfer = &self.transfers[at];
            if transfer.queued && transfer.start > self.now {
                let free = server_free(&self.transfers[..at]);
                self.transfers[at].start = free.max(transfer.reached).max(self.now);
            }
        }
    }

    /// Takes the transfers of removed rules out of the server's queue, so that no other transfer waits for
    /// them, even if one of them is in service.
    pub(super) fn leave_server(&mut self, gone: impl Fn(RuleId) -> bool) {
        for transfer in &mut self.transfers {
            transfer.queued &= !gone(transfer.rule);
        }
        self.move_transfers_up();
    }

    pub(super) fn clear(
        &mut self,
        target: Target,
        release: Release,
    ) -> Result<Answer, CommandError> {
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
        let left = self.left(&cleared, release);
        if release == Release::Hung {
            for ticket in self.tickets.iter_mut().filter(|t| t.is_waiting()) {
                let charge = ticket.charge.as_mut();
                if let Some(charge) = charge.filter(|charge| charge.hangs_by(&gone)) {
                    charge.forget(&gone, self.now);
                }
            }
        }
        if release == Release::All {
            // For a whole disk, also release the zios that rules cleared earlier still hold.
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
        Ok(Answer::Cleared(cleared, left))
    }

    /// The zios that `cleared` rules hold, and that `release` leaves held.
    fn left(&self, cleared: &[RuleId], release: Release) -> Left {
        let mut left = Left::default();
        for ticket in self.tickets.iter().filter(|ticket| ticket.is_waiting()) {
            let Some(charge) = &ticket.charge else {
                continue;
            };
            let target = self.target(charge).unwrap_or(self.lane_target(charge));
            let decides = |rule: &RuleId| self.decides(ticket, *rule) == Some(true);
            let by_these = cleared.iter().any(decides);
            let released = match release {
                Release::Nothing => false,
                Release::Hung => charge.hangs_by(&|_| true),
                Release::All => true,
            };
            if by_these && target > self.now && !released {
                left.held += 1;
                left.hung += u64::from(target == Instant::NEVER);
            }
        }
        left
    }

    /// Counts a zio whose charge has ended, for each rule that took it.
    pub(super) fn account(&mut self, at: usize) {
        let Some(charge) = &self.tickets[at].charge else {
            return;
        };
        let store_done = self.tickets[at].store.done_at();
        if let Some(fault) = charge.damage.filter(|_| !charge.damage_counted) {
            let number = charge.number;
            let rule = self.rules.iter_mut().find(|r| r.state.id == fault.rule);
            rule.into_iter()
                .for_each(|rule| rule.count(number, |state| state.spared += 1));
        }
        let Some(charge) = &self.tickets[at].charge else {
            return;
        };
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

    /// The final effect that `rule` has on a zio that it has taken.
    pub(super) fn fate(&self, charge: &Charge, rule: RuleId, store_done: Instant) -> Fate {
        match charge.fault {
            Some((_, Fault::Fail(..))) => return Fate::Failed,
            Some((_, Fault::Hang(..))) => return Fate::Held,
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
