//! What one client write costs in a simulation, everything recorded. `cargo bench -p dashpot-sim`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dashpot_engine::inject::{GroupId, RuleSpec, Service};
use dashpot_engine::{Duration, Instant, Ratio};
use dashpot_sim::Simulation;
use dashpot_sim::scenario::{
    Calls, DiskModel, DiskSpec, Load, Pattern, Scenario, Target, WorkloadSpec,
};

/// Writes of each iteration: 32 threads at 1 ms, for 1 s.
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
        assert!(simulation.now() > Instant::ZERO);
    }
    group.finish();
}

criterion_group!(benches, lone_disk);
criterion_main!(benches);
