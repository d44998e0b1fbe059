//! Tests what checks observe between two snapshots, and the checks that have nothing to observe.

use std::collections::HashMap;

use dashpot_api::LatencyHistogram;
use dashpot_engine::histogram::Histogram;
use serde_json::{Value, from_value, json};

use super::super::{Expression, Names};
use super::{Outcome, Snapshot};

/// A rule that has just been armed, as the daemon sends it.
const RULE: &str = include_str!("../../../text/src/fixtures/rule.json");

fn histogram(ns: &[u64]) -> Value {
    let mut histogram = Histogram::default();
    ns.iter().for_each(|ns| histogram.record(*ns));
    serde_json::to_value(LatencyHistogram::of(&histogram)).unwrap()
}

/// A disk that has finished these flushes `at_s` seconds after its start.
fn disk(at_s: u64, flushes: &[u64]) -> Value {
    let none = histogram(&[]);
    json!({
        "disk": "wal", "layout": "v1", "since_ns": 0, "at_ns": at_s * 1_000_000_000,
        "busy_ns": 0, "depth_time_ns": "0", "depth_times": [], "suspended_ns": 0,
        "shard_stopped_ns": 0, "in_flight": 3, "oldest": null, "dropped": 0,
        "ops": [{
            "by": null, "op": "flush", "completed": flushes.len(), "failed": 1,
            "bytes": 4096 * flushes.len(), "total": none, "disk": histogram(flushes),
            "lateness": none, "store": null,
        }],
    })
}

/// A rule whose held zios were late by these times.
fn rule(id: u32, late: &[u64]) -> Value {
    let mut rule: Value = serde_json::from_str(RULE).unwrap();
    (rule["id"], rule["matched"], rule["held"]) = (id.into(), late.len().into(), late.len().into());
    if late.is_empty() {
        rule["why_nothing"] = "nothing matched yet: -T read".into();
    }
    let none = histogram(&[]);
    json!({
        "rule": rule, "layout": "v1", "requested": none, "achieved": none, "stopped": none,
        "lateness": histogram(late),
    })
}

fn snapshot(disk: Value, rules: Vec<Value>) -> Snapshot {
    Snapshot {
        started_ns: 0,
        devices: HashMap::from([("wal".to_owned(), from_value(disk).unwrap())]),
        rules: HashMap::from([("slow".to_owned(), from_value(rules.into()).unwrap())]),
    }
}

fn outcome(now: &Snapshot, earlier: Option<&Snapshot>, text: &str) -> Outcome {
    let names = Names {
        devices: vec!["wal".to_owned()],
        ops: vec!["flush".to_owned(), "read".to_owned()],
        rules: vec!["slow".to_owned()],
        rules_may_come: true,
    };
    now.judge(&Expression::parse(text, &names).unwrap(), earlier)
        .unwrap()
}

#[track_caller]
fn check(now: &Snapshot, earlier: Option<&Snapshot>, text: &str, holds: bool, observed: &str) {
    let outcome = outcome(now, earlier, text);
    assert_eq!(
        (outcome.holds, outcome.observed.as_str()),
        (holds, observed)
    );
}

#[test]
fn a_latency_that_a_stop_is_not_in_says_so() {
    let mut later = disk(4, &[20_000_000]);
    later["shard_stopped_ns"] = 5_503_000_000_u64.into();
    let mut before = disk(2, &[]);
    before["shard_stopped_ns"] = 5_000_000_000_u64.into();
    let (earlier, now) = (snapshot(before, vec![]), snapshot(later, vec![]));
    let said = "20.0ms (n=1); the host stopped dashpot for 503ms, and no latency shows that wait";
    check(&now, Some(&earlier), "wal.flush.max < 30ms", true, said);
    check(&now, Some(&earlier), "wal.count == 1", true, "1");
    check(&now, Some(&now), "wal.count == 0", true, "0");
}

#[test]
fn what_was_done_since_the_start_or_since_a_look() {
    let earlier = snapshot(disk(2, &[50_000_000]), vec![rule(1, &[900_000])]);
    let now = snapshot(
        disk(4, &[50_000_000, 20_000_000, 20_000_000]),
        vec![rule(1, &[900_000, 5_000, 5_000])],
    );
    check(&now, None, "wal.max < 30ms", false, "50.0ms (n=3)");
    check(
        &now,
        Some(&earlier),
        "wal.flush.p50 < 30ms",
        true,
        "20.0ms (n=2)",
    );
    check(&now, None, "wal.iops >= 0.75", true, "0.8 (n=3)");
    check(
        &now,
        Some(&earlier),
        "wal.flush.iops == 1",
        true,
        "1.0 (n=2)",
    );
    check(
        &now,
        Some(&earlier),
        "wal.bytes_per_s >= 4K",
        true,
        "4K/s (n=2)",
    );
    check(&now, Some(&earlier), "wal.count == 2", true, "2");
    check(&now, Some(&earlier), "wal.failed == 0", true, "0");
    check(&now, None, "wal.in_flight < 3", false, "3");
    check(&now, Some(&earlier), "slow.held == 2", true, "2");
    check(&now, None, "slow.held != 3", false, "3");
    check(
        &now,
        Some(&earlier),
        "slow.lateness.max < 6us",
        true,
        "5.05us (n=2)",
    );
}

#[test]
fn rules_of_a_name_count_together_and_new_ones_count_whole() {
    let earlier = snapshot(disk(1, &[]), vec![rule(1, &[1_000])]);
    let now = snapshot(
        disk(2, &[]),
        vec![rule(1, &[1_000]), rule(2, &[1_000, 1_000])],
    );
    check(&now, Some(&earlier), "slow.held == 2", true, "2");
    check(&now, None, "slow.held == 3", true, "3");
}

#[test]
fn no_data_holds_nothing() {
    let now = snapshot(disk(2, &[]), vec![rule(1, &[])]);
    check(&now, None, "wal.flush.p99 < 30ms", false, "no flush seen");
    check(&now, None, "wal.failed == 0", false, "no I/O seen");
    check(&now, None, "wal.iops < 9", false, "no I/O seen");
    check(&now, None, "wal.count == 0", true, "0");
    check(
        &now,
        None,
        "slow.late == 0",
        false,
        "nothing matched yet: -T read",
    );
    check(&now, None, "slow.matched == 0", true, "0");
    check(
        &now,
        None,
        "rule(later).held == 0",
        false,
        "no rule 'later' was armed",
    );
    let json = serde_json::to_value(outcome(&now, None, "wal.p99 < 1s")).unwrap();
    assert_eq!(
        (&json["holds"], &json["observed_ns"]),
        (&json!(false), &Value::Null)
    );
}

#[test]
fn looks_at_two_daemons_are_not_compared() {
    let earlier = snapshot(disk(2, &[50_000_000]), vec![rule(1, &[])]);
    let now = Snapshot {
        started_ns: 7,
        ..snapshot(disk(4, &[50_000_000, 20_000_000]), vec![rule(1, &[])])
    };
    let names = Names {
        devices: vec!["wal".to_owned()],
        ops: vec!["flush".to_owned()],
        rules: Vec::new(),
        rules_may_come: false,
    };
    let check = Expression::parse("wal.failed == 1", &names).unwrap();
    assert!(now.judge(&check, None).unwrap().holds);
    let refused = now.judge(&check, Some(&earlier)).unwrap_err();
    assert!(refused.to_string().contains("started again"), "{refused}");
}
