//! A rule, as the daemon parsed it, and its counters.

use dashpot_engine::inject::{Cycle, Effect, Mode, Ramp, RuleSpec};
use dashpot_engine::{Duration, Op, OpSet, Ratio};
use dashpot_rules::{call_names, damage_name};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::depth::Depth;
use super::shard::Load;
use super::summary::Summary;

/// A rule.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Rule {
    /// The number that identifies the rule in calls.
    pub id: u32,
    /// The name that the caller gave; rules armed by one call share it. Null for none.
    pub name: Option<String>,
    /// The name of the rule's disk.
    pub disk: String,
    /// The number of the rule's group. Rules of a group share their lanes.
    pub group: u32,
    /// The pool that a zinject command named, or null. The rules with the same disk and pool form one group.
    pub pool: Option<String>,
    /// The rule in canonical words, without its name.
    #[schema(example = "-D 10ms:1 -T read")]
    pub rule: String,
    /// The parts of the rule.
    #[serde(flatten)]
    pub fields: RuleFields,
    /// Whether the rule waits, injects, has ended, or is cleared.
    pub state: RuleState,
    /// Time since the rule was armed or last updated; for a cleared rule, the time until it was cleared.
    pub age_ns: u64,
    /// How many zios have matched for the rule's count (`skip`, `every`, `first`).
    #[serde(default)]
    pub counted: u64,
    /// Time since that count began: since the rule was armed, or since an update changed the count.
    #[serde(default)]
    pub counting_ns: u64,
    /// Time until the rule's lease lapses, and the rule is cleared; null if it has no lease.
    #[serde(default)]
    pub lapses_in_ns: Option<u64>,
    /// The rule's counters since it was armed, through all its updates.
    #[serde(flatten)]
    pub counters: RuleCounters,
    /// The rule's counters for the zios that matched it after its last update; null if it was never
    /// updated. Only `counters` has the zios that the rule held when it was updated.
    pub since_update: Option<RuleCounters>,
    /// The reason that the rule has injected nothing since it was armed or last updated; null if it has
    /// injected something.
    pub why_nothing: Option<String>,
    /// Number of connections of the rule's disk that the shard does not read at present, because requests use
    /// all the memory that they may use. This limits the depth, and so distorts the rule's effect.
    pub stalled: u32,
    /// How often the shard has stopped reading a connection of the rule's disk since the rule was armed or
    /// last updated. It does so when requests use all the memory that they may use.
    pub stalls: u64,
    /// How many zios the disk's clients had in flight at a time since the rule was armed or last updated. If
    /// a rule has more lanes than `most`, clients never used the other lanes.
    pub depth: Depth,
    /// How much of its time the shard of the rule's disk works. An overloaded shard ends zios late. Here
    /// `overloaded_seconds` counts from the moment at which the rule was armed or last updated.
    pub shard_load: Load,
}

/// The parts of a rule.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RuleFields {
    /// The rule's effect on a zio.
    pub effect: RuleEffect,
    /// The constant delay, the median of the distribution of delays, or the last delay of a ramp; null if the rule
    /// does not delay.
    pub delay_ns: Option<u64>,
    /// How the delay changes with time; null if it does not.
    #[serde(default)]
    pub ramp: Option<RuleRamp>,
    /// The most zios that the rule serves at a time; null for no limit.
    pub lanes: Option<u32>,
    /// The name of the error with which the rule ends zios; null if it does not do so.
    #[schema(example = "EIO")]
    pub errno: Option<String>,
    /// What the rule does to the data of zios: `drop`, `lie`, `torn`, `flip`, `zero`, `random`, `misdirect` or
    /// `short`; null if it leaves the data alone.
    #[serde(default)]
    #[schema(example = "drop")]
    pub damage: Option<String>,
    /// Bytes per second that the disk transfers under this rule, one zio after another; null for no limit.
    pub bandwidth_bytes: Option<u64>,
    /// The operations that the rule matches.
    #[schema(example = json!(["read", "write", "zero"]))]
    pub ops: Vec<String>,
    /// The probability with which the rule injects into a matching zio; null if it injects into all of them.
    pub chance: Option<Chance>,
    /// K, if the rule spares the first K matching zios; otherwise null.
    #[serde(default)]
    pub skip: Option<u64>,
    /// N, if the rule injects only into every Nth of the others; otherwise null.
    pub every: Option<u64>,
    /// N, if the rule injects only into the first N of these; otherwise null.
    pub first: Option<u64>,
    /// The first byte of the rule's range; null for the whole disk.
    pub range_start_bytes: Option<u64>,
    /// The first byte after the rule's range; null for the whole disk.
    pub range_end_bytes: Option<u64>,
    /// A glob that the client's name must match; null for all clients.
    pub client: Option<String>,
    /// Whether the store works during the hold or after it.
    pub mode: RuleMode,
    /// Time from the arming of the rule until it begins to inject.
    pub after_ns: u64,
    /// How long the rule injects; null if it does not end by itself.
    pub for_ns: Option<u64>,
    /// The turns in which the rule injects; null if it does not rest.
    #[serde(default)]
    pub cycle: Option<RuleCycle>,
}

