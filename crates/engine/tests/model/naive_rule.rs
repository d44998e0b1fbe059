//! A rule of the naive model: its specification and its counters.

use dashpot_engine::inject::{Cycle, Effect, GroupId, Mode, RuleId, RuleSpec};
use dashpot_engine::{Duration, Errno, Instant, Random};

use crate::machine::RuleState;

pub(crate) struct Rule {
    pub(crate) group: GroupId,
    pub(crate) spec: RuleSpec,
    pub(crate) armed: Instant,
    pub(crate) random: Random,
    /// How many zios have matched since the rule was armed, or its count changed.
    pub(crate) counted: u64,
    pub(crate) cycle_from: Instant,
    pub(crate) ramp_from: Instant,
    pub(crate) seed: u64,
    pub(crate) state: RuleState,
    /// The number of the last zio that was issued before the rule was armed or updated.
    pub(crate) updated_after: u64,
    /// The counters for all later zios.
    pub(crate) since_update: RuleState,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    Fail(Errno, bool),
    /// Hangs the zio until this moment.
    Hang(Mode, Instant),
}

impl Rule {
    pub(crate) fn new(
        id: RuleId,
        group: GroupId,
        spec: RuleSpec,
        armed: Instant,
        seed: u64,
    ) -> Rule {
        Rule {
            cycle_from: armed + spec.when.after,
            ramp_from: armed + spec.when.after,
            seed,
            random: Random::new(seed),
            group,
            spec,
            armed,
            counted: 0,
            state: RuleState::new(id),
            updated_after: 0,
            since_update: RuleState::new(id),
        }
    }

    /// Replaces the specification. `issued` is the number of zios that have been issued so far.
    pub(crate) fn update(&mut self, spec: RuleSpec, now: Instant, issued: u64) {
        if spec.count != self.spec.count {
            self.counted = 0;
        }
        let has_begun = self.armed + self.spec.when.after <= now;
        if spec.when.cycle != self.spec.when.cycle || !has_begun {
            self.cycle_from = now + spec.when.after;
        }
        if spec.effect.delay() != self.spec.effect.delay() || !has_begun {
            self.ramp_from = now + spec.when.after;
        }
        self.spec = spec;
        self.armed = now;
        self.updated_after = issued;
        self.since_update = RuleState::new(self.state.id);
    }

    /// Applies `count` to the counters, for the zio with this number.
    pub(crate) fn count(&mut self, number: u64, count: impl Fn(&mut RuleState)) {
        count(&mut self.state);
        if number > self.updated_after {
            count(&mut self.since_update);
        }
    }

    /// When the rule stops applying.
    pub(crate) fn ends(&self) -> Instant {
        let lasts = self.spec.when.lasts.unwrap_or(Duration::MAX);
        self.armed + self.spec.when.after + lasts
    }

    /// When the rule begins to apply in the period at a moment, and when it rests again. Looks at one period after
    /// the other, from the one before.
    fn turn(&self, cycle: Cycle, at: Instant) -> (Instant, Instant) {
        let length = cycle.period.as_nanos();
        let mut number = (at.since(self.cycle_from).as_nanos() / length).saturating_sub(1);
        let begun = |number: u64| self.cycle_from + Duration::from_nanos(number * length);
        // At the end of time, all periods begin at one moment.
        while begun(number + 1) <= at && begun(number) < begun(number + 1) {
            number += 1;
        }
        let mut random = Random::new(self.seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        let begins = match cycle.jitter.as_nanos() {
            0 => begun(number),
            most => begun(number) + Duration::from_nanos(random.below(most + 1)),
        };
        (begins, begins + cycle.on)
    }

    pub(crate) fn rests(&self, at: Instant) -> bool {
        let cycle = self.spec.when.cycle;
        cycle.is_some_and(|cycle| {
            let (begins, ends) = self.turn(cycle, at);
            at < begins || ends <= at
        })
    }

    /// How long the rule hangs a zio that it was given at this moment.
    pub(crate) fn hangs_until(&self, charged: Instant) -> Instant {
        match self.spec.when.cycle {
            None => self.ends(),
            Some(cycle) => self
                .turn(cycle, charged.max(self.cycle_from))
                .1
                .min(self.ends()),
        }
    }

    pub(crate) fn fault(&self, charged: Instant) -> Option<Fault> {
        match self.spec.effect {
            Effect::Fail { errno, work, .. } => Some(Fault::Fail(errno, work)),
            Effect::Hang => Some(Fault::Hang(self.spec.mode, self.hangs_until(charged))),
            Effect::Delay(_) | Effect::Damage(_) | Effect::Pass => None,
        }
    }

    /// The nominal service time and the number of lanes; zero and `None` without a delay.
    pub(crate) fn delay(&self) -> (Duration, Option<u32>) {
        match self.spec.effect.delay() {
            Some(delay) => (delay.service.nominal(), delay.lanes),
            None => (Duration::ZERO, None),
        }
    }

    /// Whether a hold of the rule comes before the store's work.
    pub(crate) fn mode(&self) -> Mode {
        match self.spec.effect {
            Effect::Fail { work: false, .. } => Mode::Add,
            Effect::Fail { work: true, .. } => Mode::Floor,
            _ => self.spec.mode,
        }
    }

    /// The time of a delay at a moment. Along a ramp, it changes by the same part of a nanosecond in each.
    pub(crate) fn at(&self, service: Duration, now: Instant) -> Duration {
        let Some(ramp) = self.spec.effect.delay().and_then(|delay| delay.ramp) else {
            return service;
        };
        let (from, to) = (
            i128::from(ramp.from.as_nanos()),
            i128::from(service.as_nanos()),
        );
        let lasts = i128::from(ramp.lasts.as_nanos());
        let mut since = i128::from(now.since(self.ramp_from).as_nanos());
        since = if ramp.repeats {
            since % lasts
        } else {
            since.min(lasts)
        };
        let nanos = from + (to - from) * since / lasts;
        Duration::from_nanos(nanos as u64)
    }

    pub(crate) fn sample(&mut self, now: Instant) -> Duration {
        let Some(delay) = self.spec.effect.delay() else {
            return Duration::ZERO;
        };
        let service = delay.service.sample(&mut self.random);
        self.at(service, now)
    }
}
