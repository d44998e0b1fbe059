//! Tests the verdicts on rules, and the reasons that the verdicts give.

use expect_test::expect;
use serde_json::{Value, json};

use super::super::Verdict;
use super::{Case, check, check_text};

/// A delay of 20 ms may be late by 1 ms at the median and by 40 ms at p99. A delay of 1 ms may be late by
/// 500 us.
#[test]
fn the_tolerance_is_the_larger_of_a_share_and_a_time() {
    let late = |service, most, tail| {
        let most = Case::new().hold(490, service, most);
        most.hold(10, service, tail)
    };
    check(
        &late(20_000_000, 990_000, 990_000),
        Verdict::Kept,
        "at most 1.00ms",
    );
    check(
        &late(20_000_000, 1_020_000, 1_020_000),
        Verdict::NotKept,
        "at most 1.00ms",
    );
    check(
        &late(20_000_000, 9_000, 39_000_000),
        Verdict::Kept,
        "at most 40.0ms",
    );
    check(
        &late(20_000_000, 9_000, 41_000_000),
        Verdict::NotKept,
        "+41",
    );
    check(
        &late(1_000_000, 480_000, 480_000),
        Verdict::Kept,
        "at most 500us",
    );
    check(
        &late(1_000_000, 520_000, 520_000),
        Verdict::NotKept,
        "at most 500us",
    );
    check(
        &late(400_000_000, 9_000, 79_000_000),
        Verdict::Kept,
        "at most 80.0ms",
    );
}

#[test]
fn a_delay_that_is_a_quarter_off_is_not_kept() {
    for service in [20_000_000, 50_000_000] {
        for n in [100, 400, 1_000] {
            let more = Case::new().hold(n, service, service / 4);
            check(&more, Verdict::NotKept, "+25");
            let stopped = more.stop(n / 10, service, 60_000_000);
            check(&stopped, Verdict::NotKept, "at p50");
        }
    }
}

#[test]
fn a_distribution_is_judged_by_its_quantiles() {
    let off_by = |percent: u64| {
        let mut case = Case::new();
        for n in 0..400 {
            let service = 10_000_000 + n * 50_000;
            case = case.hold(1, service, service * percent / 100);
        }
        case
    };
    check(&off_by(0), Verdict::Kept, "off by");
    check(&off_by(2), Verdict::Kept, "off by");
    check(&off_by(25), Verdict::NotKept, "off by");
}

#[test]
fn what_the_hosts_stops_explain_is_neither_kept_nor_broken() {
    let calm = || Case::new().hold(360, 20_000_000, 30_000);
    let stopped = calm().stop(40, 20_000_000, 55_000_000);
    let proof = check(&stopped, Verdict::CannotTell, "40 of 400 (10.0 %) were due");
    assert!(
        proof.why.ends_with("late by 30.2us at p50, 30.2us at p99"),
        "{}",
        proof.why
    );
    assert_eq!(proof.stopped, 40);
    let all = Case::new().stop(400, 20_000_000, 55_000_000);
    check(&all, Verdict::CannotTell, "the others are too few");
    let others = calm().hold(40, 20_000_000, 55_000_000);
    check(&others, Verdict::NotKept, "+55");
    let few = calm()
        .hold(40, 20_000_000, 55_000_000)
        .stop(4, 20_000_000, 60_000_000);
    check(&few, Verdict::NotKept, "at p99");
    let within = calm().stop(2, 20_000_000, 55_000_000);
    check(&within, Verdict::Kept, "n=362");
}

#[test]
fn few_are_not_judged() {
    let few = Case::new().hold(29, 10_000_000, 5_000);
    check(
        &few,
        Verdict::Unproven,
        "29 were held, and at least 30 are judged",
    );
    check(
        &Case::new().hold(30, 10_000_000, 5_000),
        Verdict::Kept,
        "p99 has too few I/Os",
    );
    let first = Case::new().hold(3, 10_000_000, 5_000).says("first", 3);
    check(&first, Verdict::Kept, "n=3");
}

