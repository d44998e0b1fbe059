//! Rules that were kept and rules that were not, and what is said of each.

use dashpot_api::{ClientMemory, Disk, Host, Rule, Shard};
use dashpot_engine::histogram::Histogram;
use expect_test::{Expect, expect};
use serde_json::{Value, from_str, from_value, json};

use super::{Facts, Proof, Tolerance, Verdict};

/// A rule of which nothing was asked yet, as the daemon says it.
const RULE: &str = include_str!("../fixtures/rule.json");

/// A shard that the host has never stopped.
fn stops() -> Value {
    let none = json!({"count": 0, "total_ns": 0, "longest_ns": 0});
    json!({"all": none, "recent": none, "last_age_ns": null})
}

/// A rule and what surrounds it, to be changed by each test.
struct Case {
    rule: Value,
    disk: Value,
    shard: Value,
    host: Host,
    outside_ns: u64,
    outlasting_ns: Option<u64>,
    oversleep_ns: Option<u64>,
    requested: Histogram,
    achieved: Histogram,
    lateness: Histogram,
    stopped: Histogram,
    beaten_within_group: bool,
}

impl Case {
    /// `-D 10ms` on a disk at depth 1, on a host where nothing is in the way.
    fn new() -> Case {
        Case {
            rule: from_str(RULE).unwrap(),
            disk: json!({
                "name": "d", "uris": [], "store": "ram", "size_bytes": 1, "block_bytes": 1,
                "read_only": false, "shard": 0, "at_ns": 0, "rules": 1, "suspended": null, "off": false,
                "faulted": null, "failed": null, "clients": [], "stalled": 0, "stalls": 0,
                "loop_gap": {"count": 0}, "shard_stops": stops(),
                "shard_load": {"busy_percent": 3, "overloaded": false, "overloaded_seconds": 0},
                "shard_memory": ClientMemory::default(), "rule_lateness": {"count": 0},
                "in_flight": 0, "oldest": [], "ops": [], "aborted": 0, "busy_ns": 1_000,
                "depth_time_ns": "1000",
            }),
            shard: json!({
                "shard": 0, "disks": ["d"], "spins": true,
                "load": {"busy_percent": 3, "overloaded": false, "overloaded_seconds": 0},
                "loop_gap": {"count": 0}, "stops": stops(), "probe": {"n": 0},
                "memory": ClientMemory::default(),
            }),
            host: Host {
                cpus: 2,
                quota_millicpus: None,
                quota_periods: 0,
                throttled_periods: 0,
                throttled_ns: 0,
                steal_percent: Some(0.2),
            },
            outside_ns: 0,
            outlasting_ns: None,
            oversleep_ns: None,
            requested: Histogram::default(),
            achieved: Histogram::default(),
            lateness: Histogram::default(),
            stopped: Histogram::default(),
            beaten_within_group: false,
        }
    }

    /// Zios that asked for `service` and ended `late` by so much.
    fn hold(mut self, zios: u64, service_ns: u64, late_ns: u64) -> Case {
        for _ in 0..zios {
            self.requested.record(service_ns);
            self.achieved.record(service_ns + late_ns);
            self.lateness.record(late_ns);
        }
        let held = self.lateness.count();
        self.says("matched", held).says("held", held)
    }

    /// As [`Case::hold`], while the host kept the shard from running.
    fn stop(mut self, zios: u64, service_ns: u64, late_ns: u64) -> Case {
        (0..zios).for_each(|_| self.stopped.record(late_ns));
        self.hold(zios, service_ns, late_ns)
    }

    fn says(mut self, field: &str, value: impl Into<Value>) -> Case {
        self.rule[field] = value.into();
        self
    }

