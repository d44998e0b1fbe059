//! Checks the events, which say how each finished zio has spent its time, in random histories and in cases
//! made by hand.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::inject::{Effect, GroupId, Mode, RuleId, RuleSpec};
use dashpot_engine::{
    Command, Duration, Engine, Errno, Event, LatencyKind, Op, OpSet, OpStats, Waits,
};
use proptest::prelude::{TestCaseError, prop_assert, prop_assert_eq, proptest};

use crate::driver::{Ask, Driver, End};
use crate::history::{History, Play, Scope, histories};
use crate::machine::DISK;
use crate::properties::config;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn waits_add_up_and_agree_with_the_histograms(history in histories(Scope::ALL)) {
        let driver = play(&history);
        events_agree(&driver)?;
        the_store_took_what_it_takes(&driver)?;
    }

    #[test]
    fn waits_add_up_when_the_engine_is_woken_late(
        history in histories(Scope { late: true, extremes: true, ..Scope::ALL })
    ) {
        events_agree(&play(&history))?;
    }
}

/// A driver that has played a whole history, and the events that it recorded.
struct Played {
    driver: Driver<Engine>,
    events: Vec<Event>,
}

fn play(history: &History) -> Played {
    let mut play = Play::<Engine>::new(history);
    play.driver.machine.record_events(true);
    for (gap, event) in &history.events {
        play.after(*gap, event);
    }
    play.end(history.ending);
    let mut driver = play.driver;
    let events = driver.machine.events().collect();
    Played { driver, events }
}

fn events_agree(played: &Played) -> Result<(), TestCaseError> {
    let ends = played.driver.log().ends;
    let completed = ends.iter().filter(|(_, _, end)| *end != End::Dropped);
    prop_assert_eq!(played.events.len(), completed.count());
    let stats = played.driver.machine.disk_stats(DISK, played.driver.now);
    let stats = stats.expect("the disk");
    for op in Op::ALL {
        let waits = played.events.iter().filter(|event| event.op == op);
        let waits: Vec<Waits> = waits.map(checked_waits).collect::<Result<_, _>>()?;
        let held = waits.iter().filter(|waits| waits.hold > Duration::ZERO);
        let late = held.map(|waits| waits.lateness);
        let stats = stats.op(op);
        is_recorded(stats, LatencyKind::Lateness, late)?;
        is_recorded(stats, LatencyKind::Disk, waits.iter().map(Waits::disk))?;
        is_recorded(stats, LatencyKind::Total, waits.iter().map(Waits::total))?;
    }
    Ok(())
}

fn checked_waits(event: &Event) -> Result<Waits, TestCaseError> {
    let waits = event.waits();
    prop_assert_eq!(
        waits.total(),
        event.ended.since(event.arrived),
        "{:?}",
        event
    );
    prop_assert_eq!(
        waits.disk(),
        event.offered.since(event.issued),
        "{:?}",
        event
    );
    let order = [
        event.issued,
        event.started,
        event.store_done,
        event.offered,
        event.ended,
    ];
    prop_assert!(order.is_sorted(), "{:?}", event);
    Ok(waits)
}

fn is_recorded(
    stats: &OpStats,
    kind: LatencyKind,
    spans: impl Iterator<Item = Duration>,
) -> Result<(), TestCaseError> {
    let mut expected = Histogram::default();
    spans.for_each(|span| expected.record(span.as_nanos()));
    let recorded = stats.latency(kind).unwrap_or_default();
    prop_assert_eq!(*recorded, expected, "{:?}", kind);
    Ok(())
}

/// Checks, for a driver that is never late, that events report the time that the store took.
fn the_store_took_what_it_takes(played: &Played) -> Result<(), TestCaseError> {
    let log = played.driver.log();
    let completed = |serial: &usize| {
        let end = log.ends.iter().find(|(_, other, _)| other == serial);
        end.is_some_and(|(_, _, end)| *end != End::Dropped)
    };
    let worked = log.starts.iter().map(|(_, serial)| serial);
    let asked = worked.filter(|serial| completed(serial));
    let asked: u64 = asked
        .map(|serial| played.driver.asks[*serial].1.store.as_nanos())
        .sum();
    let told: u64 = played
        .events
        .iter()
        .map(|event| event.waits().store.as_nanos())
        .sum();
    prop_assert_eq!(told, asked);
    Ok(())
}

/// How long one zio waits under some rules, in milliseconds: suspend, store, hold, lateness.
fn waits_of(ask: Ask, rules: &[RuleSpec], grain_ms: u64) -> [u64; 4] {
    let mut driver = driver(rules, grain_ms);
    driver.submit(ask);
    driver.run();
    told(&mut driver)
}