#[test]
fn what_is_in_the_way_is_named() {
    let late = || {
        Case::new()
            .hold(200, 10_000_000, 1_200_000)
            .says("late", 200)
    };
    let warns = |case: &Case, what: &str| {
        let proof = check(case, Verdict::NotKept, "+1.20ms at p50 (+12.0 %");
        let warnings = proof.warnings.join("\n");
        assert!(warnings.contains(what), "{warnings}");
    };
    warns(&late(), "dashpot doctor");
    let mut stolen = late();
    stolen.host.steal_percent = Some(18.04);
    warns(&stolen, "the hypervisor took 18.0 % of the CPU time");
    let mut stopped = late();
    stopped.host.quota_millicpus = Some(200);
    (stopped.host.quota_periods, stopped.host.throttled_periods) = (90, 14);
    warns(
        &stopped,
        "the CPU quota of 0.20 CPUs: stopped in 14 of 90 periods",
    );
    let mut overloaded = late();
    overloaded.rule["shard_load"]["overloaded_seconds"] = 12.into();
    warns(&overloaded, "overloaded for 12 s since the rule was armed");
    let mut before = late();
    before.shard["load"]["overloaded_seconds"] = 12.into();
    warns(&before, "no known cause explains it");
    let mut crowded = late();
    crowded.shard["loop_gap"]["p99_ns"] = 6_790_000.into();
    warns(&crowded, "shard 0 was away for 6.79ms");
    warns(&late().says("stalls", 4), "stalled 4 times");
}

#[test]
fn a_rule_that_was_kept_warns_of_what_is_late() {
    let kept = Case::new()
        .hold(97, 10_000_000, 5_000)
        .hold(3, 10_000_000, 5_000_000);
    let mut kept = kept.says("late", 3);
    kept.host.steal_percent = Some(9.9);
    let proof = check(&kept, Verdict::Kept, "+5.0");
    let warnings = proof.warnings.join("\n");
    assert!(
        warnings.starts_with("3 of 100 (3.0 %) were late"),
        "{warnings}"
    );
    assert!(
        warnings.contains("took 9.9 % of the CPU time"),
        "{warnings}"
    );

    let mut stopped = Case::new().hold(100, 10_000_000, 5_000);
    stopped.host.steal_percent = Some(9.9);
    assert_eq!(stopped.proof().warnings, [""; 0], "steal alone is not news");
    stopped.host.throttled_periods = 1;
    assert_eq!(stopped.proof().warnings.len(), 1);
}

#[test]
fn a_rule_that_another_beats_is_not_kept_unless_they_share_lanes() {
    let beaten = |beaten: u64| {
        let case = Case::new().hold(100, 10_000_000, 5_000);
        let case = case.says("injected", 100).says("beaten", beaten);
        case.says("beaten_by", 2)
    };
    check(&beaten(10), Verdict::Kept, "");
    let proof = check(
        &beaten(12),
        Verdict::NotKept,
        "12 of 112 (10.7 %) were decided by rule 2",
    );
    assert!(!proof.as_asked);
    let mut shared = beaten(12);
    shared.beaten_within_group = true;
    check(&shared, Verdict::Kept, "");
}

#[test]
fn a_store_that_is_slower_than_the_rule_breaks_it() {
    let some = Case::new().hold(980, 10_000_000, 5_000);
    let few = Case::new().hold(995, 10_000_000, 5_000).says("overrun", 5);
    check(
        &some.says("overrun", 20),
        Verdict::NotKept,
        "20 of 1000 (2.0 %) were not delayed",
    );
    check(&few, Verdict::Kept, "");
    let all = Case::new().says("matched", 7).says("overrun", 7);
    check(
        &all.says("why_nothing", "the store …"),
        Verdict::NotKept,
        "--mode add",
    );
}

