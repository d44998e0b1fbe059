//! Tests that a step does only a bounded part of the work that is due, and asks for another step.

use dashpot_engine::inject::{GroupId, Mode, RuleId, RuleSpec};
use dashpot_engine::{
    Action, ClientId, Command, CommandId, DiskConfig, Duration, Engine, Errno, Input, Instant, Op,
    Release, Target, Wait, Zio, ZioId,
};

use crate::machine::DISK;

const ZIOS: u32 = 5_000;
/// The maximum number of zios that one step may complete.
const MOST: usize = 600;

fn ms(at: u64) -> Instant {
    Instant::from_nanos(at * 1_000_000)
}

fn read(id: ZioId, arrived: Instant) -> Zio {
    Zio {
        id,
        device: DISK,
        client: ClientId(0),
        op: Op::Read,
        fua: false,
        call: None,
        offset: 0,
        length: 512,
        arrived,
    }
}

/// Makes an engine in which one rule holds many zios for 10 ms each, all since time 0.
fn held(mode: Mode) -> Engine {
    let mut engine = Engine::new();
    engine.add_disk(DiskConfig { seed: 1 });
    let mut actions = Vec::new();
    let delay = RuleSpec {
        mode,
        ..RuleSpec::delay(Duration::from_millis(10), None)
    };
    let inject = Command::Inject {
        disk: DISK,
        group: GroupId(1),
        rules: vec![(RuleId(1), delay)],
    };
    engine.step(ms(0), Input::Command(CommandId(1), inject), &mut actions);
    for id in (0..ZIOS).map(ZioId) {
        engine.step(ms(0), Input::Submit(read(id, ms(0))), &mut actions);
    }
    obey(&mut engine, ms(0), &mut actions);
    engine
}

/// Carries out the engine's actions, as if the store and the transport took no time. Returns the number of
/// completed zios.
fn obey(engine: &mut Engine, now: Instant, actions: &mut Vec<Action>) -> usize {
    let mut completed = 0;
    while let Some(action) = actions.pop() {
        let input = match action {
            Action::Start(id) | Action::StartDamaged(id, _) => Input::Done(id, Ok(())),
            Action::Complete(zio, _) => {
                completed += 1;
                Input::Replied { zio, offered: now }
            }
            _ => continue,
        };
        engine.step(now, input, actions);
    }
    completed
}

/// Repeats steps while something is due at `now`. Returns the largest number of zios that one step began or
/// ended, and how many zios completed in total.
fn drain(engine: &mut Engine, now: Instant, first: Input<'_>) -> (usize, usize) {
    let (mut actions, mut most, mut completed) = (Vec::new(), 0, 0);
    engine.step(now, first, &mut actions);
    loop {
        most = most.max(actions.len());
        let outcome = |action: Action| match action {
            Action::Start(id) | Action::StartDamaged(id, _) => Input::Done(id, Ok(())),
            Action::Complete(zio, _) => Input::Replied { zio, offered: now },
            other => panic!("{other:?}"),
        };
        let is_answer = |action: &Action| matches!(action, Action::Answer(..));
        actions.retain(|action| !is_answer(action));
        let mut more = Vec::new();
        for action in actions.drain(..) {
            completed += usize::from(matches!(action, Action::Complete(..)));
            let mut next = Vec::new();
            engine.step(now, outcome(action), &mut next);
            most = most.max(next.len());
            more.append(&mut next);
        }
        if more.is_empty() && engine.next_deadline().is_none_or(|at| at > now) {
            return (most, completed);
        }
        engine.step(now, Input::Tick, &mut more);
        actions = more;
    }
}

#[test]
fn what_is_due_together_is_met_in_parts() {
    for mode in [Mode::Floor, Mode::Add] {
        let mut engine = held(mode);
        let mut actions = Vec::new();
        engine.step(ms(10), Input::Tick, &mut actions);
        assert!(actions.len() <= MOST, "{mode:?}: {}", actions.len());
        assert_eq!(
            engine.next_deadline(),
            Some(ms(10)),
            "{mode:?}: the rest is due now"
        );
        let mut completed = obey(&mut engine, ms(10), &mut actions);
        while engine.next_deadline().is_some() {
            engine.step(ms(10), Input::Tick, &mut actions);
            completed += obey(&mut engine, ms(10), &mut actions);
        }
        assert_eq!(completed, ZIOS as usize);
    }
}

#[test]
fn what_is_released_is_released_in_parts_and_at_once() {
    for (target, mode) in [
        (Target::Rule(RuleId(1)), Mode::Floor),
        (Target::All, Mode::Floor),
        (Target::Disk(DISK), Mode::Add),
    ] {
        let mut engine = held(mode);
        let clear = Command::Clear {
            target,
            release: Release::All,
        };
        let clear = Input::Command(CommandId(2), clear);
        let (most, completed) = drain(&mut engine, ms(1), clear);
        assert!(most <= MOST, "{target:?}: {most}");
        assert_eq!(completed, ZIOS as usize, "{target:?}");
        assert_eq!(engine.in_flight_total(DISK), 0);
        assert_eq!(engine.next_deadline(), None);
    }
}

/// If the id of a zio that is due for release is reused, the new zio must keep its own hold.
#[test]
fn an_id_that_is_used_again_is_not_released() {
    let mut engine = held(Mode::Floor);
    let mut actions = Vec::new();
    let clear = Command::Clear {
        target: Target::Disk(DISK),
        release: Release::All,
    };
    engine.step(ms(1), Input::Command(CommandId(2), clear), &mut actions);
    let last = ZioId(ZIOS - 1);
    engine.step(ms(1), Input::Abort(&[last]), &mut actions);
    let again = RuleSpec::delay(Duration::from_millis(10), None);
    let inject = Command::Inject {
        disk: DISK,
        group: GroupId(2),
        rules: vec![(RuleId(2), again)],
    };
    engine.step(ms(1), Input::Command(CommandId(3), inject), &mut actions);
    engine.step(ms(1), Input::Submit(read(last, ms(1))), &mut actions);
    obey(&mut engine, ms(1), &mut actions);
    drain(&mut engine, ms(1), Input::Tick);
    assert_eq!(engine.in_flight_total(DISK), 1);
    assert_eq!(engine.next_deadline(), Some(ms(11)));
}