    fn proof(&self) -> Proof {
        let rule: Rule = from_value(self.rule.clone()).unwrap();
        let disk: Disk = from_value(self.disk.clone()).unwrap();
        let shard: Shard = from_value(self.shard.clone()).unwrap();
        let proof = Proof::of(&Facts {
            rule: &rule,
            requested: &self.requested,
            achieved: &self.achieved,
            lateness: &self.lateness,
            stopped: &self.stopped,
            beaten_within_group: self.beaten_within_group,
            tolerance: Tolerance::default(),
            disk: &disk,
            outside_ns: self.outside_ns,
            outlasting_ns: self.outlasting_ns,
            shard: Some(&shard),
            host: &self.host,
            oversleep_ns: self.oversleep_ns,
        });
        let text = proof.to_string();
        let wide = text
            .lines()
            .find(|line| line.chars().count() > super::WIDTH);
        assert_eq!(wide, None);
        proof
    }
}

#[track_caller]
fn check(case: &Case, verdict: Verdict, why: &str) -> Proof {
    let proof = case.proof();
    assert_eq!(proof.verdict, verdict, "{}", proof.why);
    assert!(proof.why.contains(why), "{}", proof.why);
    proof
}

fn check_text(case: &Case, expected: Expect) {
    expected.assert_eq(&case.proof().to_string());
}

