//! The rules that apply to a zio when it is issued.

use super::*;

impl Naive {
    pub(super) fn submit(&mut self, zio: Zio, since: Instant) {
        self.tickets.push(Ticket {
            zio,
            aborted: false,
            charge: None,
            store: Store::NotAsked,
        });
        if self.suspension.is_none() {
            self.charge(self.tickets.len() - 1, since, false);
        }
    }

    /// Applies the rules in force now to a zio that is issued at `issue`.
    pub(super) fn charge(&mut self, at: usize, issue: Instant, flush: bool) {
        let zio = self.tickets[at].zio;
        self.issued += 1;
        let mut charge = Charge {
            number: self.issued,
            at: issue,
            fault: None,
            damage: None,
            damage_counted: false,
            rate: None,
            served_before: false,
            released: issue,
            takers: Vec::new(),
            flush,
        };
        let faults = (0..self.rules.len()).filter(|r| self.rules[*r].fault(self.now).is_some());
        for rule in faults.collect::<Vec<_>>() {
            if self.triggers(rule, &zio, flush) {
                let of_rule = &mut self.rules[rule];
                charge.fault = of_rule
                    .fault(charge.at)
                    .map(|fault| (of_rule.state.id, fault));
                if of_rule.spec.effect.delay().is_some() {
                    self.choose(&[rule], &mut charge);
                } else {
                    of_rule.count(charge.number, |state| state.chosen += 1);
                    charge.takers.push(of_rule.state.id);
                }
                break;
            }
        }
        match charge.fault {
            Some((winner, _)) => self.preempt(winner, &zio, flush),
            None => self.delay(&zio, &mut charge),
        }
        self.tickets[at].charge = Some(charge);
    }

    /// Counts a preemption for each rule that would have matched the zio if the fault of the rule `winner`
    /// had not decided the zio first.
    pub(super) fn preempt(&mut self, winner: RuleId, zio: &Zio, flush: bool) {
        for at in 0..self.rules.len() {
            let rule = &self.rules[at];
            let comes_after = rule.fault(self.now).is_none() || rule.state.id > winner;
            if comes_after && self.matches(rule, zio, flush) {
                let issued = self.issued;
                self.rules[at].count(issued, |state| state.preempted += 1);
            }
        }
    }

    pub(super) fn delay(&mut self, zio: &Zio, charge: &mut Charge) {
        let delays = (0..self.rules.len()).filter(|r| self.rules[*r].fault(self.now).is_none());
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
            if let Effect::Damage(damage) = spec.effect {
                let seed = of_rule.random.next_u64();
                let fault = DataFault {
                    rule: id,
                    damage,
                    seed,
                };
                of_rule.count(charge.number, |state| match charge.damage {
                    None => state.chosen += 1,
                    Some(_) => state.beaten += 1,
                });
                charge.damage.get_or_insert(fault);
            } else if spec.effect == Effect::Pass {
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

    /// Of a group's lanes, books the lane that would finish the zio soonest. Of equal lanes, books the lane
    /// of the older rule.
    pub(super) fn choose(&mut self, candidates: &[usize], charge: &mut Charge) {
        let finish = |rule: &usize| {
            let rule = &self.rules[*rule];
            let free = self.soonest_lane(rule).map_or(charge.at, |(free, _)| free);
            free.max(charge.at) + rule.at(rule.delay().0, charge.at)
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
            mode: rule.mode(),
            issue: charge.at,
            service: rule.sample(charge.at),
            start: soonest.map_or(charge.at, |(free, _)| free.max(charge.at)),
        });
    }

    /// The moment at which the first lane becomes free, and this lane; of equal lanes, the one with the
    /// lowest index.
    pub(super) fn soonest_lane(&self, rule: &Rule) -> Option<(Instant, u32)> {
        let lanes = rule.delay().1?;
        (0..lanes)
            .map(|lane| (self.lane_free(rule.state.id, lane), lane))
            .min()
    }

    pub(super) fn lane_free(&self, rule: RuleId, lane: u32) -> Instant {
        let bookings = self.bookings.iter();
        let bookings = bookings.filter(|b| b.rule == rule && b.lane == Some(lane));
        bookings.map(Booking::end).max().unwrap_or(Instant::ZERO)
    }

    /// Whether a rule takes a zio. Counts the reason if the rule does not take the zio.
    pub(super) fn triggers(&mut self, rule: usize, zio: &Zio, flush: bool) -> bool {
        if !self.matches(&self.rules[rule], zio, flush) {
            return false;
        }
        let issued = self.issued;
        let rule = &mut self.rules[rule];
        rule.count(issued, |state| state.matched += 1);
        rule.counted += 1;
        let Count { skip, every, first } = rule.spec.count;
        let all = (1..=rule.counted)
            .skip(skip as usize)
            .skip(every as usize - 1);
        let eligible = all.step_by(every as usize);
        let last = match first {
            Some(first) => eligible.take(first as usize).last(),
            None => eligible.last(),
        };
        if last != Some(rule.counted) {
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

    pub(super) fn matches(&self, rule: &Rule, zio: &Zio, flush: bool) -> bool {
        let from = rule.armed + rule.spec.when.after;
        let to = rule.ends();
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
        let can_be_had = match rule.spec.effect {
            Effect::Damage(Damage::Torn(unit)) => {
                let unit = u64::from(unit);
                // No disk ends later.
                let end = end_of_zio.min(u128::from(u64::MAX)) as u64;
                !flush && zio.length > 0 && zio.offset / unit != (end - 1) / unit
            }
            Effect::Damage(Damage::Lie) => !flush && matches!(zio.op, Op::Flush | Op::Write),
            Effect::Damage(Damage::Short) => !flush && zio.length > 1,
            Effect::Damage(_) => !flush && zio.length > 0,
            _ => true,
        };
        let applies = can_be_had && from <= self.now && self.now < to && !rule.rests(self.now);
        applies && rule.spec.ops.meets(ops) && touched && client
    }

    pub(super) fn owes_flush(&self, ticket: &Ticket, outcome: Outcome) -> bool {
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

/// Whether `text` matches `glob`, in which `*` stands for any run of bytes and `?` for any one byte.
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
