//! The scenarios of Adam Leventhal's articles on the write throttle, under virtual time.
//!
//! The units are binary, because only binary units fit the articles' figures: 64,000 × 8 KiB is 500 MiB,
//! which a disk with 100 MiB/s writes in 5 s.

use crate::common::{workload, writes};
use dashpot_engine::histogram::{Histogram, lower_bound};
use dashpot_engine::inject::Service;
use dashpot_engine::pool::{Layout, LegacyConfig, ThrottleConfig, Tunable, Tunables, WritePolicy};
use dashpot_engine::{Duration, Instant, Op};
use dashpot_rules::{PoolSpec, VolumeSpec};
use dashpot_sim::Simulation;
use dashpot_sim::scenario::{
    Calls, DiskModel, DiskSpec, Load, Pattern, Scenario, Target, WorkloadSpec,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// One disk with 100 MiB/s, one volume with blocks of 8 KiB, and one client that writes sequentially.
fn lab(throttle: ThrottleConfig, client: WorkloadSpec, seconds: u64) -> Scenario {
    let mut tunables = Tunables::new(8 * GIB);
    tunables.set(Tunable::DirtyDataMax, 512 * MIB).unwrap();
    Scenario {
        seed: 1,
        disks: vec![DiskSpec {
            name: "c1t1d0".into(),
            size: 64 * GIB,
            model: DiskModel {
                bandwidth: Some(100 * MIB),
                ..DiskModel::default()
            },
            rotational: false,
            rules: Vec::new(),
        }],
        pools: vec![PoolSpec {
            bitmap: None,
            name: "tank".into(),
            members: vec![vec![0]],
            layout: Layout::Static,
            throttle,
            tunables,
        }],
        volumes: vec![VolumeSpec {
            name: "tank/foo".into(),
            pool: 0,
            size: 16 * GIB,
            block_size: 8192,
            write: WritePolicy::Back,
        }],
        workloads: vec![client],
        commands: Vec::new(),
        lasts: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        check: false,
        sample_every: None,
    }
}

fn client(threads: u32, inside: Duration, link: Option<u64>) -> WorkloadSpec {
    let load = Load::Closed {
        threads,
        inside,
        think: Duration::ZERO,
        calls: Calls {
            target: Target::Volume(0),
            pattern: Pattern::Sequential,
            ..writes()
        },
    };
    WorkloadSpec {
        link,
        ..workload(load)
    }
}

fn legacy(delay_slots: Option<u32>) -> ThrottleConfig {
    ThrottleConfig::Legacy(LegacyConfig {
        delay_slots,
        // The throughput of a full pipeline, in bytes per millisecond.
        full_pipeline: Some(100 * MIB / 1_000),
    })
}

fn after(simulation: &mut Simulation, seconds: u64) -> Histogram {
    let until = Instant::ZERO + Duration::from_secs(seconds);
    simulation.run_until(until).unwrap();
    let writes = simulation.results(0).unwrap().op(Op::Write);
    writes.at_lab.as_deref().cloned().unwrap_or_default()
}

/// The latencies of all clients.
fn all_after(simulation: &mut Simulation, seconds: u64) -> Histogram {
    let mut all = after(simulation, seconds);
    for other in 1..simulation.scenario().workloads.len() {
        let writes = simulation.results(other).unwrap().op(Op::Write);
        all.merge(writes.at_lab.as_deref().unwrap());
    }
    all
}

/// How many of every 64,000 writes took at least `from` and less than `to`, in µs.
fn of_64_000(latencies: &Histogram, from: u64, to: u64) -> u64 {
    let within = latencies.buckets().filter(|(at, _)| {
        let microseconds = lower_bound(*at) / 1_000;
        (from..to).contains(&microseconds)
    });
    within.map(|(_, count)| count).sum::<u64>() * 64_000 / latencies.count()
}

/// How many KiB a client has written by each of these moments, given in milliseconds. The client has 10
/// threads, and a rate of 100 MiB/s.
fn first_cycle(delay_slots: Option<u32>, moments: [u64; 2]) -> [u64; 2] {
    let client = client(10, Duration::from_nanos(781_250), None);
    let mut simulation = Simulation::new(lab(legacy(delay_slots), client, 60)).unwrap();
    moments.map(|ms| {
        let until = Instant::ZERO + Duration::from_millis(ms);
        simulation.run_until(until).unwrap();
        simulation.calls_ended() * 8
    })
}

#[test]
fn legacy_lets_seven_eighths_in_at_full_speed_and_then_almost_nothing() {
    // The client writes 437.5 MiB at full speed; then 496 KiB with one delay at a time, or 4.45 MiB with
    // ten at once.
    assert_eq!(first_cycle(Some(1), [4_376, 4_999]), [448_000, 448_496]);
    assert_eq!(first_cycle(None, [4_376, 4_999]), [448_000, 452_560]);
}

#[test]
fn legacy_delays_nobody_from_the_second_cycle_on_if_the_disk_keeps_up() {
    let client = client(10, Duration::from_nanos(781_250), None);
    let mut simulation = Simulation::new(lab(legacy(None), client, 60)).unwrap();
    let before = after(&mut simulation, 20);
    let since = after(&mut simulation, 60).since(&before);
    assert_eq!(since.count() / 40, 12_799);
    // Hardly any write waits, but sometimes one finds the txg full just before the next txg opens.
    assert!(since.max().unwrap() < 1_000_000, "{:?}", since.max());
    assert!(since.quantile(999_900).unwrap() < 1_000);
}

/// For 1,000 threads behind a link of 1 GiB/s: how many of every 64,000 writes were admitted at once, how
/// many within 200 ms, and how many later.
fn flood(delay_slots: Option<u32>) -> [u64; 3] {
    let client = client(1_000, Duration::ZERO, Some(GIB));
    let mut simulation = Simulation::new(lab(legacy(delay_slots), client, 100)).unwrap();
    let before = after(&mut simulation, 40);
    let since = after(&mut simulation, 80).since(&before);
    [(0, 1), (1, 200_000), (200_000, u64::MAX)].map(|(from, to)| of_64_000(&since, from, to))
}

#[test]
fn legacy_lets_most_of_a_flood_in_at_once_and_a_thousand_wait_for_seconds() {
    // The article says 55,000, 8,000 and 1,000. An independent event simulation gives exactly the numbers
    // below.
    assert_eq!(flood(None), [54_574, 8_433, 992]);
    // With one delay at a time, few writes are delayed. For the first and the last number, the independent
    // simulation gives 62,550 and 1,450.
    assert_eq!(flood(Some(1)), [62_548, 39, 1_411]);
}

fn without_overhead(mut lab: Scenario) -> Scenario {
    let tunables = &mut lab.pools[0].tunables;
    tunables.set(Tunable::TxgOverhead, 0).unwrap();
    lab
}

/// At the beginning of a txg, the first write of each client makes an indirect block dirty, and the delays
/// grow. At its end these blocks leave memory all at once, and the delays shrink.
#[test]
fn the_overhead_of_txgs_spreads_the_latencies_and_keeps_the_mean() {
    let flood = || {
        let mut lab = lab(
            ThrottleConfig::OpenZfs,
            client(1, Duration::ZERO, None),
            120,
        );
        let tunables = &mut lab.pools[0].tunables;
        tunables.set(Tunable::DirtyDataMax, 64 * MIB).unwrap();
        tunables.set(Tunable::Aggregation, 0).unwrap();
        lab.disks[0].model = DiskModel {
            service: Some(Service::Constant(Duration::from_millis(14))),
            lanes: Some(8),
            ..DiskModel::default()
        };
        let one = lab.workloads.remove(0);
        let own = |at: u64| {
            let mut one = one.clone();
            if let Load::Closed { calls, inside, .. } = &mut one.load {
                calls.region = Some((at * 16 * MIB, 16 * MIB));
                *inside = Duration::from_micros(100);
            }
            one
        };
        lab.workloads = (0..32).map(own).collect();
        lab
    };
    let latencies = |lab: Scenario| {
        let mut simulation = Simulation::new(lab).unwrap();
        let before = all_after(&mut simulation, 30);
        all_after(&mut simulation, 120).since(&before)
    };
    let (with, without) = (latencies(flood()), latencies(without_overhead(flood())));
    let (mean, other) = (with.mean().unwrap(), without.mean().unwrap());
    assert!(mean.abs_diff(other) * 20 < other, "{mean} and {other}");
    let deviation = |all: &Histogram| 1_000 * all.stddev_micros().unwrap();
    let (with, without) = (deviation(&with), deviation(&without));
    assert!(
        with > 20 * without && with > mean / 10,
        "{with} and {without} of {mean}"
    );
}

#[test]
fn openzfs_has_one_mode_where_little_says() {
    let client = client(1_000, Duration::ZERO, Some(GIB));
    let lab = without_overhead(lab(ThrottleConfig::OpenZfs, client, 60));
    let mut simulation = Simulation::new(lab).unwrap();
    let before = after(&mut simulation, 30);
    let since = after(&mut simulation, 60).since(&before);
    assert_eq!(since.count() / 30, 12_800);
    let mean = since.mean().unwrap();
    assert!((78_000_000..78_200_000).contains(&mean), "{mean}");
    // All latencies are in one bucket, from 77.6 ms to 79.3 ms.
    assert_eq!(since.buckets().count(), 1);
}

#[test]
fn small_writes_may_fill_much_memory_at_one_moment() {
    let client = client(1, Duration::ZERO, None);
    let mut lab = lab(ThrottleConfig::None, client, 1);
    let most = 2_304 * MIB;
    lab.pools[0]
        .tunables
        .set(Tunable::DirtyDataMax, most)
        .unwrap();
    lab.volumes[0].block_size = 512;
    if let Load::Closed { calls, .. } = &mut lab.workloads[0].load {
        calls.block = 512;
    }
    let mut simulation = Simulation::new(lab).unwrap();
    simulation.run_until(Instant::ZERO).unwrap();
    assert_eq!(simulation.calls_ended(), most / 512);
}