/// A delay that grows or shrinks steadily.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleRamp {
    /// The first delay.
    pub from_ns: u64,
    /// How long it takes until `delay_ns` is reached.
    pub over_ns: u64,
    /// Whether the ramp then begins again. If not, the last delay stays.
    pub repeats: bool,
}

/// The turns in which a rule injects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleCycle {
    /// How long the rule injects in each period.
    pub on_ns: u64,
    /// The length of a period.
    pub period_ns: u64,
    /// In each period the rule begins to inject after a random time of at most this length.
    pub jitter_ns: u64,
}

/// The effect of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleEffect {
    /// The rule holds the zio for a time.
    Delay,
    /// The rule ends the zio with an error.
    Error,
    /// The rule keeps the zio until the rule is cleared.
    Hang,
    /// The rule damages the zio's data.
    Damage,
    /// The rule limits the bytes per second and has no other effect.
    Bandwidth,
}

/// Whether the store works during the hold (`floor`) or after it (`add`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleMode {
    /// The store works while the rule holds the zio, so the zio takes the longer of the two times.
    Floor,
    /// The rule holds the zio, and then the store works, so the zio takes the sum of the two times.
    Add,
}

/// A probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Chance {
    /// The numerator.
    pub numerator: u64,
    /// The denominator; never 0.
    pub denominator: u64,
}

/// The state of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleState {
    /// The time of `--after` has not passed yet.
    Waiting,
    /// The rule applies to zios now.
    Active,
    /// The rule rests until the next turn of its cycle.
    Resting,
    /// The time of `--for` has passed.
    Ended,
    /// A caller cleared the rule; the counters have stayed as they were then.
    Cleared,
}

/// The counters of a rule.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RuleCounters {
    /// Number of zios that matched the rule's operations, range and client while the rule was active.
    pub matched: u64,
    /// Number of matching zios to which the rule gave a lane or an error.
    pub taken: u64,
    /// Number of zios whose latency or error the rule has decided: the sum of `held`, `overrun`, `failed`,
    /// `damaged`, `aborted` and `now`.
    pub injected: u64,
    /// Number of zios that the rule held for longer than the store took.
    pub held: u64,
    /// Number of zios that the rule did not need to hold, because the store took longer than the rule asks
    /// for.
    pub overrun: u64,
    /// Number of zios that the rule gave an error.
    pub failed: u64,
    /// Number of zios whose data the rule damaged.
    #[serde(default)]
    pub damaged: u64,
    /// Number of zios that the rule was to damage, and that had nothing to damage or could not be damaged.
    #[serde(default)]
    pub spared: u64,
    /// Number of held zios that were late by more than 1 ms or 5 % of the delay.
    pub late: u64,
    /// Number of matching zios that the rule left alone because its `chance` did not select them.
    pub not_drawn: u64,
    /// Number of matching zios that the rule left alone because its count (`skip`, `every`, `first`) did not
    /// select them.
    pub not_counted: u64,
    /// Number of matching zios whose latency or error another rule decided.
    pub beaten: u64,
    /// The id of the rule that decided the last zio in `beaten`; null if there was none.
    pub beaten_by: Option<u32>,
    /// Number of zios that another rule failed or hung before this rule could match them. They are not in
    /// `matched`.
    #[serde(default)]
    pub preempted: u64,
    /// The id of the rule that took the last zio in `preempted`; null if there was none.
    #[serde(default)]
    pub preempted_by: Option<u32>,
    /// Number of zios that the rule held when their connection ended.
    pub aborted: u64,
    /// Number of zios that the rule holds now, except those that another rule holds longer.
    pub now: u64,
    /// Time until one of the rule's lanes is free or, if the rule limits the bandwidth and this is later,
    /// until all booked transfers are done.
    pub backlog_ns: u64,
    /// The service times that the rule asked for, without the wait for a lane.
    pub requested: Summary,
    /// The service times that the held zios had, without the wait for a lane.
    pub achieved: Summary,
    /// How late the held zios were.
    pub lateness: Summary,
    /// The lateness of the late zios that the host delayed: it kept the shard from running at some moment
    /// between their target and their end.
    pub stopped: Summary,
}

