//! Published test vectors and figures, run on the engine and on the naive model.
//!
//! The vectors are zinject's (OpenZFS, `zio_handle_io_delay`). The other tests check properties on
//! which users of several rules rely.

use dashpot_engine::inject::{
    Effect, GroupId, Limit, Mode, QuantileTable, RuleId, RuleSpec, Service,
};
use dashpot_engine::{
    Answer, ClientId, Command, CommandError, Duration, Engine, Errno, Instant, Op, OpSet, Ratio,
    Target,
};

use crate::driver::{Ask, Driver, End};
use crate::machine::{DISK, Machine, RuleState};
use crate::naive::Naive;

/// Declares each test for both machines.
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

on_both_machines! {
    one_lane
    two_lanes
    the_lane_that_finishes_soonest
    ties_go_to_the_older_rule
    sixteen_lanes
    reads_and_writes_have_lanes_of_their_own
    two_rules_of_a_lane_are_a_rule_of_two
    closed_loops
    without_lanes_there_is_no_queue
    groups_stack
    a_rare_long_delay_shows_above_a_baseline
    adds_sum_up_before_the_store
    floor_and_add_together
    the_store_is_never_hastened
    a_hang_holds_one_zio_until_it_is_released
    errors_with_and_without_work
    flushes_only_when_named
    a_durable_write_is_charged_as_a_flush_too
    bandwidth_is_one_server_of_the_disk
    a_delay_is_not_beaten_by_a_bandwidth
    what_is_slower_than_one_rule_may_be_held_by_another
    an_aborted_zio_leaves_the_bandwidth_alone
    an_aborted_transfer_gives_its_place_back
    a_begun_transfer_is_not_given_back
    a_released_transfer_is_in_service_no_longer
    a_cleared_rule_leaves_the_bandwidth_to_others
    a_rule_without_its_bandwidth_leaves_it_to_others
    what_a_dead_client_queued_is_gone_with_its_rule
    a_transfer_on_its_way_is_alone_when_its_rule_is_gone
    backlog_counts_the_bandwidth
    a_released_zio_reaches_the_bandwidth_at_its_release
    limits_count_what_matched
    an_update_counts_from_one_again
    a_rule_begins_and_ends
    ranges_touch
    ranges_at_the_end_of_the_disk
    clients_match_by_glob
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
    suspension_ends_by_itself
    a_distribution_is_sampled_once
    update_keeps_counters_and_bookings
    shutdown_fails_what_is_held
}

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

/// zinject's `-D ms:lanes`.
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

/// A disk with these rules, with ids from 1, all in one group.
fn pool<M: Machine>(rules: &[RuleSpec]) -> Driver<M> {
    let mut driver = Driver::new(1);
    for (spec, id) in rules.iter().zip(1..) {
        inject(&mut driver, 0, id, spec.clone());
    }
    driver
}

/// A disk with these rules, with ids from 1, each in its own group.
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

fn clear<M: Machine>(driver: &mut Driver<M>, id: u32, release: bool) {
    let answer = driver.order(Command::Clear {
        target: Target::Rule(RuleId(id)),
        release,
    });
    assert_eq!(answer, Answer::Cleared(vec![RuleId(id)]));
}

fn rule<M: Machine>(driver: &Driver<M>, id: u32) -> RuleState {
    let rules = driver.machine.rule_states(driver.now);
    rules
        .into_iter()
        .find(|r| r.id == RuleId(id))
        .expect("a rule")
}

/// Submits at a moment, in ms.
fn submit<M: Machine>(driver: &mut Driver<M>, when: u64, ask: Ask) -> usize {
    driver.run_until(at(when));
    driver.submit(ask)
}

/// Lets all zios end without an error. Returns when each ended, in ms, in the order of submission.
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

fn one_lane<M: Machine>() {
    let targets = reads(&mut pool::<M>(&[lanes(10, 1)]), &[100, 100, 100, 104, 145]);
    assert_eq!(targets, [110, 120, 130, 140, 155]);
}

