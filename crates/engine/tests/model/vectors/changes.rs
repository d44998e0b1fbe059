//! Tests of changes while zios are held: clears, aborts, updates, suspensions and the shutdown.

use super::*;

on_both_machines! {
    clearing_leaves_what_is_held
    releasing_completes_what_is_held
    an_aborted_reservation_is_given_back
    a_begun_service_is_not_given_back
    suspension_charges_at_resume
    a_resume_keeps_the_order_of_issue
    what_is_held_until_a_resume_goes_first
    suspension_is_answered_when_nothing_is_in_flight
    a_resume_refuses_those_that_wait_for_quiet
    a_release_of_the_whole_disk_frees_what_cleared_rules_hold
    a_hang_ends_with_its_rule
    an_update_moves_the_end_of_a_hang
    the_end_of_the_owner_ends_a_hang_and_no_delay
    suspension_ends_by_itself
    update_keeps_counters_and_bookings
    shutdown_fails_what_is_held
}

fn clearing_leaves_what_is_held<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 1)]);
    let held: Vec<usize> = (0..3).map(|_| driver.submit(read())).collect();
    driver.run_until(at(1));
    clear(&mut driver, 1, Release::Nothing);
    driver.submit(read());
    driver.abort(&held[1..2]);
    driver.run();
    assert_eq!(driver.end_of(held[2]).map(|(when, _)| when), Some(at(30)));
    assert_eq!(driver.end_of(3).map(|(when, _)| when), Some(at(1)));
}

fn releasing_completes_what_is_held<M: Machine>() {
    let mut driver = stack::<M>(&[lanes(10, 1), lanes(4, 1), add(lanes(100, 2))]);
    let store = ms(1);
    for _ in 0..2 {
        driver.submit(Ask { store, ..read() });
    }
    driver.run_until(at(2));
    clear(&mut driver, 1, Release::All);
    clear(&mut driver, 3, Release::All);
    // The lane of the second rule remains, and holds the zios until 4 ms and 8 ms. The store begins to work
    // on both zios now, at 2 ms.
    assert_eq!(completions(&mut driver), [4, 8]);
    assert_eq!(driver.log().starts, [(at(2), 0), (at(2), 1)]);
    assert_eq!(rule(&driver, 2).held, 2);
}

fn an_aborted_reservation_is_given_back<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 1)]);
    let zios: Vec<usize> = (0..5).map(|_| driver.submit(read())).collect();
    driver.run_until(at(15));
    driver.abort(&zios[2..4]);
    driver.run();
    let ends: Vec<_> = zios.iter().filter_map(|zio| driver.end_of(*zio)).collect();
    let completed = End::Completed(Ok(()));
    let expected = [
        (at(10), completed),
        (at(20), completed),
        (at(15), End::Dropped),
        (at(15), End::Dropped),
        (at(30), completed),
    ];
    assert_eq!(ends, expected);
    let state = rule(&driver, 1);
    assert_eq!((state.chosen, state.held, state.aborted), (5, 3, 2));
}

fn a_begun_service_is_not_given_back<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 1)]);
    let first = driver.submit(read());
    let second = driver.submit(read());
    driver.run_until(at(3));
    driver.abort(&[first]);
    driver.run();
    assert_eq!(driver.end_of(first), Some((at(3), End::Dropped)));
    let completed = End::Completed(Ok(()));
    assert_eq!(driver.end_of(second), Some((at(20), completed)));
}

fn suspend(lasts: Option<Duration>, now: bool) -> Command {
    let disk = DISK;
    Command::Suspend { disk, lasts, now }
}

fn suspension_charges_at_resume<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 1)]);
    let answer = driver.order(suspend(None, false));
    assert_eq!(answer, Answer::Suspended { in_flight: 0 });
    for ask in [read(), Ask::new(Op::Flush), read()] {
        driver.submit(ask);
    }
    driver.run_until(at(50));
    assert_eq!(rule(&driver, 1).matched, 0);
    let answer = driver.order(Command::Resume(DISK));
    assert_eq!(answer, Answer::Resumed { waiting: 3 });
    assert_eq!(completions(&mut driver), [60, 50, 70]);
}

/// A disk for two durable writes. One rule holds the first write for `held_ms` before the store's work.
/// Another rule holds one flush for 20 ms: the flush of the write that ends first.
fn first_of_two_durable_writes<M: Machine>(held_ms: u64) -> Driver<M> {
    let count = Count::first(1);
    let hold = add(of(RuleSpec::delay(ms(held_ms), None), Op::Write));
    let flush = of(lanes(20, 1), Op::Flush);
    stack::<M>(&[RuleSpec { count, ..hold }, RuleSpec { count, ..flush }])
}

fn a_resume_keeps_the_order_of_issue<M: Machine>() {
    let mut driver = first_of_two_durable_writes::<M>(0);
    driver.order(suspend(None, false));
    let fua = true;
    driver.submit(Ask { fua, ..write() });
    driver.submit(Ask { fua, ..write() });
    driver.run_until(at(50));
    driver.order(Command::Resume(DISK));
    assert_eq!(completions(&mut driver), [70, 50]);
}

