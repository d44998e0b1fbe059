//! A rule as it was understood, and what it has done.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::inject::{Effect, Limit, Mode, RuleSpec, Service};
use dashpot_engine::{Duration, Holds, Instant, Op, OpSet, Ratio};
use dashpot_export::{DiskSnapshot, RuleSnapshot, Work};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Load;
use crate::api::why::why_nothing;
use crate::daemon::Record;

/// A rule.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Rule {
    pub(crate) id: u32,
    /// The name of the call that armed it; rules armed together share it.
    pub(crate) name: Option<String>,
    pub(crate) disk: String,
    /// Rules of a group share their lanes.
    pub(crate) group: u32,
    /// The pool that zinject was given. Such rules of a disk are one group.
    pub(crate) pool: Option<String>,
    /// The rule in canonical words, without its name.
    #[schema(example = "-D 10ms:1 -T read")]
    pub(crate) rule: String,
    #[serde(flatten)]
    pub(crate) fields: RuleFields,
    /// Where it is in its life.
    pub(crate) state: RuleState,
    /// Time since it was armed or last updated; of one that is gone, until it was cleared.
    pub(crate) age_ns: u64,
    #[serde(flatten)]
    pub(crate) counters: RuleCounters,
    /// Why it has injected nothing, if it has not.
    pub(crate) why_nothing: Option<String>,
    /// Connections of its disk that the bound on memory keeps from being read, now. That bounds
    /// the depth, and so distorts what the rule does.
    pub(crate) stalled: u32,
    /// Times that a connection of its disk was kept from being read.
    pub(crate) stalls: u64,
    /// How much of its time the shard of its disk works. Overloaded, it is late. The seconds in which
    /// it was overloaded count from the moment at which the rule was armed or last updated.
    pub(crate) shard_load: Load,
}

/// What a rule says, word by word.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RuleFields {
    pub(crate) effect: RuleEffect,
    /// The constant, or the distribution's median.
    pub(crate) delay_ns: Option<u64>,
    /// How many zios are served at a time; none: any number.
    pub(crate) lanes: Option<u32>,
    /// The error that it gives.
    #[schema(example = "EIO")]
    pub(crate) errno: Option<String>,
    /// Bytes per second of the disk's one serial server.
    pub(crate) bandwidth_bytes: Option<u64>,
    /// The operations that it matches.
    #[schema(example = json!(["read", "write", "zero"]))]
    pub(crate) ops: Vec<String>,
    /// The share of matching zios that it injects into.
    pub(crate) chance: Option<Chance>,
    /// Only the first so many that match.
    pub(crate) first: Option<u64>,
    /// Only every so manyth that matches.
    pub(crate) every: Option<u64>,
    /// First byte of its range.
    pub(crate) range_start_bytes: Option<u64>,
    /// First byte after its range.
    pub(crate) range_end_bytes: Option<u64>,
    /// A glob that the client's name must match.
    pub(crate) client: Option<String>,
    pub(crate) mode: RuleMode,
    /// How long after it was armed it begins.
    pub(crate) after_ns: u64,
    /// How long it lasts then.
    pub(crate) for_ns: Option<u64>,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RuleEffect {
    Delay,
    Error,
    Hang,
    Bandwidth,
}

/// Whether the store works first (`floor`) or after the hold (`add`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RuleMode {
    Floor,
    Add,
}

/// A probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Chance {
    pub(crate) numerator: u64,
    pub(crate) denominator: u64,
}

/// Where a rule is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RuleState {
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
pub(crate) struct RuleCounters {
    /// Zios that met its operations, range and client while it was active.
    pub(crate) matched: u64,
    /// Of these, zios that it took: given a lane or an error.
    pub(crate) taken: u64,
    /// Zios that it has decided about: held, overrun, failed and aborted, and those that it holds
    /// now.
    pub(crate) injected: u64,
    /// A hold was added.
    pub(crate) held: u64,
    /// The store finished after the target; nothing was added.
    pub(crate) overrun: u64,
    /// An error was given.
    pub(crate) failed: u64,
    /// Held, and more than 1 ms or 5 % of the delay late.
    pub(crate) late: u64,
    /// Not drawn by its probability.
    pub(crate) not_drawn: u64,
    /// Outside of first-N or every-N.
    pub(crate) not_counted: u64,
    /// Another rule's lane or target was chosen.
    pub(crate) beaten: u64,
    /// The rule that beat it last.
    pub(crate) beaten_by: Option<u32>,
    /// Zios that it would have matched, had the error or hang of another rule not decided before it
    /// was asked. They are not in `matched`.
    #[serde(default)]
    pub(crate) preempted: u64,
    /// The rule that did so last.
    #[serde(default)]
    pub(crate) preempted_by: Option<u32>,
    /// Held, but the connection was gone before it ended.
    pub(crate) aborted: u64,
    /// It holds them now: they have not ended, and no other rule holds them longer.
    pub(crate) now: u64,
    /// How far ahead its soonest lane is booked.
    pub(crate) backlog_ns: u64,
    /// The service times that it asked for, without lane wait.
    pub(crate) requested: Summary,
    /// What was achieved after lane wait, of the zios held.
    pub(crate) achieved: Summary,
    /// How late those were.
    pub(crate) lateness: Summary,
    /// How late those of them were that the host's stops explain: it kept the shard from running at
    /// some moment between the one at which they were due and the one at which they ended.
    pub(crate) stopped: Summary,
}