fn two_lanes<M: Machine>() {
    let targets = reads(&mut pool::<M>(&[lanes(10, 2)]), &[100, 100, 100, 100, 103]);
    assert_eq!(targets, [110, 110, 120, 120, 130]);
}

/// Submits ten reads at 100 ms, and returns their targets and the rules that hold them.
fn ten_reads<M: Machine>(rules: &[RuleSpec]) -> Vec<(u64, u32)> {
    let mut driver = pool::<M>(rules);
    driver.run_until(at(100));
    let mut holders = Vec::new();
    for _ in 0..10 {
        let serial = driver.submit(read());
        let id = driver.id_of(serial).expect("a zio that is held");
        let waiting = driver.machine.waits();
        let held = waiting.iter().find(|w| w.zio == id).expect("a view of it");
        holders.push(held.rule.expect("a rule that holds it").0);
    }
    completions(&mut driver).into_iter().zip(holders).collect()
}

fn the_lane_that_finishes_soonest<M: Machine>() {
    let expected = [
        (110, 1),
        (120, 1),
        (125, 2),
        (125, 2),
        (130, 1),
        (140, 1),
        (150, 1),
        (150, 2),
        (150, 2),
        (160, 1),
    ];
    assert_eq!(ten_reads::<M>(&[lanes(10, 1), lanes(25, 2)]), expected);
}

fn ties_go_to_the_older_rule<M: Machine>() {
    let targets = ten_reads::<M>(&[lanes(25, 2), lanes(10, 1)]);
    let ties: Vec<_> = targets.iter().filter(|(ms, _)| *ms == 150).collect();
    assert_eq!(ties, [&(150, 1), &(150, 1), &(150, 2)]);
}

fn sixteen_lanes<M: Machine>() {
    let targets = reads(&mut pool::<M>(&[lanes(16, 16)]), &[100; 17]);
    let mut expected = vec![116; 16];
    expected.push(132);
    assert_eq!(targets, expected);
}

fn reads_and_writes_have_lanes_of_their_own<M: Machine>() {
    let rules = [of(lanes(10, 1), Op::Read), of(lanes(30, 1), Op::Write)];
    let mut driver = pool::<M>(&rules);
    submit(&mut driver, 100, read());
    submit(&mut driver, 100, write());
    submit(&mut driver, 101, write());
    submit(&mut driver, 102, read());
    assert_eq!(completions(&mut driver), [110, 130, 160, 120]);
}

fn two_rules_of_a_lane_are_a_rule_of_two<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 1), lanes(10, 1)]);
    assert_eq!(reads(&mut driver, &[100; 4]), [110, 110, 120, 120]);
    let (older, younger) = (rule(&driver, 1), rule(&driver, 2));
    assert_eq!((older.matched, older.chosen, older.beaten), (4, 2, 2));
    assert_eq!((younger.matched, younger.chosen, younger.beaten), (4, 2, 2));
}

/// Simulates a client that keeps `depth` reads in flight. Once the pattern repeats, returns the sum
/// of their latencies, in ms, and their number over 450 ms, which all lanes below divide.
fn closed_loop<M: Machine>(rules: &[RuleSpec], depth: usize) -> (u64, u64) {
    let (from, to) = (at(450), at(900));
    let mut driver = pool::<M>(rules);
    let mut open: Vec<usize> = (0..depth).map(|_| driver.submit(read())).collect();
    let (mut sum, mut count) = (0, 0);
    for when in 1..=900 {
        driver.run_until(at(when));
        for serial in &mut open {
            let Some((end, _)) = driver.end_of(*serial) else {
                continue;
            };
            if from < end && end <= to {
                sum += end.since(driver.asks[*serial].0).as_nanos() / 1_000_000;
                count += 1;
            }
            *serial = driver.submit(read());
        }
    }
    (sum, count)
}

