//! The cost of one client's write in a simulation that records everything: `cargo bench -p
//! dashpot-sim`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dashpot_engine::inject::{GroupId, RuleSpec, Service};
use dashpot_engine::pool::{Layout, ThrottleConfig, Tunables, WritePolicy};
use dashpot_engine::{Duration, Ratio};
use dashpot_rules::{PoolSpec, VolumeSpec};
use dashpot_sim::Simulation;
use dashpot_sim::scenario::{
    Calls, DiskModel, DiskSpec, Load, Pattern, Scenario, Target, WorkloadSpec,
};

/// The number of writes in an iteration: 32 threads each write once a millisecond, for 1 s.
const WRITES: u64 = 32_000;

fn scenario(model: DiskModel, rules: Vec<RuleSpec>) -> Scenario {
    let calls = Calls {
        target: Target::Disk(0),
        region: None,
        block: 8192,
        reads: Ratio::new(0, 1).unwrap(),
        pattern: Pattern::Random,
        sync: false,
        flush_every: None,
    };
    Scenario {
        seed: 1,
        disks: vec![DiskSpec {
            name: "c1t1d0".into(),
            size: 1 << 30,
            model,
            rotational: false,
            rules: vec![(GroupId(1), rules)],
        }],
        pools: Vec::new(),
        volumes: Vec::new(),
        workloads: vec![WorkloadSpec {
            name: "client".into(),
            starts: Duration::ZERO,
            stops: None,
            link: None,
            disconnects: Vec::new(),
            slowest: 10,
            load: Load::Closed {
                threads: 32,
                inside: Duration::ZERO,
                think: Duration::ZERO,
                calls,
            },
        }],
        commands: Vec::new(),
        lasts: Duration::MAX,
        warmup: Duration::ZERO,
        check: false,
        sample_every: None,
    }
}

fn lone_disk(criterion: &mut Criterion) {
    let ms = Duration::from_millis(1);
    let model = DiskModel {
        service: Some(Service::Constant(ms)),
        ..DiskModel::default()
    };
    let rule = vec![RuleSpec::delay(ms, None)];
    let mut group = criterion.benchmark_group("lone_disk");
    group.throughput(Throughput::Elements(WRITES));
    for (name, scenario) in [
        ("disk_model", scenario(model, Vec::new())),
        ("rule", scenario(DiskModel::default(), rule)),
    ] {
        let mut simulation = Simulation::new(scenario).unwrap();
        group.bench_function(name, |b| {
            b.iter(|| {
                let until = simulation.now() + Duration::from_secs(1);
                simulation.run_until(until).unwrap();
            });
        });
    }
    group.finish();
}

/// A pool of one disk, which has only a bus of 4 GiB/s. 32 threads write blocks of 8 KiB to a volume.
fn pooled(throttle: ThrottleConfig, pattern: Pattern) -> Scenario {
    let model = DiskModel {
        bandwidth: Some(4 << 30),
        ..DiskModel::default()
    };
    let mut scenario = scenario(model, Vec::new());
    scenario.pools.push(PoolSpec {
        bitmap: None,
        name: "tank".into(),
        members: vec![vec![0]],
        layout: Layout::Static,
        throttle,
        tunables: Tunables::new(8 << 30),
    });
    scenario.volumes.push(VolumeSpec {
        name: "tank/foo".into(),
        pool: 0,
        size: 512 << 20,
        block_size: 8192,
        write: WritePolicy::Back,
    });
    if let Load::Closed { inside, calls, .. } = &mut scenario.workloads[0].load {
        *inside = Duration::from_millis(1);
        calls.target = Target::Volume(0);
        calls.pattern = pattern;
    }
    scenario
}

fn volume(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("volume");
    group.throughput(Throughput::Elements(WRITES));
    for (name, throttle, pattern) in [
        ("openzfs_random", ThrottleConfig::OpenZfs, Pattern::Random),
        (
            "openzfs_sequential",
            ThrottleConfig::OpenZfs,
            Pattern::Sequential,
        ),
        ("none_sequential", ThrottleConfig::None, Pattern::Sequential),
    ] {
        let mut simulation = Simulation::new(pooled(throttle, pattern)).unwrap();
        group.bench_function(name, |b| {
            b.iter(|| {
                let until = simulation.now() + Duration::from_secs(1);
                simulation.run_until(until).unwrap();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, lone_disk, volume);
criterion_main!(benches);