/// Even if thousands of new zios arrive before the next tick, the engine completes all zios that were due.
#[test]
fn what_is_due_ends_faster_than_new_zios_come() {
    let mut engine = held(Mode::Floor);
    let (mut actions, mut completed) = (Vec::new(), 0);
    for id in (ZIOS..ZIOS + ZIOS / 2).map(ZioId) {
        engine.step(ms(10), Input::Submit(read(id, ms(10))), &mut actions);
        completed += obey(&mut engine, ms(10), &mut actions);
    }
    assert_eq!(completed, ZIOS as usize);
    assert_eq!(engine.next_deadline(), Some(ms(20)));
}

/// Makes an engine with a suspended disk, on which many zios have waited since time 0.
fn suspended(lasts: Option<Duration>) -> Engine {
    let mut engine = Engine::new();
    engine.add_disk(DiskConfig { seed: 1 });
    let mut actions = Vec::new();
    let suspend = Command::Suspend {
        disk: DISK,
        lasts,
        now: true,
    };
    engine.step(ms(0), Input::Command(CommandId(1), suspend), &mut actions);
    for id in (0..ZIOS).map(ZioId) {
        engine.step(ms(0), Input::Submit(read(id, ms(0))), &mut actions);
    }
    engine
}

#[test]
fn what_has_waited_for_its_disk_is_issued_in_parts_and_at_once() {
    let resume = Input::Command(CommandId(2), Command::Resume(DISK));
    for (lasts, at, first) in [
        (None, ms(1), resume),
        (Some(Duration::from_millis(2)), ms(2), Input::Tick),
    ] {
        let mut engine = suspended(lasts);
        let mut actions = Vec::new();
        engine.step(at, first, &mut actions);
        let waits = engine.in_flight(DISK);
        let waits = waits.filter(|zio| zio.wait == Wait::Suspended).count();
        assert!(waits >= ZIOS as usize - MOST, "{lasts:?}: {waits}");
        let begun = obey(&mut engine, at, &mut actions);
        let (most, completed) = drain(&mut engine, at, Input::Tick);
        let completed = begun + completed;
        assert!(most <= MOST, "{lasts:?}: {most}");
        assert_eq!(completed, ZIOS as usize, "{lasts:?}");
        assert_eq!(engine.next_deadline(), None);
    }
}

/// While a disk issues its suspended zios, new zios must not overtake them, and another suspension must take
/// effect at once.
#[test]
fn what_comes_while_a_disk_resumes_is_issued_behind() {
    let mut engine = suspended(None);
    let (mut actions, mut started) = (Vec::new(), Vec::new());
    let command = |id, command| Input::Command(CommandId(id), command);
    engine.step(ms(1), command(2, Command::Resume(DISK)), &mut actions);
    engine.step(ms(1), Input::Submit(read(ZioId(ZIOS), ms(1))), &mut actions);
    engine.step(ms(1), Input::Tick, &mut actions);
    let suspend = Command::Suspend {
        disk: DISK,
        lasts: None,
        now: true,
    };
    engine.step(ms(1), command(3, suspend), &mut actions);
    while engine.next_deadline() == Some(ms(1)) {
        engine.step(ms(1), Input::Tick, &mut actions);
    }
    let is_start = |action: &Action| matches!(action, Action::Start(_));
    assert!(actions.iter().filter(|action| is_start(action)).count() <= 2 * MOST);
    engine.step(ms(2), command(4, Command::Resume(DISK)), &mut actions);
    while engine.next_deadline().is_some() {
        engine.step(ms(2), Input::Tick, &mut actions);
    }
    for action in actions {
        if let Action::Start(id) = action {
            started.push(id.0);
        }
    }
    assert_eq!(started, (0..=ZIOS).collect::<Vec<_>>());
}

#[test]
fn what_fails_at_the_end_fails_in_parts_and_at_once() {
    let fail = || Input::Command(CommandId(2), Command::FailHeld(Errno::Shutdown));
    for mut engine in [held(Mode::Floor), held(Mode::Add), suspended(None)] {
        let (most, completed) = drain(&mut engine, ms(1), fail());
        assert!(most <= MOST, "{most}");
        assert_eq!(completed, ZIOS as usize);
        assert_eq!(engine.in_flight_total(DISK), 0);
        assert_eq!(engine.next_deadline(), None);
    }
}

/// If the id of a zio that is due to fail is reused, the new zio must fail only once.
#[test]
fn an_id_that_is_used_again_fails_once() {
    let mut engine = suspended(None);
    let mut actions = Vec::new();
    let fail = Command::FailHeld(Errno::Shutdown);
    engine.step(ms(1), Input::Command(CommandId(2), fail), &mut actions);
    let last = ZioId(ZIOS - 1);
    engine.step(ms(1), Input::Abort(&[last]), &mut actions);
    engine.step(ms(1), Input::Submit(read(last, ms(1))), &mut actions);
    while engine.next_deadline().is_some() {
        engine.step(ms(1), Input::Tick, &mut actions);
    }
    let of_last =
        |action: &&Action| matches!(action, Action::Complete(zio, Err(_)) if *zio == last);
    assert_eq!(actions.iter().filter(of_last).count(), 1);
}