/// A few numbers of a histogram; without values there are none.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Summary {
    pub(crate) count: u64,
    pub(crate) mean_ns: Option<u64>,
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    pub(crate) max_ns: Option<u64>,
}

impl Rule {
    /// A rule of the disk called `disk`, if it is armed in the disk's snapshot.
    pub(crate) fn of(record: &Record, disk: &str, snapshot: &DiskSnapshot) -> Option<Rule> {
        let rule = snapshot.rules.iter().find(|rule| rule.id == record.id)?;
        Some(Rule {
            stalled: snapshot.stalled,
            stalls: snapshot.stalls,
            shard_load: Load {
                overloaded_seconds: rule.overloaded_seconds,
                ..Load::of(snapshot.work)
            },
            ..Rule::seen(record, disk, rule, snapshot.at)
        })
    }

    /// A rule as it stands at a moment, of a disk that nothing but the rule slows down.
    pub(crate) fn seen(record: &Record, disk: &str, rule: &RuleSnapshot, at: Instant) -> Rule {
        let age = at.since(rule.armed);
        let state = match record.is_gone {
            true => RuleState::Cleared,
            false => RuleState::at(&rule.spec, age),
        };
        Rule {
            id: rule.id.0,
            name: record.name.clone(),
            disk: disk.to_owned(),
            group: rule.group.0,
            pool: record.pool.clone(),
            rule: record.words.clone(),
            fields: RuleFields::of(&rule.spec),
            state,
            age_ns: age.as_nanos(),
            counters: RuleCounters::of(rule),
            why_nothing: why_nothing(rule, state),
            stalled: 0,
            stalls: 0,
            shard_load: Load::of(Work::default()),
        }
    }
}

impl RuleState {
    fn at(spec: &RuleSpec, age: Duration) -> RuleState {
        if age < spec.after {
            return RuleState::Waiting;
        }
        match spec.lasts {
            Some(lasts) if age >= spec.after + lasts => RuleState::Ended,
            _ => RuleState::Active,
        }
    }
}

impl RuleFields {
    fn of(spec: &RuleSpec) -> RuleFields {
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
pub(crate) fn op_words(ops: OpSet) -> Vec<String> {
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

impl RuleCounters {
    fn of(rule: &RuleSnapshot) -> RuleCounters {
        let stats = &rule.stats;
        RuleCounters {
            matched: stats.matched,
            taken: stats.chosen,
            injected: stats.ended() + rule.now,
            held: stats.held,
            overrun: stats.overrun,
            failed: stats.failed,
            late: stats.late,
            not_drawn: stats.not_drawn,
            not_counted: stats.not_counted,
            beaten: stats.beaten,
            beaten_by: stats.beaten_by.map(|rule| rule.0),
            preempted: stats.preempted,
            preempted_by: stats.preempted_by.map(|rule| rule.0),
            aborted: stats.aborted,
            now: rule.now,
            backlog_ns: rule.backlog.as_nanos(),
            requested: Summary::of(stats.holds.requested().as_ref()),
            achieved: achieved(&stats.holds),
            lateness: Summary::of(stats.holds.lateness()),
            stopped: Summary::of(stats.holds.stopped()),
        }
    }
}

/// What was achieved. Where all service times asked for were equal, the percentiles are these
/// and how late they ended: buckets of lateness are finer than those of the whole.
fn achieved(holds: &Holds) -> Summary {
    let mut achieved = Summary::of(holds.achieved().as_ref());
    let requested = holds.requested();
    let service = requested.filter(|all| all.min() == all.max());
    if let Some(service) = service.and_then(|service| service.min()) {
        let late = Summary::of(holds.lateness());
        achieved.p50_ns = late.p50_ns.map(|late| service + late);
        achieved.p99_ns = late.p99_ns.map(|late| service + late);
    }
    achieved
}

impl Summary {
    pub(crate) fn of(histogram: Option<&Histogram>) -> Summary {
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