fn closed_loops<M: Machine>() {
    // Mean latency = sum ÷ count: 10, 40, 20, 10, 22.5 and 44.4 ms.
    let mixed = [lanes(10, 1), lanes(25, 2)];
    assert_eq!(closed_loop::<M>(&[lanes(10, 1)], 1), (450, 45));
    assert_eq!(closed_loop::<M>(&[lanes(10, 1)], 4), (1_800, 45));
    assert_eq!(closed_loop::<M>(&[lanes(10, 2)], 4), (1_800, 90));
    assert_eq!(closed_loop::<M>(&mixed, 1), (450, 45));
    assert_eq!(closed_loop::<M>(&mixed, 3), (1_350, 60));
    assert_eq!(closed_loop::<M>(&mixed, 8), (3_600, 81));
}

fn without_lanes_there_is_no_queue<M: Machine>() {
    let mut driver = pool::<M>(&[RuleSpec::delay(ms(10), None)]);
    assert_eq!(reads(&mut driver, &[100; 256]), [110; 256]);
    assert_eq!(rule(&driver, 1).backlog, Duration::ZERO);
}

fn groups_stack<M: Machine>() {
    let mut driver = stack::<M>(&[lanes(2, 1), lanes(50, 4)]);
    assert_eq!(reads(&mut driver, &[0, 0, 0]), [50, 50, 50]);
    let (short, long) = (rule(&driver, 1), rule(&driver, 2));
    assert_eq!((short.matched, short.chosen, short.held), (3, 3, 0));
    assert_eq!((long.matched, long.chosen, long.held), (3, 3, 3));
}

fn a_rare_long_delay_shows_above_a_baseline<M: Machine>() {
    let rare = RuleSpec {
        chance: Ratio::new(1, 20),
        ..RuleSpec::delay(ms(500), None)
    };
    let mut driver = stack::<M>(&[RuleSpec::delay(ms(2), None), rare]);
    let ends = reads(&mut driver, &[0; 400]);
    let long = ends.iter().filter(|end| **end == 500).count();
    let short = ends.iter().filter(|end| **end == 2).count();
    assert_eq!(long + short, 400);
    assert!((10..40).contains(&long), "{long} of 400");
    let state = rule(&driver, 2);
    assert_eq!(state.not_drawn, short as u64);
    assert_eq!(state.held, long as u64);
}

fn adds_sum_up_before_the_store<M: Machine>() {
    let rules = [add(lanes(10, 1)), add(lanes(3, 1))];
    let mut driver = stack::<M>(&rules);
    let store = ms(4);
    driver.submit(Ask { store, ..read() });
    driver.submit(Ask { store, ..read() });
    assert_eq!(completions(&mut driver), [17, 30]);
    assert_eq!(driver.log().starts, [(at(13), 0), (at(26), 1)]);
}

fn floor_and_add_together<M: Machine>() {
    let mut driver = stack::<M>(&[lanes(10, 1), add(lanes(3, 1))]);
    for store in [0, 4, 30] {
        let store = ms(store);
        driver.submit(Ask { store, ..read() });
    }
    // Floors end at 10, 20, 30; the adds hold for 3, 6, 9 before the store.
    assert_eq!(completions(&mut driver), [13, 26, 39]);
    assert_eq!(driver.log().starts, [(at(3), 0), (at(6), 1), (at(9), 2)]);
}

fn the_store_is_never_hastened<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 1)]);
    for store in [3, 25] {
        let store = ms(store);
        driver.submit(Ask { store, ..read() });
    }
    assert_eq!(completions(&mut driver), [10, 25]);
    let state = rule(&driver, 1);
    assert_eq!((state.chosen, state.held, state.overrun), (2, 1, 1));
}

fn hang_first() -> RuleSpec {
    RuleSpec {
        limit: Limit::First(1),
        ..RuleSpec::new(Effect::Hang)
    }
}

fn a_hang_holds_one_zio_until_it_is_released<M: Machine>() {
    for (mode, started) in [(Mode::Floor, 0), (Mode::Add, 70)] {
        let hang = RuleSpec {
            mode,
            ..hang_first()
        };
        let mut driver = stack::<M>(&[RuleSpec::delay(ms(2), None), hang]);
        let hung = submit(&mut driver, 0, read());
        let free = submit(&mut driver, 0, read());
        driver.run_until(at(70));
        assert_eq!(driver.end_of(hung), None);
        assert_eq!(driver.end_of(free).map(|(when, _)| when), Some(at(2)));
        assert_eq!(rule(&driver, 1).matched, 1, "the hang was considered first");
        clear(&mut driver, 2, true);
        assert_eq!(completions(&mut driver), [70, 2]);
        assert!(driver.log().starts.contains(&(at(started), hung)));
    }
}

