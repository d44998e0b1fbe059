//! Judges whether an expectation holds, from two snapshots of a daemon.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use dashpot_api::{DiskLatency, OpLatency, RuleLatency, STARTED_AGAIN};
use dashpot_engine::OpSet;
use dashpot_engine::histogram::Histogram;
use dashpot_observe::{Percentiles, outlasts, stop_line};
use dashpot_rules::{nice_number, parse_ops, short_time};
use dashpot_text::table::{Room, prose_within};
use serde::Serialize;

use super::expression::Expression;
use super::metric::{DeviceMetric, Figure, Kind, RuleMetric, Span};
use super::names::Subject;

/// The state of the named devices and rules at one moment, by name.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// When the daemon started.
    pub(crate) started_ns: u64,
    pub(crate) devices: HashMap<String, DiskLatency>,
    /// For each name, the rules that have this name or had it before they were cleared.
    pub(crate) rules: HashMap<String, Vec<RuleLatency>>,
}

/// The result of one expectation. JSON: `{"check": "wal.flush.p99 < 30ms", "holds": true,
/// "observed": "21.3ms (n=400)", "n": 400, "observed_ns": 21300000}`. The observed value is
/// `observed_ns`, `count` or `observed_per_s`, depending on the metric; without data, all three are
/// null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Outcome {
    check: String,
    pub(crate) holds: bool,
    /// The observed value in words; if there is no data, the reason.
    observed: String,
    n: Option<u64>,
    observed_ns: Option<u64>,
    count: Option<u64>,
    observed_per_s: Option<f64>,
}

/// A figure, or the reason why there is none.
enum Observed {
    Figure { value: f64, n: Option<u64> },
    Nothing(String),
}

impl Snapshot {
    /// Judges an expression by the I/O since `earlier`, or since the daemon's start.
    pub(crate) fn judge(
        &self,
        expression: &Expression,
        earlier: Option<&Snapshot>,
    ) -> anyhow::Result<Outcome> {
        let is_same_daemon = earlier.is_none_or(|snapshot| snapshot.started_ns == self.started_ns);
        ensure!(is_same_daemon, STARTED_AGAIN);
        let mut remark = None;
        let observed = match &expression.subject {
            Subject::Device { device, op, metric } => {
                let now = self.devices.get(device).context("the device is gone")?;
                let earlier = earlier.and_then(|snapshot| snapshot.devices.get(device));
                if expression.subject.kind() == Kind::Time {
                    let older = outlasting(now, earlier, op.as_deref())?;
                    let remarks = older.into_iter().chain(stopped(now, earlier));
                    remark = Some(remarks.collect::<String>());
                }
                if *metric == DeviceMetric::Unheld {
                    remark = ways(now, earlier);
                }
                observe_device(now, earlier, op.as_deref(), *metric)?
            }
            Subject::Rule { rule, metric } => {
                let none = Vec::new();
                let now = self.rules.get(rule).unwrap_or(&none);
                let earlier = earlier.and_then(|snapshot| snapshot.rules.get(rule));
                observe_rules(rule, now, earlier.unwrap_or(&none), *metric)?
            }
        };
        let mut outcome = Outcome::of(expression, observed);
        outcome.observed += &remark.unwrap_or_default();
        Ok(outcome)
    }
}

/// A remark about the oldest I/O in flight, if it has already taken longer than nearly all I/Os that have
/// ended.
fn outlasting(
    now: &DiskLatency,
    earlier: Option<&DiskLatency>,
    op: Option<&str>,
) -> anyhow::Result<Option<String>> {
    let oldest = now.oldest.as_ref();
    let Some(oldest) = oldest.filter(|zio| op.is_none_or(|op| is_same(op, &zio.op))) else {
        return Ok(None);
    };
    let ended = Done::between(now, earlier, op)?.latency;
    let outlasts = outlasts(oldest.age_ns, &Percentiles::of(&ended));
    let age = short_time(oldest.age_ns);
    Ok(outlasts.then(|| format!("; one I/O in flight for {age} does not count yet")))
}

/// A remark about how long the host kept the device's shard from running; `None` if the time is too short to
/// matter.
fn stopped(now: &DiskLatency, earlier: Option<&DiskLatency>) -> Option<String> {
    let before_ns = earlier.map_or(0, |earlier| earlier.shard_stopped_ns);
    let stopped_ns = now.shard_stopped_ns.saturating_sub(before_ns);
    stop_line(Duration::from_nanos(stopped_ns)).map(|_| {
        let stopped = short_time(stopped_ns);
        format!("; the host stopped dashpot for {stopped}, and no latency shows that wait")
    })
}

/// The number of accesses to a path disk in an interval that no rule could hold. `None` for other disks.
fn unheld(now: &DiskLatency, earlier: Option<&DiskLatency>) -> Option<u64> {
    let before = earlier.and_then(|earlier| earlier.unheld.as_ref());
    let before = before.map_or(0, |before| before.count);
    let now = now.unheld.as_ref()?;
    Some(now.count.saturating_sub(before))
}

