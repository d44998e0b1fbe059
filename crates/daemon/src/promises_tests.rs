use dashpot_api::{ClientMemory, Depth, Disk, Host, Load, Probe, Promise, Shard, StopTotals};
use serde_json::{from_value, json};

use super::{CanHold, promises, promises_of_host};

fn host() -> Host {
    Host {
        cpus: 2,
        quota_millicpus: None,
        quota_periods: 0,
        throttled_periods: 0,
        throttled_ns: 0,
        steal_percent: Some(0.1),
    }
}

fn shard() -> Shard {
    Shard {
        shard: 0,
        disks: vec!["a".to_owned(), "b".to_owned()],
        spins: true,
        load: Load::default(),
        memory: ClientMemory::default(),
        loop_gap: Default::default(),
        stops: Default::default(),
        probe: Probe::default(),
    }
}

/// `y`, `d` or `n` for each promise, and all the reasons.
fn verdicts(host: &Host, shards: &[Shard]) -> (String, String) {
    let promises = promises(host, shards, &[]);
    let letter = |can_hold| match can_hold {
        CanHold::Yes => 'y',
        CanHold::Doubtful => 'd',
        CanHold::No => 'n',
    };
    let letters = promises.iter().map(|promise| letter(promise.can_hold));
    let reasons: Vec<&str> = promises
        .iter()
        .map(|promise| promise.why.as_str())
        .collect();
    (letters.collect(), reasons.join("\n"))
}

#[track_caller]
fn check(host: &Host, shards: &[Shard], expected: &str, reason: &str) {
    let (letters, reasons) = verdicts(host, shards);
    assert_eq!(letters, expected, "{reasons}");
    assert!(reasons.contains(reason), "{reasons}");
}

#[test]
fn with_nothing_in_the_way_all_can_hold() {
    check(&host(), &[], "yyyyyy", "nothing is in the way");
    check(&host(), &[shard()], "yyyyyy", "nothing is in the way");
}

#[test]
fn a_quota_forbids_spinning_and_the_rest_only_where_it_has_stopped_something() {
    let mut host = host();
    host.quota_millicpus = Some(500);
    check(&host, &[], "ynynyy", "a CPU quota of 0.50 CPUs");
    (host.quota_periods, host.throttled_periods) = (9, 4);
    check(&host, &[shard()], "ynnnny", "4 of 9 periods");
}

#[test]
fn a_daemon_that_does_not_spin_says_so() {
    let lazy = Shard {
        spins: false,
        ..shard()
    };
    check(&host(), &[lazy], "ynynyy", "--spin auto");
}

#[test]
fn an_overloaded_shard_is_named_with_its_disks() {
    let mut busy = shard();
    (busy.shard, busy.load.busy_percent, busy.load.overloaded) = (1, 83, true);
    check(
        &host(),
        &[shard(), busy],
        "ynnnyy",
        "shard 1 works 83 % of its time; ask less of its disks (a, b)",
    );
}

#[test]
fn one_cpu_and_much_steal_are_doubtful() {
    let mut one = host();
    one.cpus = 1;
    check(&one, &[], "yddddy", "one CPU");
    let mut robbed = host();
    robbed.steal_percent = Some(30.0);
    check(&robbed, &[], "yddddy", "takes 30 %");
    robbed.steal_percent = Some(3.0);
    check(&robbed, &[], "yyyyyy", "3.0 % steal shows in the tail");
}

#[test]
fn the_probe_has_the_last_word_end_to_end() {
    let reads = |p50_ns| {
        let mut shard = shard();
        shard.probe.p50_ns = Some(p50_ns);
        shard
    };
    check(
        &host(),
        &[reads(40_000)],
        "yyyyyy",
        "the probe reads 40.0us at p50",
    );
    check(
        &host(),
        &[reads(200_000)],
        "yyydyy",
        "the probe reads 200us at p50",
    );
    check(
        &host(),
        &[reads(400_000), reads(1)],
        "yyynyy",
        "the probe reads 400us at p50",
    );
}