fn errors_with_and_without_work<M: Machine>() {
    for (work, end, starts) in [(false, 0, 0), (true, 5, 1)] {
        let errno = Errno::Io;
        let fail = RuleSpec::new(Effect::Fail { errno, work });
        let mut driver = stack::<M>(&[lanes(10, 1), fail]);
        let zio = driver.submit(Ask {
            store: ms(5),
            ..read()
        });
        driver.run();
        let failed = End::Completed(Err("EIO"));
        assert_eq!(driver.end_of(zio), Some((at(end), failed)));
        assert_eq!(driver.log().starts.len(), starts);
        assert_eq!(rule(&driver, 1).matched, 0);
        let state = rule(&driver, 2);
        assert_eq!((state.matched, state.chosen, state.failed), (1, 1, 1));
    }
}

fn flushes_only_when_named<M: Machine>() {
    let flushes = of(RuleSpec::delay(ms(20), None), Op::Flush);
    let mut driver = stack::<M>(&[RuleSpec::delay(ms(2), None), flushes]);
    for ask in [read(), Ask::new(Op::Flush), Ask::new(Op::Trim)] {
        driver.submit(ask);
    }
    assert_eq!(completions(&mut driver), [2, 20, 0]);
    assert_eq!(rule(&driver, 1).matched, 1);
}

fn a_durable_write_is_charged_as_a_flush_too<M: Machine>() {
    let flushes = of(lanes(20, 1), Op::Flush);
    let mut driver = stack::<M>(&[lanes(10, 1), flushes]);
    let fua = true;
    driver.submit(Ask { fua, ..write() });
    driver.submit(write());
    driver.submit(Ask { fua, ..write() });
    assert_eq!(completions(&mut driver), [30, 20, 50]);
    assert_eq!(driver.log().starts.len(), 3);
    assert_eq!((rule(&driver, 1).held, rule(&driver, 2).held), (3, 2));
}

fn bandwidth_is_one_server_of_the_disk<M: Machine>() {
    let megabyte = |rate, op| RuleSpec {
        bandwidth: Some(rate),
        ..of(RuleSpec::new(Effect::Pass), op)
    };
    let rules = [megabyte(1_000_000, Op::Read), megabyte(500_000, Op::Write)];
    let mut driver = stack::<M>(&rules);
    let length = 10_000;
    driver.submit(Ask { length, ..read() });
    driver.submit(Ask { length, ..write() });
    driver.submit(Ask { length, ..read() });
    submit(&mut driver, 100, Ask { length, ..read() });
    assert_eq!(completions(&mut driver), [10, 30, 40, 110]);
}

fn a_delay_is_not_beaten_by_a_bandwidth<M: Machine>() {
    let pass = |rate| RuleSpec {
        bandwidth: Some(rate),
        ..RuleSpec::new(Effect::Pass)
    };
    let mut driver = stack::<M>(&[lanes(10, 1), pass(4_096_000), pass(2_048_000)]);
    assert_eq!(reads(&mut driver, &[0]), [12]);
    let counts = |id| (rule(&driver, id).held, rule(&driver, id).beaten);
    assert_eq!([1, 2, 3].map(counts), [(1, 0), (0, 1), (1, 0)]);
}

fn what_is_slower_than_one_rule_may_be_held_by_another<M: Machine>() {
    let mut driver = stack::<M>(&[lanes(10, 1), add(lanes(3, 1))]);
    let store = ms(30);
    driver.submit(Ask { store, ..read() });
    assert_eq!(completions(&mut driver), [33]);
    let counts = |id| (rule(&driver, id).held, rule(&driver, id).overrun);
    assert_eq!([1, 2].map(counts), [(0, 1), (1, 0)]);
}