fn what_is_held_until_a_resume_goes_first<M: Machine>() {
    let mut driver = first_of_two_durable_writes::<M>(10);
    let fua = true;
    driver.submit(Ask { fua, ..write() });
    driver.order(suspend(Some(ms(10)), true));
    driver.submit(Ask { fua, ..write() });
    assert_eq!(completions(&mut driver), [30, 10]);
}

fn suspension_is_answered_when_nothing_is_in_flight<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 1)]);
    let old = driver.submit(read());
    driver.run_until(at(5));
    let command = driver.command(suspend(None, false));
    let new = driver.submit(read());
    driver.run_until(at(100));
    assert!(driver.machine.is_suspended());
    assert_eq!(driver.end_of(old).map(|(when, _)| when), Some(at(10)));
    assert_eq!(driver.end_of(new), None);
    let suspended = Ok(Answer::Suspended { in_flight: 0 });
    assert_eq!(driver.log().answers[1..], [(at(10), command, suspended)]);
}

fn a_resume_refuses_those_that_wait_for_quiet<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 1)]);
    driver.submit(read());
    driver.run_until(at(5));
    let command = driver.command(suspend(None, false));
    driver.order(Command::Resume(DISK));
    let refused = Err(CommandError::Resumed);
    assert!(driver.log().answers.contains(&(at(5), command, refused)));
}

fn a_release_of_the_whole_disk_frees_what_cleared_rules_hold<M: Machine>() {
    let mut driver = pool::<M>(&[hang_first()]);
    let hung = driver.submit(read());
    driver.run_until(at(5));
    clear(&mut driver, 1, Release::Nothing);
    driver.run_until(at(50));
    assert_eq!(driver.end_of(hung), None);
    let target = Target::Disk(DISK);
    driver.order(Command::Clear {
        target,
        release: Release::All,
    });
    assert_eq!(driver.end_of(hung).map(|(when, _)| when), Some(at(50)));
}

/// A rule that hangs every read, and that ends 20 ms after it is armed or updated.
fn brief_hang(mode: Mode) -> RuleSpec {
    RuleSpec {
        when: When {
            lasts: Some(ms(20)),
            ..When::default()
        },
        mode,
        ..RuleSpec::new(Effect::Hang)
    }
}

fn a_hang_ends_with_its_rule<M: Machine>() {
    for (mode, started) in [(Mode::Floor, at(5)), (Mode::Add, at(20))] {
        let mut driver = pool::<M>(&[brief_hang(mode)]);
        driver.run_until(at(5));
        driver.submit(read());
        driver.run_until(at(6));
        let left = clear(&mut driver, 1, Release::Nothing);
        assert_eq!(left, Left { held: 1, hung: 0 });
        driver.run_until(at(25));
        driver.submit(read());
        assert_eq!(completions(&mut driver), [20, 25]);
        assert_eq!(driver.log().starts, [(started, 0), (at(25), 1)]);
    }
}

fn an_update_moves_the_end_of_a_hang<M: Machine>() {
    for (first, second) in [
        (RuleSpec::new(Effect::Hang), brief_hang(Mode::Floor)),
        (brief_hang(Mode::Add), brief_hang(Mode::Floor)),
    ] {
        let mut driver = pool::<M>(&[first]);
        driver.submit(read());
        driver.run_until(at(10));
        driver.order(Command::Update(RuleId(1), Box::new(second)));
        driver.submit(read());
        assert_eq!(completions(&mut driver), [30, 30]);
    }
}

fn the_end_of_the_owner_ends_a_hang_and_no_delay<M: Machine>() {
    let mut driver = pool::<M>(&[hang_first(), lanes(10, 1)]);
    driver.submit(read());
    driver.submit(read());
    driver.run_until(at(5));
    let left = [2, 1].map(|rule| clear(&mut driver, rule, Release::Hung));
    assert_eq!(left, [Left { held: 1, hung: 0 }, Left::default()]);
    assert_eq!(completions(&mut driver), [5, 10]);
}

fn suspension_ends_by_itself<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 1)]);
    driver.submit(read());
    let answer = driver.order(suspend(Some(ms(7)), true));
    assert_eq!(answer, Answer::Suspended { in_flight: 1 });
    driver.submit(read());
    assert_eq!(completions(&mut driver), [10, 20]);
    assert_eq!(driver.log().starts, [(at(0), 0), (at(7), 1)]);
    assert!(!driver.machine.is_suspended());
}

fn update_keeps_counters_and_bookings<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 2)]);
    for _ in 0..4 {
        driver.submit(read());
    }
    driver.order(Command::Update(RuleId(1), Box::new(lanes(5, 1))));
    driver.submit(read());
    assert_eq!(completions(&mut driver), [10, 10, 20, 20, 25]);
    assert_eq!(rule(&driver, 1).chosen, 5);
}

fn shutdown_fails_what_is_held<M: Machine>() {
    let mut driver = stack::<M>(&[lanes(10, 1), hang_first()]);
    driver.submit(read());
    driver.submit(read());
    driver.order(suspend(None, true));
    driver.submit(read());
    driver.run_until(at(1));
    driver.order(Command::FailHeld(Errno::Shutdown));
    let failed = (at(1), End::Completed(Err("ESHUTDOWN")));
    assert_eq!([0, 1, 2].map(|zio| driver.end_of(zio)), [Some(failed); 3]);
}
