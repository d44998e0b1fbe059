//! A rule of the naive model: its specification and its counters.

use dashpot_engine::inject::{Effect, GroupId, Mode, RuleId, RuleSpec};
use dashpot_engine::{Duration, Errno, Instant, Random};

use crate::machine::RuleState;

pub(crate) struct Rule {
    pub(crate) group: GroupId,
    pub(crate) spec: RuleSpec,
    pub(crate) armed: Instant,
    pub(crate) random: Random,
    /// How many zios have matched since the rule was armed, or its count changed.
    pub(crate) counted: u64,
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
        random: Random,
    ) -> Rule {
        Rule {
            group,
            spec,
            armed,
            random,
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
        let lasts = self.spec.lasts.unwrap_or(Duration::MAX);
        self.armed + self.spec.after + lasts
    }

    pub(crate) fn fault(&self) -> Option<Fault> {
        match self.spec.effect {
            Effect::Fail { errno, work } => Some(Fault::Fail(errno, work)),
            Effect::Hang => Some(Fault::Hang(self.spec.mode, self.ends())),
            Effect::Delay { .. } | Effect::Pass => None,
        }
    }

    /// The nominal service time and the number of lanes; zero and `None` without a delay.
    pub(crate) fn delay(&self) -> (Duration, Option<u32>) {
        match &self.spec.effect {
            Effect::Delay { service, lanes } => (service.nominal(), *lanes),
            _ => (Duration::ZERO, None),
        }
    }

    pub(crate) fn sample(&mut self) -> Duration {
        match &self.spec.effect {
            Effect::Delay { service, .. } => service.sample(&mut self.random),
            _ => Duration::ZERO,
        }
    }
}