/// `-D 10ms`, and a millisecond for 4,096 bytes.
fn delay_and_bandwidth() -> [RuleSpec; 2] {
    let pass = RuleSpec {
        bandwidth: Some(4_096_000),
        ..RuleSpec::new(Effect::Pass)
    };
    [RuleSpec::delay(ms(10), None), pass]
}

fn an_aborted_zio_leaves_the_bandwidth_alone<M: Machine>() {
    let mut driver = stack::<M>(&delay_and_bandwidth());
    // The store finishes the first one after its target.
    let store = ms(50);
    let gone = driver.submit(Ask { store, ..read() });
    let kept = driver.submit(read());
    driver.abort(&[gone]);
    driver.run();
    assert_eq!(driver.end_of(gone), Some((at(50), End::Dropped)));
    assert_eq!(driver.end_of(kept).map(|(when, _)| when), Some(at(11)));
}

/// Reads and writes take 10 ms each in one server; their rules are 1 and 2.
fn ten_ms_for_a_block() -> [RuleSpec; 2] {
    let pass = |op| RuleSpec {
        bandwidth: Some(409_600),
        ..of(RuleSpec::new(Effect::Pass), op)
    };
    [pass(Op::Read), pass(Op::Write)]
}

/// When these zios ended, in ms, and whether they were dropped.
fn ends<M: Machine>(driver: &mut Driver<M>, zios: &[usize]) -> Vec<(u64, bool)> {
    driver.run();
    let end = |zio: &usize| driver.end_of(*zio).expect("an end");
    let ends = zios.iter().map(end);
    ends.map(|(at, end)| (at.as_nanos() / 1_000_000, end == End::Dropped))
        .collect()
}

fn an_aborted_transfer_gives_its_place_back<M: Machine>() {
    let mut driver = stack::<M>(&ten_ms_for_a_block());
    let zios = [read(), write(), read(), read()].map(|ask| driver.submit(ask));
    driver.run_until(at(5));
    driver.abort(&zios[1..3]);
    assert_eq!(rule(&driver, 1).backlog, ms(15));
    let expected = [(10, false), (5, true), (5, true), (20, false)];
    assert_eq!(ends(&mut driver, &zios), expected);
}

fn a_begun_transfer_is_not_given_back<M: Machine>() {
    let mut driver = stack::<M>(&ten_ms_for_a_block());
    let zios = [read(), read()].map(|ask| driver.submit(ask));
    driver.run_until(at(5));
    driver.abort(&zios[..1]);
    assert_eq!(ends(&mut driver, &zios), [(5, true), (20, false)]);
}

fn a_released_transfer_is_in_service_no_longer<M: Machine>() {
    let mut driver = stack::<M>(&ten_ms_for_a_block());
    for ask in [read(), write(), read(), write()] {
        driver.submit(ask);
    }
    driver.run_until(at(4));
    clear(&mut driver, 1, true);
    assert_eq!(completions(&mut driver), [4, 14, 4, 24]);
}

fn a_cleared_rule_leaves_the_bandwidth_to_others<M: Machine>() {
    let mut driver = stack::<M>(&ten_ms_for_a_block());
    for ask in [read(), write(), read(), write()] {
        driver.submit(ask);
    }
    driver.run_until(at(4));
    clear(&mut driver, 1, false);
    assert_eq!(completions(&mut driver), [10, 14, 30, 24]);
}

fn a_rule_without_its_bandwidth_leaves_it_to_others<M: Machine>() {
    let mut driver = stack::<M>(&ten_ms_for_a_block());
    for ask in [read(), write()] {
        driver.submit(ask);
    }
    driver.run_until(at(4));
    let delay = of(RuleSpec::delay(ms(1), None), Op::Read);
    driver.order(Command::Update(RuleId(1), delay));
    driver.submit(write());
    assert_eq!(completions(&mut driver), [10, 14, 24]);
}

