//! An armed rule (zinject: `inject_handler_t`): its specification, lanes, random draws and
//! counters.

use alloc::boxed::Box;
use core::ops::Range;

use super::id::{GroupId, RuleId};
use super::lane::Lanes;
use super::spec::{Effect, RuleSpec};
use crate::client::{ClientSet, Clients};
use crate::random::Random;
use crate::stats::{RuleCounts, RuleView};
use crate::time::{Duration, Instant};
use crate::zio::{Op, OpSet, Zio};

#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: RuleId,
    pub(crate) group: GroupId,
    pub(crate) spec: RuleSpec,
    /// The index, among the rules of the disk, of the first rule of this rule's group.
    pub(crate) leader: usize,
    /// The rule's lanes. `None` if the rule serves any number of zios at the same time.
    pub(crate) lanes: Option<Lanes>,
    /// How many times the rule was updated. A booking notes the version of the rule that made it.
    pub(super) version: u32,
    /// The counters for zios that were checked against the present version of the rule.
    pub(super) present: RuleCounts,
    /// The counters for zios that were checked against earlier versions of the rule, if it was updated.
    past: Option<Box<RuleCounts>>,
    pub(crate) random: Random,
    /// The service time that the engine assumes when it chooses a lane.
    pub(crate) nominal: Duration,
    /// Whether the service time changes with time.
    pub(super) is_ramp: bool,
    /// The number of zios that have matched since `counted_from`.
    counted: u64,
    counted_from: Instant,
    armed: Instant,
    /// When the first period of the rule's cycle began, and the seed of the periods' jitter.
    cycle_from: Instant,
    cycle_seed: u64,
    /// When the ramp of the rule's delay began.
    ramp_from: Instant,
    begins: Instant,
    ends: Instant,
    /// The clients whose names match the rule's glob; `None` if the rule has no glob and so matches all
    /// clients.
    clients: Option<ClientSet>,
}

impl Rule {
    pub(crate) fn new(
        id: RuleId,
        group: GroupId,
        spec: RuleSpec,
        seed: u64,
        now: Instant,
        clients: &Clients,
    ) -> Rule {
        let seed = seed ^ u64::from(id.0).wrapping_mul(SEED_STRIDE);
        let mut rule = Rule {
            id,
            group,
            leader: 0,
            lanes: spec.lanes().map(Lanes::new),
            version: 0,
            present: RuleCounts::default(),
            past: None,
            random: Random::new(seed),
            nominal: Duration::ZERO,
            is_ramp: false,
            counted: 0,
            counted_from: now,
            armed: now,
            cycle_from: now + spec.when.after,
            cycle_seed: seed,
            ramp_from: now + spec.when.after,
            begins: now,
            ends: Instant::NEVER,
            clients: None,
            spec,
        };
        rule.arm(now, clients);
        rule
    }

    /// Replaces the rule's specification, and begins new counters for the new version.
    pub(crate) fn update(&mut self, spec: RuleSpec, now: Instant, clients: &Clients) {
        if self.spec.count != spec.count {
            self.counted = 0;
            self.counted_from = now;
        }
        if self.spec.when.cycle != spec.when.cycle || now < self.begins {
            self.cycle_from = now + spec.when.after;
        }
        if self.spec.effect.delay() != spec.effect.delay() || now < self.begins {
            self.ramp_from = now + spec.when.after;
        }
        self.spec = spec;
        self.version = self.version.wrapping_add(1);
        let ended = core::mem::take(&mut self.present);
        self.past.get_or_insert_default().merge(&ended);
        self.arm(now, clients);
    }

    /// Computes the fields that follow from the specification, as of `now`.
    fn arm(&mut self, now: Instant, clients: &Clients) {
        self.armed = now;
        self.begins = now + self.spec.when.after;
        self.ends = self
            .spec
            .when
            .lasts
            .map_or(Instant::NEVER, |lasts| self.begins + lasts);
        let delay = self.spec.effect.delay();
        self.is_ramp = delay.is_some_and(|delay| delay.ramp.is_some());
        self.nominal = delay.map_or(Duration::ZERO, |delay| delay.service.nominal());
        self.find_clients(clients);
    }

    /// Matches the rule's glob against the names of the clients.
    pub(crate) fn find_clients(&mut self, clients: &Clients) {
        self.clients = self
            .spec
            .client
            .as_deref()
            .map(|glob| clients.matching(glob));
    }

    /// Whether the rule injects an error or a hang. The disk checks these rules before it checks rules with
    /// delays.
    pub(crate) fn is_fault(&self) -> bool {
        matches!(self.spec.effect, Effect::Fail { .. } | Effect::Hang)
    }

    /// Whether the rule does nothing because its disk `spares_data`.
    pub(crate) fn is_spared(&self, spares_data: bool) -> bool {
        spares_data && matches!(self.spec.effect, Effect::Damage(_))
    }

