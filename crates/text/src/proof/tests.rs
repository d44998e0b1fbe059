//! Proofs of rules that were kept and of rules that were not, with their texts.

mod verdicts;

use dashpot_api::{ClientMemory, Depth, Disk, Host, Rule, Shard};
use dashpot_engine::histogram::Histogram;
use expect_test::{Expect, expect};
use serde_json::{Value, from_str, from_value, json};

use super::{Facts, Proof, Tolerance, Verdict};

/// A rule that has just been armed, as the daemon sends it.
const RULE: &str = include_str!("../fixtures/rule.json");

/// The API's `stops` of a shard that the host has never stopped.
fn stops() -> Value {
    let none = json!({"count": 0, "total_ns": 0, "longest_ns": 0});
    json!({"all": none, "recent": none, "last_age_ns": null})
}

/// A rule and its surroundings. Each test changes parts of a case.
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
    /// `-D 10ms` on a disk at depth 1, on a host on which nothing disturbs the rule.
    fn new() -> Case {
        Case {
            rule: from_str(RULE).unwrap(),
            disk: json!({
                "name": "d", "uris": [], "store": "ram", "size_bytes": 1, "block_bytes": 1,
                "read_only": false, "shard": 0, "at_ns": 0, "rules": 1, "suspended": null, "off": false,
                "faulted": null, "failed": null, "clients": [],
                "attachments": [], "stalled": 0, "stalls": 0,
                "loop_gap": {"count": 0}, "shard_stops": stops(),
                "shard_load": {"busy_percent": 3, "overloaded": false, "overloaded_seconds": 0},
                "shard_memory": ClientMemory::default(), "rule_lateness": {"count": 0},
                "in_flight": 0, "oldest": [], "ops": [], "aborted": 0, "busy_ns": 1_000,
                "depth_time_ns": "1000", "depth_times": [], "depth": Depth::default(),
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

    /// Adds held zios with a service time of `service_ns`, each of which ended `late_ns` late.
    fn hold(mut self, zios: u64, service_ns: u64, late_ns: u64) -> Case {
        for _ in 0..zios {
            self.requested.record(service_ns);
            self.achieved.record(service_ns + late_ns);
            self.lateness.record(late_ns);
        }
        let held = self.lateness.count();
        self.says("matched", held).says("held", held)
    }

    /// Like [`Case::hold`], but the zios fell due while the host kept the shard from running.
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
            .find(|line| line.chars().count() > crate::table::WIDTH);
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
            dashpot's promise of 30.5us at p50: kept (not part of the verdict)
            clients: 0ns on average to send a request and take its reply, since the daemon's
              start
            warning: 2 of 100 (2.0 %) were late by more than 1 ms or 5 % of the delay
            warning: no known cause explains it: 'dashpot doctor' examines this host
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
            the delay varies: percentiles are exact to 129us at p50 and 237us at p99; the
              mean is off by +10.0us
            dashpot's promise of 30.5us at p50: kept (not part of the verdict)
            clients: 0ns on average to send a request and take its reply, since the daemon's
              start
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