#[test]
fn without_holds_there_is_nothing_to_judge() {
    let mut unmatched = Case::new().says("why_nothing", "nothing matched yet: -T read");
    unmatched.disk["ops"] = json!([
        {"op": "read", "completed": 0, "failed": 0, "bytes": 0},
        {"op": "write", "completed": 12, "failed": 0, "bytes": 0},
    ]);
    check_text(
        &unmatched,
        expect![[r#"
            rule 1 (slow) on d: -D 10ms
            armed 12.3s ago: matched 0, injected 0, held 0, late 0, overrun 0, aborted 0,
              now 0
            unproven: nothing matched yet: -T read (asked of d since the start: write 12)
        "#]],
    );
    let beaten = Case::new()
        .says("matched", 5)
        .says("why_nothing", "beaten by rule 2");
    check(
        &beaten.says("beaten", 5),
        Verdict::NotKept,
        "matched 5, injected nothing: beaten by rule 2",
    );
    let held = Case::new().says("matched", 2).says("now", 2);
    check(
        &held,
        Verdict::Unproven,
        "nothing has ended yet, 2 held now",
    );
    let gone = Case::new().says("matched", 3).says("aborted", 3);
    check(&gone, Verdict::Unproven, "the clients of 3 were gone");
    let released = Case::new().says("matched", 2).says("held", 2);
    check(&released, Verdict::Unproven, "released");
}

#[test]
fn errors_and_hangs_need_no_clock() {
    let error = Case::new()
        .says("effect", "error")
        .says("errno", "EIO")
        .says("matched", 4)
        .says("failed", 4);
    let at_once = error.says("delay_ns", Value::Null);
    check(&at_once, Verdict::Kept, "4 failed with EIO");
    let hang = Case::new()
        .says("effect", "hang")
        .says("matched", 3)
        .says("injected", 3)
        .says("aborted", 2)
        .says("now", 1);
    check(&hang, Verdict::Kept, "3 hung, 1 of them now");
}

#[test]
fn percentiles_of_few_zios_are_none() {
    let proof = serde_json::to_value(Case::new().hold(1, 10_000_000, 5_000).proof()).unwrap();
    assert_eq!(proof["requested"]["p50_ns"], Value::Null);
    assert_eq!(proof["lateness"]["max_ns"], 5_000);
    let proof = serde_json::to_value(Case::new().hold(99, 10_000_000, 5_000).proof()).unwrap();
    assert_eq!(proof["achieved"]["p50_ns"], 10_005_000);
    assert_eq!(proof["error"]["p50_ns"], 5_000);
    assert_eq!(proof["achieved"]["p99_ns"], Value::Null);
    assert_eq!(proof["verdict"], "kept");
}

/// The verdict must be about the rule as it is now, and must ignore its effect before the update.
#[test]
fn a_rule_that_was_updated_is_judged_by_what_it_met_since() {
    let since = Case::new().hold(100, 10_000_000, 5_000);
    let judged: Value = since.rule.clone();
    // Of the 200 zios that matched before the update, the store was too slow for 100, and five are still
    // held.
    let case = since
        .says("since_update", judged)
        .says("matched", 300)
        .says("held", 195)
        .says("overrun", 100)
        .says("now", 5);
    let proof = case.proof();
    assert_eq!(proof.verdict, Verdict::Kept);
    let text = proof.to_string();
    for said in [
        "updated 12.3s ago: matched 100, ",
        "before the update: matched 200, held 95, 5 held now: not counted here",
        "held 100 of 100 that matched",
    ] {
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn what_went_round_the_rules_is_told_beside_a_rule_that_was_kept() {
    let mut case = Case::new().hold(100, 10_000_000, 0);
    let way = json!({"way": "mapping", "count": 2, "said": "2 mappings", "remedy": "use calls"});
    case.disk["unheld"] = json!({"count": 2, "ways": [way]});
    case.disk["interrupted"] = json!(1);
    let proof = case.proof();
    assert_eq!(proof.verdict, Verdict::Kept);
    assert!(proof.warnings.contains(&"2 mappings: use calls".to_owned()));
    let signalled = |warning: &String| warning.starts_with("1 call was interrupted by a signal");
    assert!(proof.warnings.iter().any(signalled));
}
