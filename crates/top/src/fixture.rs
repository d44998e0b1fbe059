//! A made-up frame with three disks, for tests.

use dashpot_api::{CanHold, Promise, Rule, RuleCounters, Shard};
use dashpot_engine::histogram::Histogram;
use dashpot_engine::pool::{ThrottleLevel, Traffic, TxgState, TxgStats};
use dashpot_engine::{Duration, Instant};
use dashpot_observe::{InFlight, Layer};
use dashpot_text::heatmap::HeatColumn;
use serde_json::json;

use crate::frame::{ClientFrame, Condition, DiskFrame, Done, Frame, Moment, PoolFrame};

/// `c1t1d0` with one rule, `c1t2d0` with two, and `log`, which is suspended.
pub(crate) fn frame() -> Frame {
    frame_after(0)
}

/// The disks of [`frame`], `second` intervals later.
pub(crate) fn frame_after(second: u64) -> Frame {
    Frame {
        disks: vec![c1t1d0(second), c1t2d0(second), log()],
        rules: vec![
            rule(1, "c1t1d0", None, "-D 10ms:4 -T read,write,zero", None),
            rule(
                2,
                "c1t2d0",
                Some("tail"),
                "-D lognormal=2ms..30ms -T read",
                None,
            ),
            rule(
                3,
                "c1t2d0",
                None,
                "-D 500ms -T write -f 0.5%",
                Some("not drawn yet: the chance of -f is small"),
            ),
        ],
        shards: vec![shard(0, 1, false), shard(1, 83, true)],
        promises: vec![
            promise(
                CanHold::Doubtful,
                "without spinning, as late as a sleep at p50",
            ),
            promise(CanHold::No, "p50 lateness of at most 30 us, by spinning"),
        ],
        ..Frame::default()
    }
}

/// A simulation of the volume `tank/foo` on `c1t1d0`, in a pool whose throttle delays writes, and of a disk
/// outside of pools.
pub(crate) fn simulated() -> Frame {
    let tank = || Some("tank".to_owned());
    let volume = DiskFrame {
        name: "tank/foo".to_owned(),
        layer: Layer::Volume,
        pool: tank(),
        clients: vec![client("client", 1)],
        in_flight: 10,
        oldest_ns: Some(12_400_000),
        done: Some(done(0.0, 12_800.0, 0.0, &[(781_000, 12_800)])),
        ..DiskFrame::default()
    };
    let disk = DiskFrame {
        store: String::new(),
        pool: tank(),
        ..c1t1d0(0)
    };
    Frame {
        disks: vec![volume, disk, log()],
        rules: frame().rules,
        pools: vec![pool()],
        moment: Some(Moment {
            at: Instant::ZERO + Duration::from_millis(12_000),
            lasts: Duration::from_secs(60),
        }),
        ..Frame::default()
    }
}

/// A pool that delays writes, with a txg in each state.
pub(crate) fn pool() -> PoolFrame {
    const MIB: u64 = 1 << 20;
    PoolFrame {
        name: "tank".to_owned(),
        throttle: "openzfs",
        dirty: 350 * MIB,
        level: ThrottleLevel {
            filled: 350 * MIB,
            delays_above: Some(512 * MIB / 10 * 6),
            stops_at: 512 * MIB,
            delay: Duration::from_micros(1_250),
        },
        throttled: 7,
        written: Some((12_800.0, 100.0 * MIB as f64)),
        txgs: vec![
            txg(9, TxgState::Open, 120 * MIB),
            txg(8, TxgState::Quiesced, 100 * MIB),
            txg(7, TxgState::Syncing, 130 * MIB),
            txg(6, TxgState::Committed, 0),
        ],
    }
}

fn txg(txg: u64, state: TxgState, left: u64) -> TxgStats {
    let syncs = matches!(state, TxgState::Syncing | TxgState::Committed);
    let span = |there: bool, millis| Duration::from_millis(if there { millis } else { 0 });
    let written = if syncs { (150 << 20) - left } else { 0 };
    TxgStats {
        txg,
        birth: Instant::ZERO + Duration::from_millis(1_500 * txg),
        state,
        dirty: if syncs { 150 << 20 } else { 0 },
        left,
        disks: Traffic {
            writes: written / 8_192,
            bytes_written: written,
            ..Traffic::default()
        },
        open: Duration::from_millis(1_480),
        wait: span(state != TxgState::Open, 250),
        sync: span(syncs, 1_500 - (left >> 20) * 10),
    }
}

fn c1t1d0(second: u64) -> DiskFrame {
    let spread = [
        (80_000_000 - second % 7 * 400_000, 390),
        (40_000_000, 10),
        (2_000_000, second % 3),
    ];
    DiskFrame {
        name: "c1t1d0".to_owned(),
        store: "ram".to_owned(),
        clients: vec![client("uid=0 pid=16998", 4)],
        in_flight: 32,
        oldest_ns: Some(71_900_000),
        wait: Some("held, rule 1".to_owned()),
        done: Some(done(256.4, 144.2, 0.0, &spread)),
        ..DiskFrame::default()
    }
}

