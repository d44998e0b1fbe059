//! Measures the cost of a client's write to a volume, including all work that follows from it: the throttle,
//! the write's txg, the queue, the disk, and all counters.
//!
//! Run it with `cargo bench -p dashpot-engine --bench pool`.

use std::collections::VecDeque;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dashpot_engine::pool::{
    Layout, PoolConfig, PoolDisk, ThrottleConfig, Tunable, Tunables, VolumeConfig, WritePolicy,
};
use dashpot_engine::{
    Action, ClientId, DiskConfig, Duration, Engine, Input, Instant, Op, PoolId, Random, VolumeId,
    Zio, ZioId,
};

const BLOCK: u64 = 8 << 10;
const BLOCKS: u64 = 1 << 17;

/// A pool of one disk, and a client that writes to it as fast as the disk can.
struct Bench {
    engine: Engine,
    now: Instant,
    working: VecDeque<(Instant, ZioId)>,
    actions: Vec<Action>,
    random: Option<Random>,
    next: u64,
}

impl Bench {
    fn new(random: bool) -> Bench {
        let mut engine = Engine::new();
        let disk = engine.add_disk(DiskConfig { seed: 1 });
        let size = BLOCKS * BLOCK;
        let mut tunables = Tunables::new(8 << 30);
        tunables
            .set(Tunable::DirtyDataMax, 256 << 20)
            .expect("within bounds");
        let member = PoolDisk {
            disk,
            size,
            rotational: false,
        };
        let pool = PoolConfig {
            members: vec![vec![member]],
            layout: Layout::Static,
            throttle: ThrottleConfig::OpenZfs,
            tunables,
        };
        engine.add_pool(pool, Instant::ZERO).expect("a pool");
        let volume = VolumeConfig {
            pool: PoolId(0),
            size,
            block_size: BLOCK as u32,
            write: WritePolicy::Back,
        };
        engine.add_volume(volume).expect("a volume");
        Bench {
            engine,
            now: Instant::ZERO,
            working: VecDeque::new(),
            actions: Vec::new(),
            random: random.then(|| Random::new(1)),
            next: 0,
        }
    }

    fn write(&mut self) {
        self.now = self.now + Duration::from_micros(80);
        while let Some((at, id)) = self.working.front().copied() {
            if at > self.now {
                break;
            }
            self.working.pop_front();
            self.step(Input::Done(id, Ok(())));
        }
        let block = match &mut self.random {
            Some(random) => random.below(BLOCKS),
            None => self.next % BLOCKS,
        };
        self.next += 1;
        self.step(Input::SubmitToVolume(Zio {
            id: ZioId((self.next % 1_024) as u32),
            device: VolumeId(0),
            client: ClientId(0),
            op: Op::Write,
            fua: false,
            call: None,
            offset: block * BLOCK,
            length: BLOCK as u32,
            arrived: self.now,
        }));
    }

    fn step(&mut self, input: Input<'_>) {
        let mut actions = std::mem::take(&mut self.actions);
        self.engine.step(self.now, input, &mut actions);
        let mut at = 0;
        while let Some(action) = actions.get(at) {
            at += 1;
            match action {
                Action::Start(id) | Action::StartDamaged(id, _) => {
                    let done = self.now + Duration::from_micros(75);
                    self.working.push_back((done, *id));
                }
                Action::Complete(zio, _) => {
                    let replied = Input::Replied {
                        zio: *zio,
                        offered: self.now,
                    };
                    self.engine.step(self.now, replied, &mut actions);
                }
                Action::Move(_)
                | Action::Drop(_)
                | Action::Ended { .. }
                | Action::Record(_)
                | Action::Answer(..) => {}
            }
        }
        actions.clear();
        self.actions = actions;
    }
}

/// The number of writes in one measurement. They fill several txgs, so that each kind of work of a txg has
/// its usual share of the cost.
const WRITES: u64 = 500_000;

fn writes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pool/write");
    group
        .throughput(Throughput::Elements(WRITES))
        .sample_size(10);
    for (name, random) in [("sequential", false), ("random", true)] {
        let mut bench = Bench::new(random);
        group.bench_function(name, |bencher| {
            bencher.iter(|| (0..WRITES).for_each(|_| bench.write()));
        });
    }
    group.finish();
}

criterion_group!(benches, writes);
criterion_main!(benches);