/// No zio waits for transfers that a client queued at a wrong rate before the rate was replaced.
fn what_a_dead_client_queued_is_gone_with_its_rule<M: Machine>() {
    for release in [false, true] {
        let [rule, _] = ten_ms_for_a_block();
        let mut driver = stack::<M>(std::slice::from_ref(&rule));
        let length = 32 << 20;
        let zios = [0, 1].map(|_| driver.submit(Ask { length, ..read() }));
        driver.run_until(at(5));
        driver.abort(&zios);
        clear(&mut driver, 1, release);
        inject(&mut driver, 2, 2, rule);
        let next = driver.submit(read());
        assert_eq!(ends(&mut driver, &[next]), [(15, false)]);
    }
}

fn a_transfer_on_its_way_is_alone_when_its_rule_is_gone<M: Machine>() {
    let [reads, writes] = ten_ms_for_a_block();
    let mut driver = stack::<M>(&[reads, writes, RuleSpec::delay(ms(10), None)]);
    for ask in [write(), read(), write()] {
        driver.submit(ask);
    }
    driver.run_until(at(5));
    clear(&mut driver, 1, false);
    assert_eq!(completions(&mut driver), [20, 20, 30]);
}

fn backlog_counts_the_bandwidth<M: Machine>() {
    let [reads, writes] = ten_ms_for_a_block();
    let mut driver = stack::<M>(&[lanes(3, 1), reads, writes]);
    driver.submit(read());
    let backlogs = |driver: &Driver<M>| [1, 2, 3].map(|id| rule(driver, id).backlog);
    assert_eq!(backlogs(&driver), [ms(3), ms(0), ms(0)]);
    driver.run_until(at(3));
    assert_eq!(backlogs(&driver), [ms(0), ms(10), ms(10)]);
}

fn a_released_zio_reaches_the_bandwidth_at_its_release<M: Machine>() {
    let mut driver = stack::<M>(&delay_and_bandwidth());
    driver.submit(read());
    driver.submit(read());
    driver.run_until(at(5));
    clear(&mut driver, 1, true);
    assert_eq!(completions(&mut driver), [6, 7]);
}

fn limits_count_what_matched<M: Machine>() {
    for (limit, expected) in [
        (Limit::First(2), [10, 10, 0, 0, 0, 0]),
        (Limit::Every(3), [0, 0, 10, 0, 0, 10]),
    ] {
        let limited = RuleSpec {
            limit,
            ..RuleSpec::delay(ms(10), None)
        };
        let mut driver = pool::<M>(&[limited]);
        assert_eq!(reads(&mut driver, &[0; 6]), expected);
        let state = rule(&driver, 1);
        assert_eq!((state.matched, state.chosen, state.not_counted), (6, 2, 4));
    }
}

fn an_update_counts_from_one_again<M: Machine>() {
    let mut driver = pool::<M>(&[RuleSpec::delay(ms(10), None)]);
    for _ in 0..2 {
        driver.submit(read());
    }
    let limited = RuleSpec {
        limit: Limit::First(1),
        ..RuleSpec::delay(ms(5), None)
    };
    driver.order(Command::Update(RuleId(1), limited));
    assert_eq!(reads(&mut driver, &[0; 2]), [10, 10, 5, 0]);
    let state = rule(&driver, 1);
    assert_eq!((state.matched, state.not_counted), (4, 1));
}

fn a_rule_begins_and_ends<M: Machine>() {
    let brief = RuleSpec {
        after: ms(10),
        lasts: Some(ms(20)),
        ..RuleSpec::delay(ms(5), None)
    };
    let ends = reads(&mut pool::<M>(&[brief]), &[9, 10, 29, 30]);
    assert_eq!(ends, [9, 15, 34, 30]);
}

fn ranges_touch<M: Machine>() {
    let ranged = RuleSpec {
        range: Some((8_192, 12_288)),
        ops: OpSet::ALL,
        ..RuleSpec::delay(ms(10), None)
    };
    let mut driver = pool::<M>(&[ranged]);
    let reads = [
        (4_096, 4_096),
        (4_096, 4_097),
        (12_287, 1),
        (12_288, 1),
        (0, 65_536),
    ];
    for (offset, length) in reads {
        let ask = read();
        driver.submit(Ask {
            offset,
            length,
            ..ask
        });
    }
    driver.submit(Ask {
        offset: 8_192,
        ..Ask::new(Op::Flush)
    });
    assert_eq!(completions(&mut driver), [0, 10, 10, 0, 10, 0]);
}

