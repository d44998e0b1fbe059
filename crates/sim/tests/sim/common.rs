//! Small labs for the tests.

use dashpot_engine::inject::{GroupId, RuleSpec};
use dashpot_engine::{Duration, Instant, Op, Ratio};
use dashpot_sim::Simulation;
use dashpot_sim::scenario::{
    Calls, DiskModel, DiskSpec, Load, Pattern, Scenario, Target, TraceEntry, WorkloadSpec,
};

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// One disk of 1 GiB with a model and rules, all of one group.
pub(crate) fn disk(model: DiskModel, rules: Vec<RuleSpec>) -> DiskSpec {
    DiskSpec {
        name: "c1t1d0".into(),
        size: 1 << 30,
        model,
        rotational: false,
        rules: vec![(GroupId(1), rules)],
    }
}

pub(crate) fn workload(load: Load) -> WorkloadSpec {
    WorkloadSpec {
        name: "client".into(),
        starts: Duration::ZERO,
        stops: None,
        link: None,
        disconnects: Vec::new(),
        slowest: 1_000,
        load,
    }
}

/// Random writes of 8 KiB to the first disk.
pub(crate) fn writes() -> Calls {
    Calls {
        target: Target::Disk(0),
        region: None,
        block: 8192,
        reads: Ratio::new(0, 1).unwrap(),
        pattern: Pattern::Random,
        sync: false,
        flush_every: None,
    }
}

pub(crate) fn scenario(disk: DiskSpec, workload: WorkloadSpec, lasts: Duration) -> Scenario {
    Scenario {
        seed: 1,
        disks: vec![disk],
        pools: Vec::new(),
        volumes: Vec::new(),
        workloads: vec![workload],
        commands: Vec::new(),
        lasts,
        warmup: Duration::ZERO,
        check: true,
        sample_every: None,
    }
}

/// Reads and writes that start at these times, in milliseconds. Each I/O has a sector of its own.
pub(crate) fn trace(ops: &[(u64, Op)]) -> Load {
    let entry = |(at, (when, op)): (usize, &(u64, Op))| TraceEntry {
        at: ms(*when),
        op: *op,
        fua: false,
        target: Target::Disk(0),
        offset: at as u64 * 512,
        length: 512,
    };
    Load::Trace(ops.iter().enumerate().map(entry).collect())
}

/// When each entry of a trace ended, in milliseconds and in the order of the trace.
pub(crate) fn ends(rules: Vec<RuleSpec>, ops: &[(u64, Op)]) -> Vec<u64> {
    let disk = disk(DiskModel::default(), rules);
    let scenario = scenario(disk, workload(trace(ops)), ms(10_000));
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.run_until(Instant::NEVER).unwrap();
    let mut calls = simulation.results(0).unwrap().slowest.clone();
    calls.sort_by_key(|call| call.offset);
    let end = |ns: u64| {
        assert!(
            ns.is_multiple_of(1_000_000),
            "{ns} ns is not a whole number of ms"
        );
        ns / 1_000_000
    };
    let ends = calls.iter().map(|call| call.began + call.latency);
    ends.map(|at| end(at.as_nanos())).collect()
}
