//! Tests that the engine has separate counts for holds that ended late because the host had stopped the
//! driver.

use dashpot_engine::inject::{Count, Effect, GroupId, Mode, RuleId, RuleSpec};
use dashpot_engine::{
    Action, ClientId, Command, CommandId, DiskConfig, Duration, Engine, Errno, Input, Instant, Op,
    Zio, ZioId,
};
use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

use crate::machine::DISK;

const DELAY: u64 = 100;

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

/// A disk with one rule, which has no lanes and holds each zio for [`DELAY`].
struct Bench {
    engine: Engine,
    actions: Vec<Action>,
}

impl Bench {
    fn new(mode: Mode) -> Bench {
        let mut engine = Engine::new();
        engine.add_disk(DiskConfig { seed: 1 });
        let delay = RuleSpec {
            mode,
            ..RuleSpec::delay(Duration::from_nanos(DELAY), None)
        };
        let inject = Command::Inject {
            disk: DISK,
            group: GroupId(1),
            rules: vec![(RuleId(1), delay)],
        };
        let mut bench = Bench {
            engine,
            actions: Vec::new(),
        };
        bench.step(0, Input::Command(CommandId(1), inject));
        bench
    }

    /// Steps the engine. The store takes no time, and a reply leaves at once.
    fn step(&mut self, now: u64, input: Input<'_>) {
        self.engine.step(at(now), input, &mut self.actions);
        while let Some(action) = self.actions.pop() {
            let next = match action {
                Action::Start(id) | Action::StartDamaged(id, _) => Input::Done(id, Ok(())),
                Action::Complete(zio, _) => Input::Replied {
                    zio,
                    offered: at(now),
                },
                _ => continue,
            };
            self.engine.step(at(now), next, &mut self.actions);
        }
    }

    fn submit(&mut self, now: u64, id: u32) {
        let zio = Zio {
            id: ZioId(id),
            device: DISK,
            client: ClientId(0),
            op: Op::Read,
            fua: false,
            call: None,
            offset: 0,
            length: 512,
            arrived: at(now),
        };
        self.step(now, Input::Submit(zio));
    }

    /// Lets the driver run again after a stop.
    fn wake(&mut self, from: u64, until: u64) {
        let (from, now) = (at(from), until);
        let until = at(until);
        self.step(now, Input::Stopped { from, until });
        self.step(now, Input::Tick);
    }

    /// How many holds have ended, and the smallest and the largest lateness of those that a stop delayed.
    fn counted(&self, now: u64) -> (u64, Option<(u64, u64)>) {
        let mut rules = self.engine.rules(DISK, at(now));
        let stats = &rules.next().expect("the rule").present.stats;
        let stopped = stats.holds.stopped();
        let extremes = stopped.and_then(|all| Some((all.min()?, all.max()?)));
        (stats.held, extremes)
    }
}

#[test]
fn holds_that_end_while_the_driver_is_stopped_are_told_apart() {
    for mode in [Mode::Floor, Mode::Add] {
        let mut bench = Bench::new(mode);
        // The holds are due at 100, 110, 200 and 300 ns; the driver is stopped from 150 to 250 ns.
        for (now, id) in [(0, 0), (10, 1), (100, 2)] {
            bench.submit(now, id);
        }
        // The first hold ends in time. The second hold ends 30 ns late, but not because of a stop.
        bench.step(100, Input::Tick);
        bench.step(140, Input::Tick);
        assert_eq!(bench.counted(140), (2, None), "{mode:?}");
        bench.wake(150, 250);
        assert_eq!(bench.counted(250), (3, Some((50, 50))), "{mode:?}");
        bench.submit(255, 0);
        bench.step(360, Input::Tick);
        assert_eq!(bench.counted(360), (4, Some((50, 50))), "{mode:?}");
    }
}

#[test]
fn only_the_rule_that_holds_a_zio_measures_the_hold() {
    let mut bench = Bench::new(Mode::Floor);
    let longer = RuleSpec::delay(Duration::from_nanos(2 * DELAY), None);
    let effect = Effect::Fail {
        errno: Errno::Io,
        work: false,
        delay: longer.effect.delay().cloned(),
    };
    let fail = RuleSpec {
        count: Count::first(1),
        ..RuleSpec::new(effect)
    };
    for (id, spec) in [(2, longer), (3, fail)] {
        let inject = Command::Inject {
            disk: DISK,
            group: GroupId(id),
            rules: vec![(RuleId(id), spec)],
        };
        bench.step(0, Input::Command(CommandId(id.into()), inject));
    }
    // The first zio fails after its delay, and the longer of the two other rules holds the second.
    bench.submit(0, 0);
    bench.submit(0, 1);
    bench.step(3 * DELAY, Input::Tick);
    let rules = bench.engine.rules(DISK, at(3 * DELAY));
    let measured = rules.map(|rule| {
        let stats = &rule.present.stats;
        let late = stats
            .holds
            .lateness()
            .map(|all| (all.count(), all.max().unwrap_or_default()));
        (stats.held, stats.failed, stats.beaten, late)
    });
    let late = Some((1, DELAY));
    assert_eq!(
        measured.collect::<Vec<_>>(),
        [(0, 0, 1, None), (1, 0, 0, late), (0, 1, 0, late)]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Submits a zio every nanosecond to a driver that wakes up every nanosecond, except during random stops.
    /// The engine must count a hold as delayed by a stop if, and only if, the hold fell due during a stop.
    #[test]
    fn those_that_fell_due_in_a_stop_are_counted(stops in proptest::collection::vec((1_u64..400, 1_u64..400), 1..20)) {
        let mut bench = Bench::new(Mode::Floor);
        let (mut now, mut id, mut stopped) = (1, 0, 0);
        for (awake, asleep) in stops {
            for _ in 0..awake {
                bench.submit(now, id);
                id += 1;
                now += 1;
                bench.step(now, Input::Tick);
            }
            // `now` is excluded, because the last step has just ended the hold that was due then.
            let due = |issued: u64| issued + DELAY > now && issued + DELAY < now + asleep;
            stopped += (now - awake..now).filter(|issued| due(*issued)).count() as u64;
            bench.wake(now, now + asleep);
            now += asleep;
            // All zios of this stop end before the next stop.
            now += DELAY;
            bench.step(now, Input::Tick);
        }
        let mut rules = bench.engine.rules(DISK, at(now));
        let holds = &rules.next().expect("the rule").present.stats.holds;
        let counted = holds.stopped().map_or(0, |all| all.count());
        prop_assert_eq!(counted, stopped);
    }
}
