//! A rule as it was understood, and what it has done.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::inject::{Effect, Limit, Mode, RuleSpec, Service};
use dashpot_engine::{Duration, Op, OpSet, Ratio};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Load;

/// A rule.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Rule {
    pub id: u32,
    /// The name of the call that armed it; rules armed together share it.
    pub name: Option<String>,
    pub disk: String,
    /// Rules of a group share their lanes.
    pub group: u32,
    /// The pool that zinject was given. Such rules of a disk are one group.
    pub pool: Option<String>,
    /// The rule in canonical words, without its name.
    #[schema(example = "-D 10ms:1 -T read")]
    pub rule: String,
    #[serde(flatten)]
    pub fields: RuleFields,
    /// Where it is in its life.
    pub state: RuleState,
    /// Time since it was armed or last updated; of one that is gone, until it was cleared.
    pub age_ns: u64,
    /// Whether it was updated since it was armed. Its counters and histograms hold what it did before
    /// the update, too.
    pub updated: bool,
    #[serde(flatten)]
    pub counters: RuleCounters,
    /// Why it has injected nothing, if it has not.
    pub why_nothing: Option<String>,
    /// Connections of its disk that the bound on memory keeps from being read, now. That bounds
    /// the depth, and so distorts what the rule does.
    pub stalled: u32,
    /// Times that a connection of its disk was kept from being read.
    pub stalls: u64,
    /// How much of its time the shard of its disk works. Overloaded, it is late. The seconds in which
    /// it was overloaded count from the moment at which the rule was armed or last updated.
    pub shard_load: Load,
}

/// What a rule says, word by word.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RuleFields {
    pub effect: RuleEffect,
    /// The constant, or the distribution's median.
    pub delay_ns: Option<u64>,
    /// How many zios are served at a time; none: any number.
    pub lanes: Option<u32>,
    /// The error that it gives.
    #[schema(example = "EIO")]
    pub errno: Option<String>,
    /// Bytes per second of the disk's one serial server.
    pub bandwidth_bytes: Option<u64>,
    /// The operations that it matches.
    #[schema(example = json!(["read", "write", "zero"]))]
    pub ops: Vec<String>,
    /// The share of matching zios that it injects into.
    pub chance: Option<Chance>,
    /// Only the first so many that match.
    pub first: Option<u64>,
    /// Only every so manyth that matches.
    pub every: Option<u64>,
    /// First byte of its range.
    pub range_start_bytes: Option<u64>,
    /// First byte after its range.
    pub range_end_bytes: Option<u64>,
    /// A glob that the client's name must match.
    pub client: Option<String>,
    pub mode: RuleMode,
    /// How long after it was armed it begins.
    pub after_ns: u64,
    /// How long it lasts then.
    pub for_ns: Option<u64>,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleEffect {
    Delay,
    Error,
    Hang,
    Bandwidth,
}

/// Whether the store works first (`floor`) or after the hold (`add`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleMode {
    Floor,
    Add,
}

/// A probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Chance {
    pub numerator: u64,
    pub denominator: u64,
}

/// Where a rule is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleState {
    /// `--after` has not passed.
    Waiting,
    Active,
    /// `--for` has passed.
    Ended,
    /// It is gone: this is what it had done when it was cleared.
    Cleared,
}

/// What a rule has counted since it was armed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RuleCounters {
    /// Zios that met its operations, range and client while it was active.
    pub matched: u64,
    /// Of these, zios that it took: given a lane or an error.
    pub taken: u64,
    /// Zios that it has decided about: held, overrun, failed and aborted, and those that it holds
    /// now.
    pub injected: u64,
    /// A hold was added.
    pub held: u64,
    /// The store finished after the target; nothing was added.
    pub overrun: u64,
    /// An error was given.
    pub failed: u64,
    /// Held, and more than 1 ms or 5 % of the delay late.
    pub late: u64,
    /// Not drawn by its probability.
    pub not_drawn: u64,
    /// Outside of first-N or every-N.
    pub not_counted: u64,
    /// Another rule's lane or target was chosen.
    pub beaten: u64,
    /// The rule that beat it last.
    pub beaten_by: Option<u32>,
    /// Zios that it would have matched, had the error or hang of another rule not decided before it
    /// was asked. They are not in `matched`.
    #[serde(default)]
    pub preempted: u64,
    /// The rule that did so last.
    #[serde(default)]
    pub preempted_by: Option<u32>,
    /// Held, but the connection was gone before it ended.
    pub aborted: u64,
    /// It holds them now: they have not ended, and no other rule holds them longer.
    pub now: u64,
    /// How far ahead its soonest lane is booked.
    pub backlog_ns: u64,
    /// The service times that it asked for, without lane wait.
    pub requested: Summary,
    /// What was achieved after lane wait, of the zios held.
    pub achieved: Summary,
    /// How late those were.
    pub lateness: Summary,
    /// How late those of them were that the host's stops explain: it kept the shard from running at
    /// some moment between the one at which they were due and the one at which they ended.
    pub stopped: Summary,
}

/// A few numbers of a histogram; without values there are none.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    pub count: u64,
    pub mean_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

impl RuleFields {
    /// The parts of a rule.
    pub fn of(spec: &RuleSpec) -> RuleFields {
        let (first, every) = match spec.limit {
            Limit::Always => (None, None),
            Limit::First(count) => (Some(count), None),
            Limit::Every(count) => (None, Some(count)),
        };
        let (delay_ns, lanes) = match &spec.effect {
            Effect::Delay { service, lanes } => {
                (Some(Service::nominal(service).as_nanos()), *lanes)
            }
            _ => (None, None),
        };
        RuleFields {
            effect: RuleEffect::of(&spec.effect),
            delay_ns,
            lanes,
            errno: errno_name(&spec.effect),
            bandwidth_bytes: spec.bandwidth,
            ops: op_words(spec.ops),
            chance: spec.chance.map(Chance::of),
            first,
            every,
            range_start_bytes: spec.range.map(|(start, _)| start),
            range_end_bytes: spec.range.map(|(_, end)| end),
            client: spec.client.clone(),
            mode: RuleMode::of(spec.mode),
            after_ns: spec.after.as_nanos(),
            for_ns: spec.lasts.map(Duration::as_nanos),
        }
    }
}

/// The words of a set of operations, with `fua` for writes that ask for durability.
pub fn op_words(ops: OpSet) -> Vec<String> {
    let named = Op::ALL.map(|op| (op.name(), OpSet::of(op)));
    let all = named.into_iter().chain([("fua", OpSet::FUA)]);
    let members = all.filter(|(_, one)| ops.contains(*one));
    members.map(|(word, _)| word.to_owned()).collect()
}

fn errno_name(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Fail { errno, .. } => Some(errno.name().to_owned()),
        _ => None,
    }
}

impl RuleEffect {
    fn of(effect: &Effect) -> RuleEffect {
        match effect {
            Effect::Delay { .. } => RuleEffect::Delay,
            Effect::Fail { .. } => RuleEffect::Error,
            Effect::Hang => RuleEffect::Hang,
            Effect::Pass => RuleEffect::Bandwidth,
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

impl Summary {
    pub fn of(histogram: Option<&Histogram>) -> Summary {
        let Some(histogram) = histogram else {
            return Summary::default();
        };
        Summary {
            count: histogram.count(),
            mean_ns: histogram.mean(),
            p50_ns: histogram.quantile(500_000),
            p99_ns: histogram.quantile(990_000),
            max_ns: histogram.max(),
        }
    }
}
