//! Tests, on random histories, that the engine and the naive model agree, and that the engine keeps its
//! promises.
//!
//! A history that fails is written to `properties.regressions` next to this file, and is tried first from
//! then on. Keep its line in that file. `PROPTEST_CASES=10000` tries more histories than the default.

use std::collections::BTreeMap;

use dashpot_engine::inject::{Mode, RuleSpec};
use dashpot_engine::{Duration, Engine, Instant, Op, OpSet, Wait, ZioId};
use proptest::prelude::{ProptestConfig, TestCaseError, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::FileFailurePersistence;

use crate::driver::{Ask, Driver, End};
use crate::history::{Ending, Event, History, Play, Scope, histories};
use crate::machine::{DISK, Machine, RuleState, Waiting};
use crate::naive::Naive;

const REGRESSIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/model/properties.regressions"
);

pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(REGRESSIONS))),
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_engine_agrees_with_the_model_on_lanes(history in histories(Scope::LANES)) {
        agree(&history)?;
    }

    #[test]
    fn the_engine_agrees_with_the_model_on_everything(history in histories(Scope::ALL)) {
        agree(&history)?;
    }

    #[test]
    fn the_engine_agrees_with_the_model_when_it_is_woken_late(
        history in histories(Scope { late: true, ..Scope::ALL })
    ) {
        agree(&history)?;
    }

    #[test]
    fn the_engine_agrees_with_the_model_at_the_edges_of_numbers(
        history in histories(Scope { extremes: true, ..Scope::ALL })
    ) {
        agree(&history)?;
    }

    #[test]
    fn nothing_completes_before_its_target(
        history in histories(Scope { late: true, extremes: true, ..Scope::ALL })
    ) {
        keep_targets(&history)?;
    }

    #[test]
    fn the_engine_keeps_its_promises(
        history in histories(Scope { extremes: true, ..Scope::ALL })
    ) {
        keep_promises(&history)?;
    }
}

/// Plays the history on the engine and on the model, side by side.
fn agree(history: &History) -> Result<(), TestCaseError> {
    let mut engine = Play::<Engine>::new(history);
    let mut model = Play::<Naive>::new(history);
    for (gap, event) in &history.events {
        engine.after(*gap, event);
        model.after(*gap, event);
        compare(&engine.driver, &model.driver)?;
    }
    engine.end(history.ending);
    model.end(history.ending);
    compare(&engine.driver, &model.driver)
}

fn compare(engine: &Driver<Engine>, model: &Driver<Naive>) -> Result<(), TestCaseError> {
    let (now, left, right) = (engine.now, engine.log(), model.log());
    prop_assert_eq!(left.starts, right.starts, "starts, at {:?}", now);
    prop_assert_eq!(left.ends, right.ends, "ends, at {:?}", now);
    prop_assert_eq!(left.answers, right.answers, "answers, at {:?}", now);
    prop_assert_eq!(engine.machine.is_suspended(), model.machine.is_suspended());
    let (left, right) = (
        engine.machine.rule_states(now),
        model.machine.rule_states(now),
    );
    prop_assert_eq!(left, right, "rules, at {:?}", now);
    let (left, right) = (
        engine.machine.states_since_update(now),
        model.machine.states_since_update(now),
    );
    prop_assert_eq!(left, right, "rules since their updates, at {:?}", now);
    let (left, right) = (engine.machine.waits(), model.machine.waits());
    let places = |waiting: &[Waiting]| -> Vec<(ZioId, Wait)> {
        waiting
            .iter()
            .map(|waiting| (waiting.zio, waiting.wait))
            .collect()
    };
    prop_assert_eq!(places(&left), places(&right), "waits, at {:?}", now);
    for (left, right) in left.iter().zip(&right) {
        let held = matches!(right.wait, Wait::HeldBefore | Wait::Held | Wait::Hung);
        if held && right.target.is_some() {
            prop_assert_eq!(left.target, right.target, "{:?}, at {:?}", left.zio, now);
        }
    }
    Ok(())
}

/// Checks that the engine keeps a zio's target while nothing happens that may bring the target forward.
fn keep_targets(history: &History) -> Result<(), TestCaseError> {
    let mut play = Play::<Engine>::new(history);
    let mut targets: BTreeMap<usize, Instant> = BTreeMap::new();
    for (gap, event) in &history.events {
        if matches!(
            event,
            Event::Abort(_) | Event::Leave(_) | Event::Clear(..) | Event::Update(..)
        ) {
            continue;
        }
        play.after(*gap, event);
        let waits = play.driver.machine.waits();
        for serial in play.driver.alive() {
            let id = play.driver.id_of(serial);
            let wait = waits.iter().find(|wait| Some(wait.zio) == id);
            targets.extend(
                wait.and_then(|wait| wait.target)
                    .map(|target| (serial, target)),
            );
        }
    }
    play.driver.run();
    for (at, serial, _) in play.driver.log().ends {
        let target = targets.get(&serial);
        prop_assert!(
            target.is_none_or(|target| *target <= at),
            "zio {} of {:?}",
            serial,
            target
        );
    }
    Ok(())
}