#[test]
fn a_constant_is_shown_beside_its_lateness() {
    let case = Case::new()
        .hold(60, 10_000_000, 9_000)
        .hold(38, 10_000_000, 12_400);
    let case = case
        .hold(2, 10_000_000, 700_000)
        .says("late", 2)
        .says("now", 3);
    check_text(
        &case,
        expect![[r#"
            rule 1 (slow) on d: -D 10ms
            armed 12.3s ago: matched 100, injected 0, held 100, late 2, overrun 0, aborted
              0, now 3

                              n        mean         p50         p90         p99         max
            requested       100    10.000ms    10.000ms    10.000ms    10.000ms    10.000ms
            achieved        100    10.024ms    10.009ms    10.012ms    10.698ms    10.700ms
            error                   +24.1us     +9.00us     +12.4us      +698us
            of delay                 +0.2 %      +0.1 %      +0.1 %      +7.0 %
            at most                              +500us                 +40.0ms
            lateness        100      24.1us      9.00us      12.4us       698us       700us

            from                                 requested                         achieved
            10ms                100 |####################|         0 |                    |
              + 8us               0 |                    |        98 |####################|
              + 16us              0 |                    |         0 |                    |
              + 32us              0 |                    |         0 |                    |
              + 64us              0 |                    |         0 |                    |
              + 128us             0 |                    |         0 |                    |
              + 256us             0 |                    |         0 |                    |
              + 512us             0 |                    |         2 |#                   |

            kept: off by +9.00us at p50 (+0.1 %, at most 500us), +698us at p99 (+7.0 %, at
              most 40.0ms), n=100
            injected as asked: yes, held 100 of 100 that matched
            dashpot's promise of 30.5us at p50: kept (it decides nothing)
            clients: 0ns on average to send a request and take its reply
            warning: 2 of 100 (2.0 %) were late by more than 1 ms or 5 % of the delay
            warning: nothing known explains it, 'dashpot doctor' examines this host
        "#]],
    );
}

#[test]
fn a_distribution_is_shown_in_rows_of_its_own() {
    let spread = (0..500).fold(Case::new(), |case, n| {
        case.hold(1, 1_000_000 + n * 20_000, 10_000)
    });
    check_text(
        &spread.says("rule", "-D uniform=1ms..11ms"),
        expect![[r#"
            rule 1 (slow) on d: -D uniform=1ms..11ms
            armed 12.3s ago: matched 500, injected 0, held 500, late 0, overrun 0, aborted
              0, now 0

                              n        mean         p50         p90         p99         max
            requested       500     5.990ms     5.960ms    10.023ms    10.930ms    10.980ms
            achieved        500     6.000ms     5.960ms    10.023ms    10.930ms    10.990ms
            error                   +10.0us        +0ns        +0ns        +0ns
            of delay                 +0.2 %      +0.0 %      +0.0 %      +0.0 %
            at most                              +500us                 +40.0ms
            lateness        500      10.0us      10.0us      10.0us      10.0us      10.0us

            from                                 requested                         achieved
            1.00ms               11 |###                 |        11 |###                 |
            1.21ms               13 |###                 |        13 |###                 |
            1.47ms               16 |####                |        16 |####                |
            1.79ms               19 |#####               |        19 |#####               |
            2.18ms               24 |######              |        23 |#####               |
            2.65ms               28 |#######             |        29 |#######             |
            3.21ms               35 |########            |        34 |########            |
            3.91ms               42 |##########          |        42 |##########          |
            4.75ms               51 |############        |        51 |############        |
            5.77ms               62 |##############      |        63 |##############      |
            7.01ms               75 |#################   |        75 |#################   |
            8.52ms               92 |####################|        92 |####################|
            10.4ms               32 |#######             |        32 |#######             |

            kept: off by +0ns at p50 (+0.0 %, at most 500us), +0ns at p99 (+0.0 %, at most
              40.0ms), n=500
            injected as asked: yes, held 500 of 500 that matched
            dashpot's promise of 30.5us at p50: kept (it decides nothing)
            clients: 0ns on average to send a request and take its reply
        "#]],
    );
}

#[test]
fn rows_lose_nothing() {
    for (first, step) in [(0, 1), (1_000, 1), (7_000_000, 1_000), (1, 1_000_000_000)] {
        let zios = (0..300).fold(Case::new(), |case, n| {
            case.hold(1, first + n * step, n * 977)
        });
        let proof = zios.proof();
        let sum = |of: fn(&super::Row) -> u64| proof.rows.iter().map(of).sum::<u64>();
        assert_eq!(
            (sum(|row| row.requested), sum(|row| row.achieved)),
            (300, 300)
        );
        let gap = proof
            .rows
            .windows(2)
            .find(|two| two[0].to_ns + 1 != two[1].from_ns);
        assert_eq!(gap, None);
        assert!((2..=40).contains(&proof.rows.len()), "{}", proof.rows.len());
    }
}

#[test]
fn the_promise_grows_with_the_burst_and_decides_nothing() {
    let at_depth = |depth: u64| {
        let mut case = Case::new().hold(99, 10_000_000, 50_000);
        case.disk["depth_time_ns"] = (depth * 1_000).to_string().into();
        case
    };
    let promise = |case: &Case| {
        let proof = check(case, Verdict::Kept, "off by +50.0us at p50 (+0.5 %");
        (proof.promise.lateness_ns, proof.promise.kept)
    };
    assert_eq!(promise(&at_depth(1)), (30_500, Some(false)));
    assert_eq!(promise(&at_depth(64)), (62_000, Some(true)));
    assert_eq!(
        promise(&at_depth(64).says("lanes", 1)),
        (30_500, Some(false))
    );
    let mut asleep = at_depth(1);
    asleep.oversleep_ns = Some(60_000);
    assert_eq!(promise(&asleep), (72_500, Some(true)));
}

/// A delay of 20 ms may be 1 ms off at the median and 40 ms at p99; one of 1 ms, 500 us.
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
        "p99 is of too few",
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
    warns(&before, "nothing known explains it");
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
    assert_eq!(stopped.proof().warnings, [""; 0], "steal alone is no news");
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
        .says("matched", 4);
    check(&error.says("failed", 4), Verdict::Kept, "4 failed with EIO");
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

/// Figures of two delays are not told as those of one.
#[test]
fn a_rule_that_was_updated_says_that_its_figures_are_older() {
    let proof = Case::new()
        .hold(100, 10_000_000, 5_000)
        .says("updated", true);
    let text = proof.proof().to_string();
    assert!(text.contains("updated 12.3s ago"), "{text}");
    assert!(text.contains("warning: the rule was updated"), "{text}");
}