    /// How long the rule hangs a zio from `charged` on: until its own end, or until it rests. An update may have
    /// begun another cycle since; then the zio hangs until the end of the first turn.
    pub(crate) fn hangs_for(&self, charged: Instant) -> Duration {
        let turn = self.turn(charged.max(self.cycle_from));
        match turn.map_or(self.ends, |turn| turn.end.min(self.ends)) {
            Instant::NEVER => Duration::MAX,
            ends => ends.since(charged),
        }
    }

    /// The turn of the rule's cycle at a moment; `None` if the rule never rests.
    fn turn(&self, now: Instant) -> Option<Range<Instant>> {
        let cycle = self.spec.when.cycle?;
        Some(cycle.turn(self.cycle_from, now, self.cycle_seed))
    }

    /// Whether the rule has begun, has not ended, and does not rest.
    fn applies(&self, now: Instant) -> bool {
        self.is_on(now) && self.turn(now).is_none_or(|turn| turn.contains(&now))
    }

    fn is_on(&self, now: Instant) -> bool {
        self.begins <= now && now < self.ends
    }

    /// Whether the rule applies to `zio`, which counts as the operations `ops`. Counts the zio if it matches.
    #[inline]
    pub(crate) fn triggers(&mut self, now: Instant, zio: &Zio, ops: OpSet) -> bool {
        if !self.matches(now, zio, ops) {
            return false;
        }
        self.present.stats.matched += 1;
        self.counted += 1;
        if !self.spec.count.takes(self.counted) {
            self.present.stats.not_counted += 1;
            return false;
        }
        let drawn = self
            .spec
            .chance
            .is_none_or(|chance| self.random.draw(chance));
        self.present.stats.not_drawn += u64::from(!drawn);
        drawn
    }

    /// Whether the zio, which counts as the operations `ops`, matches the rule at `now`.
    pub(crate) fn matches(&self, now: Instant, zio: &Zio, ops: OpSet) -> bool {
        self.spec.ops.meets(ops)
            && self.applies(now)
            && self.spec.range.is_none_or(|range| touches(range, zio, ops))
            && self.clients.is_none_or(|set| set.contains(zio.client))
            && match self.spec.effect {
                // What a FUA write stores is decided before the store works.
                Effect::Damage(damage) => !is_half(zio, ops) && damage.can_hit(zio),
                _ => true,
            }
    }

    /// When a zio would be done if this rule held it from now on for the nominal service time.
    pub(crate) fn finish(&self, now: Instant) -> Instant {
        let nominal = match self.is_ramp {
            true => self.ramped(now, self.nominal),
            false => self.nominal,
        };
        match &self.lanes {
            Some(lanes) => lanes.finish(now, nominal),
            None => now + nominal,
        }
    }

    /// The service time at a moment, of a rule whose service time changes to `to`.
    #[cold]
    pub(super) fn ramped(&self, now: Instant, to: Duration) -> Duration {
        let ramp = self.spec.effect.delay().and_then(|delay| delay.ramp);
        ramp.map_or(to, |ramp| ramp.at(to, now.since(self.ramp_from)))
    }

    /// The counters for a zio that was checked against this `version` of the rule.
    #[inline]
    pub(super) fn counts(&mut self, version: u32) -> &mut RuleCounts {
        match &mut self.past {
            Some(past) if version != self.version => past,
            _ => &mut self.present,
        }
    }

    /// A view of the rule. `passed` is how long, from now on, the disk's bandwidth is already booked.
    pub(crate) fn view(&self, now: Instant, passed: Duration) -> RuleView<'_> {
        let lanes = self.lanes.as_ref();
        let served = lanes.map_or(Duration::ZERO, |lanes| lanes.free_at().since(now));
        let passed = self.spec.bandwidth.map_or(Duration::ZERO, |_| passed);
        RuleView {
            id: self.id,
            group: self.group,
            spec: &self.spec,
            armed: self.armed,
            counted: self.counted,
            counted_from: self.counted_from,
            rests: self.is_on(now) && !self.applies(now),
            present: &self.present,
            past: self.past.as_deref(),
            backlog: served.max(passed),
        }
    }
}

/// Whether the zio touches a byte of the range. The flush of a FUA write touches no byte, nor does a zio
/// without a length, such as the flush of a block device.
fn touches((start, end): (u64, u64), zio: &Zio, ops: OpSet) -> bool {
    let last = zio.offset.saturating_add(u64::from(zio.length));
    zio.length > 0 && !is_half(zio, ops) && zio.offset < end && start < last
}

/// Whether the operations `ops` are the flush that ends a FUA write.
fn is_half(zio: &Zio, ops: OpSet) -> bool {
    ops.meets(OpSet::of(Op::Flush)) && zio.op != Op::Flush
}

/// The distance between the seeds of neighbouring rules, so that their random draws differ.
const SEED_STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;
