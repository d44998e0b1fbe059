//! The interface through which the driver uses a machine. The engine and the naive model implement it.

use dashpot_engine::inject::RuleId;
use dashpot_engine::{
    Action, DiskConfig, DiskId, Duration, Engine, InFlight, Input, Instant, RuleCounts, RuleView,
    Wait, ZioId,
};

/// The one disk of every test.
pub(crate) const DISK: DiskId = DiskId(0);

pub(crate) trait Machine {
    fn new(seed: u64) -> Self;
    fn step(&mut self, now: Instant, input: Input<'_>, actions: &mut Vec<Action>);
    fn next_deadline(&self) -> Option<Instant>;
    /// The state of each rule, in the order of their ids.
    fn rule_states(&self, now: Instant) -> Vec<RuleState>;
    /// The state of each rule, in the order of their ids. A state counts only the zios that were issued since
    /// the rule was armed or last updated.
    fn states_since_update(&self, now: Instant) -> Vec<RuleState>;
    /// The zios that the machine still has and where they wait, in the order of their ids.
    fn waits(&self) -> Vec<Waiting>;
    /// The driver could not damage this zio.
    fn spare(&mut self, zio: ZioId);
    fn is_suspended(&self) -> bool;
}

/// The counters of a rule that the tests compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleState {
    pub(crate) id: RuleId,
    pub(crate) matched: u64,
    pub(crate) chosen: u64,
    pub(crate) not_drawn: u64,
    pub(crate) not_counted: u64,
    pub(crate) beaten: u64,
    pub(crate) preempted: u64,
    pub(crate) held: u64,
    pub(crate) overrun: u64,
    pub(crate) failed: u64,
    pub(crate) damaged: u64,
    pub(crate) spared: u64,
    pub(crate) aborted: u64,
    pub(crate) now: u64,
    pub(crate) backlog: Duration,
}

impl RuleState {
    fn of(rule: &RuleView<'_>, counts: &RuleCounts) -> RuleState {
        let stats = &counts.stats;
        RuleState {
            id: rule.id,
            matched: stats.matched,
            chosen: stats.chosen,
            not_drawn: stats.not_drawn,
            not_counted: stats.not_counted,
            beaten: stats.beaten,
            preempted: stats.preempted,
            held: stats.held,
            overrun: stats.overrun,
            failed: stats.failed,
            damaged: stats.damaged,
            spared: stats.spared,
            aborted: stats.aborted,
            now: counts.now,
            backlog: rule.backlog,
        }
    }

    pub(crate) fn new(id: RuleId) -> RuleState {
        RuleState {
            id,
            matched: 0,
            chosen: 0,
            not_drawn: 0,
            not_counted: 0,
            beaten: 0,
            preempted: 0,
            held: 0,
            overrun: 0,
            failed: 0,
            damaged: 0,
            spared: 0,
            aborted: 0,
            now: 0,
            backlog: Duration::ZERO,
        }
    }
}

/// Where one zio waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) zio: ZioId,
    pub(crate) wait: Wait,
    pub(crate) rule: Option<RuleId>,
    pub(crate) target: Option<Instant>,
}

impl Machine for Engine {
    fn new(seed: u64) -> Engine {
        let mut engine = Engine::new();
        assert_eq!(engine.add_disk(DiskConfig { seed }), DISK);
        engine
    }

    fn step(&mut self, now: Instant, input: Input<'_>, actions: &mut Vec<Action>) {
        Engine::step(self, now, input, actions);
    }

    fn next_deadline(&self) -> Option<Instant> {
        Engine::next_deadline(self)
    }

    fn rule_states(&self, now: Instant) -> Vec<RuleState> {
        let view = |rule: RuleView<'_>| RuleState::of(&rule, &rule.all());
        Engine::rules(self, DISK, now).map(view).collect()
    }

    fn states_since_update(&self, now: Instant) -> Vec<RuleState> {
        let view = |rule: RuleView<'_>| RuleState::of(&rule, rule.present);
        Engine::rules(self, DISK, now).map(view).collect()
    }

    fn waits(&self) -> Vec<Waiting> {
        let view = |flight: InFlight| Waiting {
            zio: flight.zio,
            wait: flight.wait,
            rule: flight.rule,
            target: flight.target,
        };
        let mut waiting: Vec<Waiting> = self.in_flight(DISK).map(view).collect();
        waiting.sort_by_key(|waiting| waiting.zio);
        waiting
    }

    fn spare(&mut self, zio: ZioId) {
        Engine::spare(self, zio);
    }

    fn is_suspended(&self) -> bool {
        Engine::suspended(self, DISK).is_some()
    }
}