fn c1t2d0(second: u64) -> DiskFrame {
    let spread = [
        (1_600_000, 600 + second),
        (12_000_000, 150),
        (501_000_000, 1),
    ];
    DiskFrame {
        name: "c1t2d0".to_owned(),
        store: "file:/var/tmp/c1t2d0.img".to_owned(),
        clients: vec![client("uid=1000 pid=4711", 2)],
        in_flight: 4,
        oldest_ns: Some(478_000_000),
        wait: Some("held, rule 3".to_owned()),
        done: Some(done(647.0, 142.0, 9.0, &spread)),
        ..DiskFrame::default()
    }
}

fn log() -> DiskFrame {
    DiskFrame {
        name: "log".to_owned(),
        store: "null".to_owned(),
        conditions: vec![Condition::Suspended {
            age_ns: 3_200_000_000,
            left_ns: Some(6_800_000_000),
        }],
        done: Some(done(0.0, 1_996.0, 0.25, &[(11_900, 1_996)])),
        ..DiskFrame::default()
    }
}

fn done(reads: f64, writes: f64, flushes: f64, spread: &[(u64, u64)]) -> Done {
    let latencies = spread
        .iter()
        .map(|(ns, count)| (*ns, *count))
        .collect::<Histogram>();
    Done {
        reads,
        writes,
        flushes,
        all: reads + writes + flushes,
        kilobytes: 4.0 * (reads + writes),
        deepest: Some(32),
        p50_ns: latencies.quantile(500_000),
        p99_ns: latencies.quantile(990_000),
        max_ns: latencies.max(),
        heat: HeatColumn::new(
            &latencies,
            0,
            std::time::Duration::from_secs(1),
            InFlight::default(),
        ),
    }
}

fn client(name: &str, connections: u32) -> ClientFrame {
    ClientFrame {
        name: name.to_owned(),
        connections: Some(connections),
        per_second: Some(400.6),
        p99_ns: None,
    }
}

fn promise(can_hold: CanHold, promise: &str) -> Promise {
    Promise {
        promise: promise.to_owned(),
        can_hold,
        why: "the CPU quota has stopped it in 20 of 21 periods: raise it".to_owned(),
    }
}

fn shard(shard: usize, busy_percent: u32, overloaded: bool) -> Shard {
    let summary =
        json!({ "count": 9, "mean_ns": 7, "p50_ns": 9_000, "p99_ns": 71_800, "max_ns": 7_470_000 });
    let probe =
        json!({ "n": 40, "age_ns": 1, "last_ns": 30_000, "p50_ns": 34_100, "max_ns": 637_000 });
    let none = json!({ "count": 0, "total_ns": 0, "longest_ns": 0 });
    let stops = json!({ "all": none, "recent": none, "last_age_ns": null });
    let load =
        json!({ "busy_percent": busy_percent, "overloaded": overloaded, "overloaded_seconds": 0 });
    let memory = json!({
        "zios": 12, "zios_max": 262_144, "payload_bytes": 0, "payload_max_bytes": 369_098_752,
        "buffered_bytes": 0, "buffered_max_bytes": 67_108_864, "connections": 3,
    });
    serde_json::from_value(json!({
        "shard": shard, "disks": ["c1t1d0"], "spins": true, "load": load, "memory": memory, "loop_gap": summary, "stops": stops, "probe": probe,
    }))
    .expect("the API's own words")
}

fn rule(id: u32, disk: &str, name: Option<&str>, words: &str, why: Option<&str>) -> Rule {
    let plain: Rule = serde_json::from_str(RULE).expect("the API's own words");
    let held = if why.is_some() { 0 } else { 17_612 };
    Rule {
        id,
        name: name.map(str::to_owned),
        disk: disk.to_owned(),
        rule: words.to_owned(),
        counters: RuleCounters {
            held,
            late: held / 57,
            ..plain.counters
        },
        why_nothing: why.map(str::to_owned),
        ..plain
    }
}

const RULE: &str = r#"{
    "id": 1, "name": null, "disk": "d", "group": 1, "pool": null, "rule": "", "effect": "delay",
    "delay_ns": 10000000, "lanes": 4, "errno": null, "bandwidth_bytes": null, "ops": ["read"],
    "chance": null, "first": null, "every": null, "range_start_bytes": null, "range_end_bytes": null,
    "client": null, "mode": "floor", "after_ns": 0, "for_ns": null, "state": "active", "age_ns": 1,
    "matched": 17644, "taken": 17644, "injected": 17612, "held": 17612, "overrun": 0, "failed": 0,
    "late": 308, "not_drawn": 0, "not_counted": 0, "beaten": 0, "beaten_by": null, "aborted": 0,
    "now": 32, "backlog_ns": 77700000,
    "requested": {"count": 17612, "p50_ns": 10000000},
    "achieved": {"count": 17612, "p50_ns": 10013500},
    "lateness": {"count": 17612, "p50_ns": 13500},
    "stopped": {"count": 0},
    "why_nothing": null, "stalled": 0, "stalls": 0,
    "depth": {"most": 0, "usual": 0, "usual_percent": 0},
    "shard_load": {"busy_percent": 1, "overloaded": false, "overloaded_seconds": 0}
}"#;
