//! Measures the cost of one zio in the engine, in nanoseconds. Run it with `cargo bench -p dashpot-engine`.
//!
//! `zio` measures the whole path of a zio: submission, a store that takes no time, the hold until the target,
//! completion, reply, and all recording. The number of zios in flight is constant, because each step
//! completes one zio and submits the next.
//!
//! Recording cannot be switched off. `recording/zio` measures only what the engine records for a zio under a
//! constant delay, so `zio` less `recording/zio` is the path without recording. Events are optional. Their
//! cost, which includes computing the waits, is `zio/with_events` less `zio/in_flight`. `recording/waits`
//! measures computing the waits alone.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use dashpot_engine::histogram::Histogram;
use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_engine::{
    Action, ClientId, Command, CommandId, DiskConfig, DiskId, Duration, Engine, Event, Input,
    Instant, Op, Random, Zio, ZioId,
};

const DISK: DiskId = DiskId(0);

/// An engine that always has the same number of zios in flight.
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
            let zio = bench.zio(ZioId(id));
            bench.step(Input::Submit(zio));
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

    fn zio(&mut self, id: ZioId) -> Zio {
        Zio {
            id,
            device: DISK,
            client: ClientId(0),
            op: Op::Read,
            fua: false,
            call: None,
            offset: self.random.next_u64() % (1 << 30),
            length: 4096,
            arrived: self.now,
        }
    }

    /// Steps the engine, and carries out all actions that result.
    fn step(&mut self, input: Input<'_>) {
        self.engine.step(self.now, input, &mut self.actions);
        while let Some(action) = self.actions.pop() {
            self.act(action);
        }
    }

    /// Carries out an action. After a zio's reply, submits the zio again.
    fn act(&mut self, action: Action) {
        match action {
            Action::Start(id) | Action::StartDamaged(id, _) => {
                let done = Input::Done(id, Ok(()));
                self.engine.step(self.now, done, &mut self.actions);
            }
            Action::Complete(zio, _) => {
                let offered = self.now;
                let replied = Input::Replied { zio, offered };
                self.engine.step(self.now, replied, &mut self.actions);
                let again = Input::Submit(self.zio(zio));
                self.engine.step(self.now, again, &mut self.actions);
            }
            _ => {}
        }
    }

    /// Sends one zio through the engine, and takes its event.
    fn one_with_event(&mut self) {
        self.one();
        for event in self.engine.events() {
            black_box(event.waits());
        }
    }

    /// Sends one zio through the engine.
    fn one(&mut self) {
        if let Some(deadline) = self.engine.next_deadline() {
            self.now = deadline;
            self.step(Input::Tick);
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
        bench.engine.record_events(true);
        group.bench_function(BenchmarkId::new("with_events", depth), |b| {
            b.iter(|| bench.one_with_event());
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

fn recording(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("recording");
    let mut random = Random::new(9);
    let mut latenesses = || -> Vec<u64> { (0..4_096).map(|_| random.below(100_000)).collect() };
    let (lateness, reply) = (latenesses(), latenesses());
    let (mut latency, mut disk, mut rule) = Default::default();
    let mut at = 0;
    group.bench_function("histogram", |b| {
        b.iter(|| {
            at = (at + 1) % lateness.len();
            Histogram::record(&mut disk, lateness[at]);
        });
    });
    // Records the latency and the lateness of the zio, for the disk and for the rule.
    group.bench_function("zio", |b| {
        b.iter(|| {
            at = (at + 1) % lateness.len();
            Histogram::record(&mut latency, 10_000_000 + reply[at]);
            Histogram::record(&mut disk, lateness[at]);
            Histogram::record(&mut rule, lateness[at]);
        });
    });
    let event = event();
    group.bench_function("waits", |b| b.iter(|| black_box(&event).waits()));
    group.finish();
}

/// The event of a zio that a delay rule has held.
fn event() -> Event {
    let ten_ms = RuleSpec::delay(Duration::from_millis(10), None);
    let mut bench = Bench::new(&[ten_ms], 1, Duration::from_micros(1));
    bench.engine.record_events(true);
    bench.one();
    let event = bench.engine.events().next();
    event.expect("one zio has ended")
}

criterion_group!(benches, whole_path, lane_choice, recording);
criterion_main!(benches);
