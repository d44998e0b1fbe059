//! What one zio costs in the engine, in nanoseconds. `cargo bench -p dashpot-engine`.
//!
//! A zio is submitted, done by a store that takes no time, held until its target, completed and
//! replied to, with everything recorded. So many others are in flight all the while: each step
//! forward completes one and submits the next.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use dashpot_engine::histogram::Histogram;
use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_engine::{
    Action, ClientId, Command, CommandId, DiskConfig, DiskId, Duration, Engine, Input, Instant, Op,
    Random, Zio, ZioId,
};

const DISK: DiskId = DiskId(0);

/// An engine at a constant depth.
struct Bench {
    engine: Engine,
    now: Instant,
    actions: Vec<Action>,
    random: Random,
}

impl Bench {
    fn new(rules: &[RuleSpec], depth: u32, spacing: Duration) -> Bench {
        let mut bench = Bench {
            engine: Engine::new(),
            now: Instant::ZERO,
            actions: Vec::new(),
            random: Random::new(5),
        };
        bench.engine.add_disk(DiskConfig { seed: 1 });
        bench.inject(rules);
        for id in 0..depth {
            bench.now = bench.now + spacing;
            bench.submit(ZioId(id));
        }
        bench
    }

    fn inject(&mut self, rules: &[RuleSpec]) {
        let rules = (1..).map(RuleId).zip(rules.iter().cloned()).collect();
        let inject = Command::Inject {
            disk: DISK,
            group: GroupId(1),
            rules,
        };
        self.step(Input::Command(CommandId(1), inject));
    }

    fn submit(&mut self, id: ZioId) {
        let zio = Zio {
            id,
            device: DISK,
            client: ClientId(0),
            op: Op::Read,
            fua: false,
            offset: self.random.next_u64() % (1 << 30),
            length: 4096,
            arrived: self.now,
        };
        self.step(Input::Submit(zio));
    }

    /// Steps, and does what is asked for; a zio that was replied to is submitted again.
    fn step(&mut self, input: Input<'_>) -> Option<ZioId> {
        let mut actions = std::mem::take(&mut self.actions);
        let mut replied = None;
        self.engine.step(self.now, input, &mut actions);
        let mut at = 0;
        while at < actions.len() {
            match actions[at] {
                Action::Start(id) => {
                    self.engine
                        .step(self.now, Input::Done(id, Ok(())), &mut actions);
                }
                Action::Complete(zio, _) => {
                    let offered = self.now;
                    self.engine
                        .step(self.now, Input::Replied { zio, offered }, &mut actions);
                    replied = Some(zio);
                }
                _ => {}
            }
            at += 1;
        }
        actions.clear();
        self.actions = actions;
        replied
    }

    /// One zio through the engine.
    fn one(&mut self) {
        let Some(deadline) = self.engine.next_deadline() else {
            return;
        };
        self.now = deadline;
        if let Some(id) = self.step(Input::Tick) {
            self.submit(id);
        }
    }
}

fn whole_path(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("zio");
    let ten_ms = [RuleSpec::delay(Duration::from_millis(10), None)];
    for depth in [32, 1_000, 100_000] {
        let spacing = Duration::from_nanos(10_000_000 / u64::from(depth));
        let mut bench = Bench::new(&ten_ms, depth, spacing);
        group.bench_function(BenchmarkId::new("in_flight", depth), |b| {
            b.iter(|| bench.one());
        });
    }
    group.finish();
}

fn lane_choice(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lanes");
    for (rules, lanes) in [
        (1, 1),
        (1, 8),
        (1, 1_024),
        (1, 65_534),
        (8, 1),
        (64, 1),
        (64, 1_024),
    ] {
        let delay = Duration::from_millis(10);
        let rules = vec![RuleSpec::delay(delay, Some(lanes)); rules];
        let mut bench = Bench::new(&rules, 32, Duration::from_micros(10));
        let id = BenchmarkId::new(format!("rules_{}", rules.len()), lanes);
        group.bench_function(id, |b| b.iter(|| bench.one()));
    }
    group.finish();
}

fn record(criterion: &mut Criterion) {
    let mut random = Random::new(9);
    let latencies: Vec<u64> = (0..4_096)
        .map(|_| random.next_u64() >> (20 + random.below(24)))
        .collect();
    let mut histogram = Histogram::default();
    let mut at = 0;
    criterion.bench_function("histogram/record", |b| {
        b.iter(|| {
            at = (at + 1) % latencies.len();
            histogram.record(latencies[at]);
        });
    });
}

criterion_group!(benches, whole_path, lane_choice, record);
criterion_main!(benches);