/// The same accesses, by kind.
fn ways(now: &DiskLatency, earlier: Option<&DiskLatency>) -> Option<String> {
    let before = earlier.and_then(|earlier| earlier.unheld.as_ref());
    let before = |way: &str| {
        let mut ways = before.into_iter().flat_map(|before| &before.ways);
        ways.find(|before| before.way == way)
            .map_or(0, |way| way.count)
    };
    let each = now.unheld.as_ref()?.ways.iter().filter_map(|way| {
        let count = way.count.saturating_sub(before(&way.way));
        (count > 0).then(|| format!("{count} {}", way.way))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!(" ({})", each.join(", ")))
}

/// The I/Os of a device that ended in an interval: all of them, or those of one operation.
struct Done {
    completed: u64,
    failed: u64,
    bytes: u64,
    latency: Histogram,
}

impl Done {
    fn of(latency: &DiskLatency, op: Option<&str>) -> anyhow::Result<Done> {
        let mut done = Done {
            completed: 0,
            failed: 0,
            bytes: 0,
            latency: Histogram::default(),
        };
        let is_meant = |each: &&OpLatency| op.is_none_or(|op| is_same(op, &each.op));
        for each in latency.ops.iter().filter(is_meant) {
            done.completed += each.completed;
            done.failed += each.failed;
            done.bytes += each.bytes;
            let latency = each.disk.histogram();
            done.latency
                .merge(&latency.context("the daemon's histogram")?);
        }
        Ok(done)
    }

    fn between(
        now: &DiskLatency,
        earlier: Option<&DiskLatency>,
        op: Option<&str>,
    ) -> anyhow::Result<Done> {
        let done = Done::of(now, op)?;
        Ok(match earlier {
            Some(earlier) => done.since(&Done::of(earlier, op)?),
            None => done,
        })
    }

    fn since(self, earlier: &Done) -> Done {
        Done {
            completed: self.completed.saturating_sub(earlier.completed),
            failed: self.failed.saturating_sub(earlier.failed),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            latency: self.latency.since(&earlier.latency),
        }
    }
}

/// Whether `asked`, the operation that an expression names, means `op`, an operation of the device. A flush
/// and a sync count as the same.
fn is_same(asked: &str, op: &str) -> bool {
    let set = |word| parse_ops(word).unwrap_or(OpSet::EMPTY);
    set(asked).means(set(op))
}

fn observe_device(
    now: &DiskLatency,
    earlier: Option<&DiskLatency>,
    op: Option<&str>,
    metric: DeviceMetric,
) -> anyhow::Result<Observed> {
    let done = Done::between(now, earlier, op)?;
    let began = earlier.map_or(now.since_ns, |earlier| earlier.at_ns);
    let seconds = now.at_ns.saturating_sub(began).max(1) as f64 / 1e9;
    let plain = |value: u64| Observed::Figure {
        value: value as f64,
        n: None,
    };
    let rate = |amount: u64| Observed::Figure {
        value: amount as f64 / seconds,
        n: Some(done.completed),
    };
    Ok(match metric {
        DeviceMetric::Count => plain(done.completed),
        DeviceMetric::InFlight => plain(u64::from(now.in_flight)),
        DeviceMetric::Unheld => match unheld(now, earlier) {
            Some(count) => plain(count),
            None => Observed::Nothing("only a path disk has it".to_owned()),
        },
        DeviceMetric::Interrupted => match now.interrupted {
            Some(count) => {
                plain(count.saturating_sub(earlier.and_then(|it| it.interrupted).unwrap_or(0)))
            }
            None => Observed::Nothing("only a path disk on Linux 5.19 or newer has it".to_owned()),
        },
        _ if done.completed == 0 => Observed::Nothing(format!("no {} seen", op.unwrap_or("I/O"))),
        DeviceMetric::Failed => plain(done.failed),
        DeviceMetric::Iops => rate(done.completed),
        DeviceMetric::BytesPerSecond => rate(done.bytes),
        DeviceMetric::Latency(figure) => observe_latency(&done.latency, figure),
    })
}

fn observe_latency(latency: &Histogram, figure: Figure) -> Observed {
    let value = match figure {
        Figure::Mean => latency.mean(),
        Figure::Max => latency.max(),
        Figure::Quantile(ppm) => latency.quantile(ppm),
    };
    match value {
        Some(ns) => Observed::Figure {
            value: ns as f64,
            n: Some(latency.count()),
        },
        None => Observed::Nothing("no I/O has ended".to_owned()),
    }
}

/// Observes a metric over all rules with this name.
fn observe_rules(
    name: &str,
    now: &[RuleLatency],
    earlier: &[RuleLatency],
    metric: RuleMetric,
) -> anyhow::Result<Observed> {
    let Some(first) = now.first() else {
        return Ok(Observed::Nothing(format!("no rule '{name}' was armed")));
    };
    let added = |counter: super::metric::Counter| -> u64 {
        let each = now.iter().map(|one| {
            let before = before(one, earlier).map_or(0, |one| counter(&one.rule.counters));
            counter(&one.rule.counters).saturating_sub(before)
        });
        each.sum()
    };
    let known_without_a_match = matches!(metric, RuleMetric::Counter(_, true));
    if !known_without_a_match && added(|all| all.matched) == 0 {
        let why = first.rule.why_nothing.clone();
        return Ok(Observed::Nothing(
            why.unwrap_or_else(|| "nothing matched".to_owned()),
        ));
    }
    Ok(match metric {
        RuleMetric::Counter(counter, _) => Observed::Figure {
            value: added(counter) as f64,
            n: None,
        },
        RuleMetric::Latency(span, figure) => {
            let mut latency = Histogram::default();
            for one in now {
                let mut of_one = histogram(one, span)?;
                if let Some(before) = before(one, earlier) {
                    of_one = of_one.since(&histogram(before, span)?);
                }
                latency.merge(&of_one);
            }
            observe_latency(&latency, figure)
        }
    })
}

/// The rule `one` in the earlier snapshot.
fn before<'a>(one: &RuleLatency, earlier: &'a [RuleLatency]) -> Option<&'a RuleLatency> {
    earlier.iter().find(|before| before.rule.id == one.rule.id)
}

