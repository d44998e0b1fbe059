//! Rules and their latencies, from a snapshot.

use dashpot_api::{
    Depth, HoldLatency, LatencyHistogram, Load, Rule, RuleCounters, RuleFields, RuleLatency,
    RuleState, Summary,
};
use dashpot_engine::histogram::{Histogram, LAYOUT};
use dashpot_engine::inject::When;
use dashpot_engine::{Duration, Holds, Instant, RuleStats};
use dashpot_export::{DiskSnapshot, RuleSnapshot, Work};

use super::shard::load;
use super::why::why_nothing;
use crate::Record;

/// A rule of the disk called `disk`; `None` if the rule is not armed in the disk's snapshot.
pub(crate) fn rule(record: &Record, disk: &str, snapshot: &DiskSnapshot) -> Option<Rule> {
    let rule = snapshot.rules.iter().find(|rule| rule.id == record.id)?;
    Some(Rule {
        stalled: snapshot.stalled,
        stalls: rule.stalls,
        shard_load: Load {
            overloaded_seconds: rule.overloaded_seconds,
            ..load(snapshot.work)
        },
        ..seen_rule(record, disk, rule, snapshot.at)
    })
}

/// The state of a rule at a moment. The figures about its disk are left at zero.
pub fn seen_rule(record: &Record, disk: &str, rule: &RuleSnapshot, at: Instant) -> Rule {
    let age = at.since(rule.armed);
    let since = rule.since_update.as_deref();
    let state = if record.is_gone {
        RuleState::Cleared
    } else {
        state_at(rule, age)
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
        counted: rule.counted.0,
        counting_ns: at.since(rule.counted.1).as_nanos(),
        lapses_in_ns: lapses_in(record, at),
        counters: counters(&rule.stats, rule.now, rule.backlog),
        since_update: since.map(|since| counters(&since.stats, since.now, rule.backlog)),
        why_nothing: why_nothing(rule, state),
        stalled: 0,
        stalls: 0,
        depth: Depth::of(rule.depth),
        shard_load: load(Work::default()),
    }
}

/// How long the rule's lease still lasts.
fn lapses_in(record: &Record, at: Instant) -> Option<u64> {
    let term = record.term.filter(|_| !record.is_gone)?;
    Some(term.lapses.since(at).as_nanos())
}

fn state_at(rule: &RuleSnapshot, age: Duration) -> RuleState {
    let When { after, lasts, .. } = rule.spec.when;
    if age < after {
        return RuleState::Waiting;
    }
    match lasts {
        Some(lasts) if age >= after + lasts => RuleState::Ended,
        _ if rule.rests => RuleState::Resting,
        _ => RuleState::Active,
    }
}

fn counters(stats: &RuleStats, now: u64, backlog: Duration) -> RuleCounters {
    RuleCounters {
        matched: stats.matched,
        taken: stats.chosen,
        injected: stats.ended() + now,
        held: stats.held,
        overrun: stats.overrun,
        failed: stats.failed,
        damaged: stats.damaged,
        spared: stats.spared,
        late: stats.late,
        not_drawn: stats.not_drawn,
        not_counted: stats.not_counted,
        beaten: stats.beaten,
        beaten_by: stats.beaten_by.map(|rule| rule.0),
        preempted: stats.preempted,
        preempted_by: stats.preempted_by.map(|rule| rule.0),
        aborted: stats.aborted,
        now,
        backlog_ns: backlog.as_nanos(),
        requested: Summary::of(stats.holds.requested().as_ref()),
        achieved: achieved(&stats.holds),
        lateness: Summary::of(stats.holds.lateness()),
        stopped: Summary::of(stats.holds.stopped()),
    }
}

/// The achieved times. If all requested service times were equal, each percentile is the sum of that time and
/// the same percentile of lateness, because the buckets of lateness are finer.
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

/// The latencies of a rule of the disk called `disk`; `None` if the rule is not armed in the disk's snapshot.
pub(crate) fn rule_latency(
    record: &Record,
    disk: &str,
    snapshot: &DiskSnapshot,
) -> Option<RuleLatency> {
    let armed = snapshot.rules.iter().find(|rule| rule.id == record.id)?;
    let since = armed.since_update.as_ref();
    Some(RuleLatency {
        rule: rule(record, disk, snapshot)?,
        layout: LAYOUT.to_owned(),
        holds: hold_latency(&armed.stats.holds),
        since_update: since.map(|since| hold_latency(&since.stats.holds)),
    })
}

fn hold_latency(holds: &Holds) -> HoldLatency {
    HoldLatency {
        requested: sent(holds.requested().as_ref()),
        achieved: sent(holds.achieved().as_ref()),
        lateness: sent(holds.lateness()),
        stopped: sent(holds.stopped()),
    }
}

fn sent(histogram: Option<&Histogram>) -> LatencyHistogram {
    histogram.map(LatencyHistogram::of).unwrap_or_default()
}