/// Sends burst after burst of mixed zios, and aborts some. The engine must not need more memory after more
/// bursts.
#[test]
fn the_engine_does_not_grow_with_what_has_passed() {
    let delay = |ms, mode| RuleSpec {
        ops: OpSet::ALL,
        bandwidth: Some(512_000),
        mode,
        ..RuleSpec::delay(Duration::from_millis(ms), Some(3))
    };
    let rules = vec![(0, delay(2, Mode::Floor)), (1, delay(3, Mode::Add))];
    let mut play = Play::<Engine>::new(&History {
        seed: 1,
        grain: Duration::from_nanos(1),
        rules,
        events: Vec::new(),
        ending: Ending::Abort,
    });
    let mut round = |times: u32| {
        for _ in 0..times {
            let fua = true;
            play.after(
                0,
                &Event::Arrive(
                    20,
                    Ask {
                        fua,
                        ..Ask::new(Op::Write)
                    },
                ),
            );
            play.after(1, &Event::Abort(0x0ff0));
            play.driver.run();
        }
        let engine = format!("{:?}", play.driver.machine);
        (play.driver.ids_used(), engine.matches(',').count())
    };
    let once = round(10);
    assert_eq!(once.0, 20, "ids");
    assert_eq!(round(200), once);
}

/// Checks the engine's promises that can be checked without the model.
fn keep_promises(history: &History) -> Result<(), TestCaseError> {
    let mut play = Play::<Engine>::new(history);
    for (gap, event) in &history.events {
        play.after(*gap, event);
        for rule in play.driver.machine.rule_states(play.driver.now) {
            let left = add_up(&rule)?;
            prop_assert!(left <= play.driver.alive().len() as u64, "{:?}", rule);
        }
    }
    play.end(history.ending);
    for rule in play.driver.machine.rule_states(play.driver.now) {
        prop_assert_eq!((add_up(&rule)?, rule.now), (0, 0), "{:?}", rule);
    }
    every_zio_ended_once(&play.driver)?;
    statistics_follow_from_the_log(&play.driver)
}

/// Checks that `matched` is at least `chosen`, and that every chosen zio is in exactly one state, unless a
/// rule of another group gave the zio a later target. Returns how many unfinished zios now have a later
/// target from a rule of another group.
fn add_up(rule: &RuleState) -> Result<u64, TestCaseError> {
    let passed = rule.matched - rule.not_drawn - rule.not_counted;
    let states = rule.held
        + rule.overrun
        + rule.failed
        + rule.damaged
        + rule.spared
        + rule.aborted
        + rule.now;
    prop_assert!(rule.chosen <= passed, "{:?}", rule);
    prop_assert!(states <= rule.chosen, "{:?}", rule);
    // A matched zio was either chosen or beaten within its group. A chosen zio is either in one of the
    // states or was beaten by a rule of another group.
    let left = (passed - states).checked_sub(rule.beaten);
    prop_assert!(left.is_some(), "{:?}", rule);
    Ok(left.unwrap_or_default())
}

fn every_zio_ended_once(driver: &Driver<Engine>) -> Result<(), TestCaseError> {
    let log = driver.log();
    let mut serials: Vec<usize> = log.ends.iter().map(|(_, serial, _)| *serial).collect();
    serials.sort();
    prop_assert_eq!(serials, (0..driver.asks.len()).collect::<Vec<_>>());
    prop_assert_eq!(driver.machine.waits(), vec![]);
    Ok(())
}

/// Computes the disk's counters from the log, and compares them with the engine's.
fn statistics_follow_from_the_log(driver: &Driver<Engine>) -> Result<(), TestCaseError> {
    let log = driver.log();
    let now = driver.now;
    let stats = driver.machine.disk_stats(DISK, now).expect("the disk");
    let (mut aborted, mut depth_time, mut spans) = (0, 0_u128, Vec::new());
    for op in Op::ALL {
        let (mut completed, mut failed, mut bytes) = (0, 0, 0);
        for (at, serial, end) in &log.ends {
            let (arrived, ask) = driver.asks[*serial];
            if ask.op != op {
                continue;
            }
            depth_time += u128::from(at.since(arrived).as_nanos());
            spans.push((arrived, *at));
            match end {
                End::Dropped => aborted += 1,
                End::Completed(outcome) => {
                    completed += 1;
                    failed += u64::from(outcome.is_err());
                    bytes += outcome.map_or(0, |()| u64::from(ask.length));
                }
            }
        }
        let stats = stats.op(op);
        prop_assert_eq!(stats.completed, completed, "{:?}", op);
        prop_assert_eq!(stats.failed, failed, "{:?}", op);
        prop_assert_eq!(stats.bytes, bytes, "{:?}", op);
    }
    prop_assert_eq!(stats.aborted, aborted);
    let depths = stats.depths.summary();
    prop_assert_eq!(depths.depth_time, depth_time);
    prop_assert_eq!(depths.busy, length_of_union(spans));
    Ok(())
}

fn length_of_union(mut spans: Vec<(Instant, Instant)>) -> Duration {
    spans.sort();
    let (mut length, mut covered) = (Duration::ZERO, Instant::ZERO);
    for (from, to) in spans {
        length += to.since(from.max(covered));
        covered = covered.max(to);
    }
    length
}