fn ranges_at_the_end_of_the_disk<M: Machine>() {
    let ranged = RuleSpec {
        range: Some((u64::MAX - 1, u64::MAX)),
        ..RuleSpec::delay(ms(10), None)
    };
    let mut driver = pool::<M>(&[ranged]);
    for (offset, length) in [
        (u64::MAX - 1, 0),
        (u64::MAX - 1, 1),
        (u64::MAX - 1, u32::MAX),
        (u64::MAX, 1),
    ] {
        let ask = read();
        driver.submit(Ask {
            offset,
            length,
            ..ask
        });
    }
    assert_eq!(completions(&mut driver), [0, 10, 10, 0]);
}

fn clients_match_by_glob<M: Machine>() {
    let only = RuleSpec {
        client: Some("pid=7*".to_owned()),
        ..RuleSpec::delay(ms(10), None)
    };
    let mut driver = Driver::<M>::new(1);
    driver.join(ClientId(3), "pid=7");
    inject(&mut driver, 0, 1, only);
    driver.join(ClientId(4), "pid=77");
    driver.join(ClientId(5), "pid=17");
    for client in [3, 4, 5, ClientId::OTHER.0] {
        let client = ClientId(client);
        driver.submit(Ask { client, ..read() });
    }
    driver.join(ClientId(4), "pid=1");
    let client = ClientId(4);
    driver.submit(Ask { client, ..read() });
    assert_eq!(completions(&mut driver), [10, 10, 0, 0, 0]);
}

fn clearing_leaves_what_is_held<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 1)]);
    let held: Vec<usize> = (0..3).map(|_| driver.submit(read())).collect();
    driver.run_until(at(1));
    clear(&mut driver, 1, false);
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
    clear(&mut driver, 1, true);
    clear(&mut driver, 3, true);
    // The lanes until 4 and 8 remain. The stores, held back until now, begin.
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

/// Two durable writes: a rule holds the first for `held_ms` before the store, and the flush of the
/// write that ends first for 20 ms.
fn first_of_two_durable_writes<M: Machine>(held_ms: u64) -> Driver<M> {
    let limit = Limit::First(1);
    let hold = add(of(RuleSpec::delay(ms(held_ms), None), Op::Write));
    let flush = of(lanes(20, 1), Op::Flush);
    stack::<M>(&[RuleSpec { limit, ..hold }, RuleSpec { limit, ..flush }])
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
    clear(&mut driver, 1, false);
    driver.run_until(at(50));
    assert_eq!(driver.end_of(hung), None);
    let target = Target::Disk(DISK);
    driver.order(Command::Clear {
        target,
        release: true,
    });
    assert_eq!(driver.end_of(hung).map(|(when, _)| when), Some(at(50)));
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

fn a_distribution_is_sampled_once<M: Machine>() {
    let knots = vec![(0, ms(10)), (1 << 63, ms(10)), ((1 << 63) + 1, ms(90))];
    let table = QuantileTable::new(knots).expect("knots in order");
    let delay = || {
        RuleSpec::new(Effect::Delay {
            service: Service::Quantiles(table.clone().into()),
            lanes: None,
        })
    };
    // Of two equal rules, the older wins every tie of nominal services. If both drew a sample, the
    // shorter would win, and three of four zios would be short.
    let mut driver = pool::<M>(&[delay(), delay()]);
    let ends = reads(&mut driver, &[0; 300]);
    let short = ends.iter().filter(|end| **end == 10).count();
    assert!((120..180).contains(&short), "{short} of 300");
    assert_eq!(rule(&driver, 1).chosen, 300);
    assert_eq!(rule(&driver, 2).beaten, 300);
}

fn update_keeps_counters_and_bookings<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 2)]);
    for _ in 0..4 {
        driver.submit(read());
    }
    driver.order(Command::Update(RuleId(1), lanes(5, 1)));
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
