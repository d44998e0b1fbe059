//! Published test vectors and figures, run on the engine and on the naive model.
//!
//! The vectors are zinject's (OpenZFS, `zio_handle_io_delay`). Other tests check properties that users of
//! several rules rely on.

use dashpot_engine::inject::{
    Count, Cycle, Delay, Effect, GroupId, Mode, QuantileTable, Ramp, RuleId, RuleSpec, Service,
    When,
};
use dashpot_engine::{
    Answer, ClientId, Command, CommandError, Duration, Engine, Errno, Instant, Left, Op, OpSet,
    Ratio, Release, Target,
};

use crate::driver::{Ask, Driver, End};
use crate::machine::{DISK, Machine, RuleState};
use crate::naive::Naive;

/// Declares each test twice: for the engine and for the naive model.
macro_rules! on_both_machines {
    ($($name:ident)*) => {
        mod engine {
            $(#[test] fn $name() { super::$name::<super::Engine>(); })*
        }
        mod model {
            $(#[test] fn $name() { super::$name::<super::Naive>(); })*
        }
    };
}

mod bandwidth;
mod changes;
mod effects;
mod lanes;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn read() -> Ask {
    Ask::new(Op::Read)
}

fn write() -> Ask {
    Ask::new(Op::Write)
}

/// A rule like zinject's `-D ms:lanes`.
fn lanes(service_ms: u64, lanes: u32) -> RuleSpec {
    RuleSpec::delay(ms(service_ms), Some(lanes))
}

fn of(spec: RuleSpec, op: Op) -> RuleSpec {
    let ops = OpSet::of(op);
    RuleSpec { ops, ..spec }
}

fn add(spec: RuleSpec) -> RuleSpec {
    let mode = Mode::Add;
    RuleSpec { mode, ..spec }
}

fn hang_first() -> RuleSpec {
    RuleSpec {
        count: Count::first(1),
        ..RuleSpec::new(Effect::Hang)
    }
}

/// A disk with these rules, which have the ids from 1 on and are all in one group.
fn pool<M: Machine>(rules: &[RuleSpec]) -> Driver<M> {
    let mut driver = Driver::new(1);
    for (spec, id) in rules.iter().zip(1..) {
        inject(&mut driver, 0, id, spec.clone());
    }
    driver
}

/// A disk with these rules, which have the ids from 1 on and are each in a group of their own.
fn stack<M: Machine>(rules: &[RuleSpec]) -> Driver<M> {
    let mut driver = Driver::new(1);
    for (spec, id) in rules.iter().zip(1..) {
        inject(&mut driver, id, id, spec.clone());
    }
    driver
}

fn inject<M: Machine>(driver: &mut Driver<M>, group: u32, id: u32, spec: RuleSpec) {
    let answer = driver.order(Command::Inject {
        disk: DISK,
        group: GroupId(group),
        rules: vec![(RuleId(id), spec)],
    });
    assert_eq!(answer, Answer::Done);
}

fn clear<M: Machine>(driver: &mut Driver<M>, id: u32, release: Release) -> Left {
    let answer = driver.order(Command::Clear {
        target: Target::Rule(RuleId(id)),
        release,
    });
    let Answer::Cleared(cleared, left) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(cleared, vec![RuleId(id)]);
    left
}

fn rule<M: Machine>(driver: &Driver<M>, id: u32) -> RuleState {
    let rules = driver.machine.rule_states(driver.now);
    rules
        .into_iter()
        .find(|r| r.id == RuleId(id))
        .expect("a rule")
}

/// Submits a request at the moment `when`, in ms.
fn submit<M: Machine>(driver: &mut Driver<M>, when: u64, ask: Ask) -> usize {
    driver.run_until(at(when));
    driver.submit(ask)
}

/// Waits until all zios have ended, and checks that none ended with an error. Returns when each zio ended, in
/// ms, in the order of submission.
fn completions<M: Machine>(driver: &mut Driver<M>) -> Vec<u64> {
    driver.run();
    let ended = |serial| match driver.end_of(serial) {
        Some((when, End::Completed(Ok(())))) => when.as_nanos() / 1_000_000,
        other => panic!("zio {serial}: {other:?}"),
    };
    (0..driver.asks.len()).map(ended).collect()
}

/// Submits reads at these moments, and returns when they complete, all in ms.
fn reads<M: Machine>(driver: &mut Driver<M>, arrivals: &[u64]) -> Vec<u64> {
    for when in arrivals {
        submit(driver, *when, read());
    }
    completions(driver)
}
