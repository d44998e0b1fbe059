//! The third experiment of Prakash Surya's article on `zinject`: a pool of two disks, one of them
//! half as fast as the other.
//!
//! Eight clients write files to new blocks and sync. The faster disk should get twice as many writes as the
//! slower one. Under the static layout, both disks get the same number of writes, because each gets every
//! other block.

use crate::common::{ms, workload, writes};
use dashpot_engine::inject::{GroupId, RuleSpec};
use dashpot_engine::pool::{Layout, ThrottleConfig, Tunable, Tunables, WritePolicy};
use dashpot_engine::{DiskId, Duration, Instant, Op};
use dashpot_rules::{PoolSpec, VolumeSpec};
use dashpot_sim::Simulation;
use dashpot_sim::scenario::{
    Calls, DiskModel, DiskSpec, Load, Pattern, Scenario, Target, WorkloadSpec,
};

const GIB: u64 = 1 << 30;
const BLOCK: u32 = 128 << 10;

/// Two disks with 16 lanes each. An I/O takes 16 ms on one disk and 32 ms on the other.
fn disks() -> Vec<DiskSpec> {
    let disk = |delay| DiskSpec {
        name: format!("{delay}ms"),
        size: 64 * GIB,
        model: DiskModel::default(),
        rotational: false,
        rules: vec![(GroupId(1), vec![RuleSpec::delay(ms(delay), Some(16))])],
    };
    vec![disk(16), disk(32)]
}

/// Eight threads that write one block after another, and flush after this many writes.
fn client(flush_every: Option<u64>) -> WorkloadSpec {
    workload(Load::Closed {
        threads: 8,
        inside: Duration::from_micros(100),
        think: Duration::ZERO,
        calls: Calls {
            target: Target::Volume(0),
            block: BLOCK,
            pattern: Pattern::Sequential,
            flush_every,
            ..writes()
        },
    })
}

fn lab(layout: Layout, write: WritePolicy, client: WorkloadSpec) -> Scenario {
    let mut tunables = Tunables::new(8 * GIB);
    // Only data goes to the disk with the shorter queue.
    tunables.set(Tunable::TxgOverhead, 0).unwrap();
    Scenario {
        seed: 1,
        disks: disks(),
        pools: vec![PoolSpec {
            bitmap: None,
            name: "tank".into(),
            members: vec![vec![0], vec![1]],
            layout,
            throttle: ThrottleConfig::OpenZfs,
            tunables,
        }],
        volumes: vec![VolumeSpec {
            name: "tank/foo".into(),
            pool: 0,
            size: 100 * GIB,
            block_size: BLOCK,
            write,
        }],
        workloads: vec![client],
        commands: Vec::new(),
        lasts: Duration::from_secs(60),
        warmup: Duration::ZERO,
        check: false,
        sample_every: None,
    }
}

/// How many writes the faster and the slower disk get in a minute.
fn writes_of(layout: Layout, write: WritePolicy, flush_every: Option<u64>) -> [u64; 2] {
    let mut simulation = Simulation::new(lab(layout, write, client(flush_every))).unwrap();
    let end = Instant::ZERO + Duration::from_secs(60);
    simulation.run_until(end).unwrap();
    [0, 1].map(|disk| {
        let stats = simulation.engine().disk_stats(DiskId(disk), end).unwrap();
        stats.op(Op::Write).completed
    })
}

/// The article counts 518 and 271 writes in a second, a ratio of 1.91. Under the dynamic layout, the ratio
/// must be similar; under the static one, it must be about 1.
#[test]
fn a_disk_twice_as_fast_gets_twice_the_new_blocks() {
    for write in [WritePolicy::Back, WritePolicy::Through] {
        for flush_every in [None, Some(1_000)] {
            let [fast, slow] = writes_of(Layout::Dynamic, write, flush_every);
            let ratio = fast * 100 / slow;
            assert!(
                (190..=200).contains(&ratio),
                "{write:?} {flush_every:?}: {fast} : {slow}"
            );
            let [fast, slow] = writes_of(Layout::Static, write, flush_every);
            let ratio = fast * 100 / slow;
            assert!(
                (100..=110).contains(&ratio),
                "{write:?} {flush_every:?}: {fast} : {slow}"
            );
        }
    }
}
