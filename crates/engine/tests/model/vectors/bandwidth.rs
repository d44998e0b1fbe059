//! Tests of bandwidth: one serial server of the disk, which the transfers of all rules share.

use super::*;

on_both_machines! {
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

/// Two rules: `-D 10ms`, and a bandwidth of 4,096 bytes in a millisecond.
fn delay_and_bandwidth() -> [RuleSpec; 2] {
    let pass = RuleSpec {
        bandwidth: Some(4_096_000),
        ..RuleSpec::new(Effect::Pass)
    };
    [RuleSpec::delay(ms(10), None), pass]
}

fn an_aborted_zio_leaves_the_bandwidth_alone<M: Machine>() {
    let mut driver = stack::<M>(&delay_and_bandwidth());
    // The store finishes the first zio after its target.
    let store = ms(50);
    let gone = driver.submit(Ask { store, ..read() });
    let kept = driver.submit(read());
    driver.abort(&[gone]);
    driver.run();
    assert_eq!(driver.end_of(gone), Some((at(50), End::Dropped)));
    assert_eq!(driver.end_of(kept).map(|(when, _)| when), Some(at(11)));
}

/// Rule 1 for reads and rule 2 for writes, with a bandwidth at which each block takes 10 ms in the disk's one
/// server.
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
    clear(&mut driver, 1, Release::All);
    assert_eq!(completions(&mut driver), [4, 14, 4, 24]);
}

fn a_cleared_rule_leaves_the_bandwidth_to_others<M: Machine>() {
    let mut driver = stack::<M>(&ten_ms_for_a_block());
    for ask in [read(), write(), read(), write()] {
        driver.submit(ask);
    }
    driver.run_until(at(4));
    clear(&mut driver, 1, Release::Nothing);
    assert_eq!(completions(&mut driver), [10, 14, 30, 24]);
}

fn a_rule_without_its_bandwidth_leaves_it_to_others<M: Machine>() {
    let mut driver = stack::<M>(&ten_ms_for_a_block());
    for ask in [read(), write()] {
        driver.submit(ask);
    }
    driver.run_until(at(4));
    let delay = of(RuleSpec::delay(ms(1), None), Op::Read);
    driver.order(Command::Update(RuleId(1), Box::new(delay)));
    driver.submit(write());
    assert_eq!(completions(&mut driver), [10, 14, 24]);
}

/// A client queues huge transfers and goes away, and the rule of these transfers is replaced. A new zio must
/// not wait for the transfers.
fn what_a_dead_client_queued_is_gone_with_its_rule<M: Machine>() {
    for release in [Release::Nothing, Release::All] {
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
    clear(&mut driver, 1, Release::Nothing);
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
    clear(&mut driver, 1, Release::All);
    assert_eq!(completions(&mut driver), [6, 7]);
}