impl Rule {
    /// The counters that prove the rule's effect. They cover the zios that matched the rule since its last
    /// update.
    pub fn present(&self) -> &RuleCounters {
        self.since_update.as_ref().unwrap_or(&self.counters)
    }
}

impl RuleFields {
    /// The parts of a rule.
    pub fn of(spec: &RuleSpec) -> RuleFields {
        let delay = spec.effect.delay();
        RuleFields {
            effect: RuleEffect::of(&spec.effect),
            delay_ns: delay.map(|delay| delay.service.nominal().as_nanos()),
            ramp: delay.and_then(|delay| delay.ramp).map(RuleRamp::of),
            lanes: spec.lanes(),
            errno: errno_name(&spec.effect),
            damage: damage_of(&spec.effect),
            bandwidth_bytes: spec.bandwidth,
            ops: op_words(spec.ops),
            chance: spec.chance.map(Chance::of),
            skip: (spec.count.skip > 0).then_some(spec.count.skip),
            every: (spec.count.every > 1).then_some(spec.count.every),
            first: spec.count.first,
            range_start_bytes: spec.range.map(|(start, _)| start),
            range_end_bytes: spec.range.map(|(_, end)| end),
            client: spec.client.clone(),
            mode: RuleMode::of(spec.mode),
            after_ns: spec.when.after.as_nanos(),
            for_ns: spec.when.lasts.map(Duration::as_nanos),
            cycle: spec.when.cycle.map(RuleCycle::of),
        }
    }
}

/// The words for a set of operations, with `fua` for writes that ask for durability, and the names of system
/// calls.
pub fn op_words(ops: OpSet) -> Vec<String> {
    let named = Op::ALL.map(|op| (op.name(), OpSet::of(op)));
    let all = named.into_iter().chain([("fua", OpSet::FUA)]);
    let members = all.filter(|(_, one)| ops.contains(*one));
    let calls = call_names(ops).into_iter();
    let words = members.map(|(word, _)| word).chain(calls);
    words.map(str::to_owned).collect()
}

fn errno_name(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Fail { errno, .. } => Some(errno.name().to_owned()),
        _ => None,
    }
}

fn damage_of(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Damage(damage) => Some(damage_name(*damage).to_owned()),
        _ => None,
    }
}

impl RuleEffect {
    fn of(effect: &Effect) -> RuleEffect {
        match effect {
            Effect::Delay(_) => RuleEffect::Delay,
            Effect::Fail { .. } => RuleEffect::Error,
            Effect::Hang => RuleEffect::Hang,
            Effect::Damage(_) => RuleEffect::Damage,
            Effect::Pass => RuleEffect::Bandwidth,
        }
    }
}

impl RuleRamp {
    fn of(ramp: Ramp) -> RuleRamp {
        RuleRamp {
            from_ns: ramp.from.as_nanos(),
            over_ns: ramp.lasts.as_nanos(),
            repeats: ramp.repeats,
        }
    }
}

impl RuleCycle {
    fn of(cycle: Cycle) -> RuleCycle {
        RuleCycle {
            on_ns: cycle.on.as_nanos(),
            period_ns: cycle.period.as_nanos(),
            jitter_ns: cycle.jitter.as_nanos(),
        }
    }
}

impl RuleMode {
    fn of(mode: Mode) -> RuleMode {
        match mode {
            Mode::Floor => RuleMode::Floor,
            Mode::Add => RuleMode::Add,
        }
    }
}

impl Chance {
    fn of(ratio: Ratio) -> Chance {
        Chance {
            numerator: ratio.numerator(),
            denominator: ratio.denominator(),
        }
    }
}