fn histogram(one: &RuleLatency, span: Span) -> anyhow::Result<Histogram> {
    let sent = match span {
        Span::Requested => &one.holds.requested,
        Span::Achieved => &one.holds.achieved,
        Span::Lateness => &one.holds.lateness,
    };
    sent.histogram().context("the daemon's histogram")
}

impl Outcome {
    /// The expression, as the user typed it.
    pub(super) fn text(&self) -> &str {
        &self.check
    }

    /// The observed value in words, or why there is none.
    pub(super) fn observed(&self) -> &str {
        &self.observed
    }

    #[cfg(test)]
    pub(super) fn for_test(check: &str, holds: bool, observed: &str) -> Outcome {
        Outcome {
            check: check.to_owned(),
            holds,
            observed: observed.to_owned(),
            n: None,
            observed_ns: None,
            count: None,
            observed_per_s: None,
        }
    }

    fn of(expression: &Expression, observed: Observed) -> Outcome {
        let kind = expression.subject.kind();
        let mut outcome = Outcome {
            check: expression.text.clone(),
            holds: false,
            observed: String::new(),
            n: None,
            observed_ns: None,
            count: None,
            observed_per_s: None,
        };
        let (value, n) = match observed {
            Observed::Figure { value, n } => (value, n),
            Observed::Nothing(why) => {
                outcome.observed = why;
                return outcome;
            }
        };
        outcome.holds = expression.comparison.holds(value, expression.value);
        let of = n.map_or_else(String::new, |n| format!(" (n={n})"));
        outcome.observed = format!("{}{of}", kind.words(value));
        outcome.n = n;
        match kind {
            Kind::Time => outcome.observed_ns = Some(value as u64),
            Kind::Count => outcome.count = Some(value as u64),
            Kind::PerSecond | Kind::BytesPerSecond => outcome.observed_per_s = Some(value),
        }
        outcome
    }

    /// The lines of a report: `ok    wal.flush.p99 < 30ms    21.3ms (n=400)`. The column of checks
    /// is as wide as the longest check that fits.
    pub(crate) fn lines(room: Room, outcomes: &[Outcome]) -> String {
        let observed = outcomes
            .iter()
            .map(|outcome| outcome.observed.chars().count());
        let taken = BESIDE_CHECK + observed.max().unwrap_or_default().min(OBSERVED_MOST);
        let checks = outcomes.iter().map(|outcome| outcome.check.as_str());
        let width = room.widest_name(taken, checks);
        let line = |outcome: &Outcome| {
            let verdict = if outcome.holds { "ok" } else { "FAIL" };
            let check = room.name_beside(taken, &outcome.check);
            let line = format!("{verdict:<5} {check:<width$}  {}", outcome.observed);
            prose_within(room, &line)
        };
        outcomes.iter().map(line).collect()
    }
}

/// The width of the verdict and of the gaps between columns.
const BESIDE_CHECK: usize = 8;
/// A line reserves room for its observation, up to this many columns. A wider observation, such as a sentence, is
/// broken into lines.
const OBSERVED_MOST: usize = 30;

impl Kind {
    fn words(self, value: f64) -> String {
        match self {
            Kind::Time => short_time(value as u64),
            Kind::Count => format!("{value}"),
            Kind::PerSecond => format!("{value:.1}"),
            Kind::BytesPerSecond => format!("{}/s", nice_number(value as u64)),
        }
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