#[test]
fn a_host_that_stops_shards_makes_promises_doubtful() {
    let mut shard = shard();
    shard.stops.recent = StopTotals {
        count: 1,
        total_ns: 9_000_000,
        longest_ns: 9_000_000,
    };
    let shards = std::slice::from_ref(&shard);
    check(&host(), shards, "yyyydy", "for 9.00ms in the last minute");
    shard.stops.recent.total_ns = 5_000_000_000;
    shard.stops.recent.longest_ns = 4_980_000_000;
    let shards = std::slice::from_ref(&shard);
    check(&host(), shards, "yddddy", "at most 4.98s at once");
}

#[test]
fn what_waking_costs_or_a_single_reading_counts_where_no_more_is_known() {
    let end_to_end = |promises: Vec<super::Promise>| promises[3].clone();
    let woken = end_to_end(promises_of_host(&host(), 144_000));
    assert_eq!(woken.can_hold, CanHold::Doubtful, "{}", woken.why);
    assert!(woken.why.contains("144"), "{}", woken.why);
    let quick = end_to_end(promises_of_host(&host(), 60_000));
    assert_eq!(quick.can_hold, CanHold::Yes, "{}", quick.why);
    let mut read_once = shard();
    (read_once.probe.n, read_once.probe.last_ns) = (1, Some(1_360_000));
    let read_once = end_to_end(promises(&host(), &[read_once], &[]));
    assert_eq!(read_once.can_hold, CanHold::No, "{}", read_once.why);
}

/// A disk whose armed rules were late by a median of `p50_ns`.
fn late(p50_ns: u64, n: u64, depth: u64) -> Disk {
    let summary = json!({"count": n, "p50_ns": p50_ns});
    let none = json!({"count": 0, "total_ns": 0, "longest_ns": 0});
    from_value(json!({
        "name": "a", "uris": [], "store": "ram", "size_bytes": 1, "block_bytes": 1,
        "read_only": false, "shard": 0, "at_ns": 0, "rules": 1, "suspended": null, "off": false,
        "faulted": null, "failed": null, "clients": [], "attachments": [], "stalled": 0, "stalls": 0,
        "loop_gap": {"count": 0}, "shard_stops": {"all": none, "recent": none, "last_age_ns": null},
        "shard_load": Load::default(), "shard_memory": ClientMemory::default(),
        "rule_lateness": summary, "in_flight": 0, "oldest": [], "ops": [], "aborted": 0,
        "busy_ns": 1_000, "depth_time_ns": (depth * 1_000).to_string(),
        "depth_times": [], "depth": Depth::default(),
    }))
    .unwrap()
}

#[test]
fn what_armed_rules_have_measured_stands_beside_the_promise() {
    let spinning = |disk: Disk| {
        let mut promises = promises(&host(), &[shard()], &[disk]);
        let Promise { can_hold, why, .. } = promises.remove(1);
        (can_hold, why)
    };
    let (can_hold, why) = spinning(late(41_800, 1_000, 1));
    assert_eq!(can_hold, CanHold::Doubtful);
    assert_eq!(
        why,
        "armed rules on a were 41.8us late at p50 (n=1000), 30.5us are promised there"
    );
    let (can_hold, why) = spinning(late(20_000, 1_000, 1));
    assert_eq!(can_hold, CanHold::Yes);
    assert!(why.contains("20.0us late at p50"), "{why}");
    // The promise allows more lateness in a burst of 64 zios, and too few zios prove nothing.
    assert_eq!(spinning(late(41_800, 1_000, 64)).0, CanHold::Yes);
    let (can_hold, why) = spinning(late(41_800, 29, 1));
    assert_eq!(
        (can_hold, why.contains("armed rules")),
        (CanHold::Yes, false)
    );
}