fn driver(rules: &[RuleSpec], grain_ms: u64) -> Driver<Engine> {
    let mut driver = Driver::<Engine>::late(1, Duration::from_millis(grain_ms));
    driver.machine.record_events(true);
    for (id, rule) in (1..).zip(rules) {
        driver.order(Command::Inject {
            disk: DISK,
            group: GroupId(id),
            rules: vec![(RuleId(id), rule.clone())],
        });
    }
    driver
}

fn told(driver: &mut Driver<Engine>) -> [u64; 4] {
    let events: Vec<Event> = driver.machine.events().collect();
    assert_eq!(events.len(), 1, "{events:?}");
    let waits = events[0].waits();
    assert_eq!(
        waits.recv + waits.throttle + waits.queue + waits.reply,
        Duration::ZERO
    );
    let spans = [waits.suspend, waits.store, waits.hold, waits.lateness];
    spans.map(|span| span.as_nanos() / 1_000_000)
}

fn read(store_ms: u64) -> Ask {
    Ask {
        store: Duration::from_millis(store_ms),
        ..Ask::new(Op::Read)
    }
}

fn delay(ms: u64, mode: Mode) -> RuleSpec {
    RuleSpec {
        mode,
        ..RuleSpec::delay(Duration::from_millis(ms), None)
    }
}

#[test]
fn a_hold_is_told_from_the_store_and_from_lateness() {
    let (floor, add) = (delay(10, Mode::Floor), delay(10, Mode::Add));
    let fail = |work| {
        RuleSpec::new(Effect::Fail {
            errno: Errno::Io,
            work,
            delay: None,
        })
    };
    for (store, rules, grain, waits) in [
        (3, vec![], 1, [0, 3, 0, 0]),
        (3, vec![floor.clone()], 1, [0, 3, 7, 0]),
        (3, vec![floor.clone()], 4, [0, 4, 6, 2]),
        (15, vec![floor.clone()], 1, [0, 15, 0, 0]),
        (3, vec![add.clone()], 1, [0, 3, 10, 0]),
        // Here the driver asks the store 2 ms late, and learns 1 ms late that the store has finished.
        (3, vec![add.clone()], 4, [0, 4, 10, 2]),
        // The hold after the store makes up for the lateness of the hold before it.
        (
            3,
            vec![delay(5, Mode::Add), delay(10, Mode::Floor)],
            6,
            [0, 6, 9, 3],
        ),
        (3, vec![fail(false)], 1, [0, 0, 0, 0]),
        (3, vec![fail(true)], 1, [0, 3, 0, 0]),
    ] {
        assert_eq!(
            waits_of(read(store), &rules, grain),
            waits,
            "{store} ms, {rules:?}"
        );
    }
}

#[test]
fn the_flush_of_a_fua_write_is_a_hold() {
    let ops = |ops, rule: RuleSpec| RuleSpec { ops, ..rule };
    let write = ops(OpSet::of(Op::Write), delay(10, Mode::Floor));
    let flush = ops(OpSet::of(Op::Flush), delay(5, Mode::Floor));
    let never = RuleSpec {
        range: Some((1 << 30, 1 << 31)),
        ..flush.clone()
    };
    let ask = Ask {
        fua: true,
        op: Op::Write,
        ..read(3)
    };
    assert_eq!(
        waits_of(ask, &[write.clone(), flush.clone()], 1),
        [0, 3, 12, 0]
    );
    assert_eq!(waits_of(ask, &[flush], 1), [0, 3, 5, 0]);
    assert_eq!(waits_of(ask, &[write, never], 4), [0, 4, 6, 2]);
}

#[test]
fn what_a_shutdown_fails_was_held_or_suspended_until_then() {
    let hang = RuleSpec::new(Effect::Hang);
    let suspend = Command::Suspend {
        disk: DISK,
        lasts: None,
        now: true,
    };
    for (rules, suspended, waits) in [
        (vec![hang], false, [0, 3, 17, 0]),
        (vec![delay(50, Mode::Add)], false, [0, 0, 20, 0]),
        (vec![], true, [20, 0, 0, 0]),
    ] {
        let mut driver = driver(&rules, 1);
        if suspended {
            driver.order(suspend.clone());
        }
        driver.submit(read(3));
        driver.run_until(driver.now + Duration::from_millis(20));
        driver.order(Command::FailHeld(Errno::Shutdown));
        assert_eq!(told(&mut driver), waits, "{rules:?}");
    }
}
