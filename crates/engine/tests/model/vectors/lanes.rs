//! Tests of lanes: the choice of the lane that finishes soonest, queues, and groups whose delays add up.

use super::*;

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
    a_distribution_is_sampled_once
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

/// Simulates a client that keeps `depth` reads in flight. For the reads that end between 450 ms and 900 ms,
/// returns the sum of their latencies, in ms, and their number. The pattern of reads repeats every 450 ms,
/// because 450 ms is a multiple of all lanes' delays below.
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

fn a_distribution_is_sampled_once<M: Machine>() {
    let knots = vec![(0, ms(10)), (1 << 63, ms(10)), ((1 << 63) + 1, ms(90))];
    let table = QuantileTable::new(knots).expect("knots in order");
    let delay = || {
        let service = Service::Quantiles(table.clone().into());
        RuleSpec::new(Effect::Delay(Delay::new(service, None)))
    };
    // Two equal rules always tie, because the nominal service time decides, and the older rule wins. If the
    // rules competed with drawn times, the shorter would win, and three of four zios would be short.
    let mut driver = pool::<M>(&[delay(), delay()]);
    let ends = reads(&mut driver, &[0; 300]);
    let short = ends.iter().filter(|end| **end == 10).count();
    assert!((120..180).contains(&short), "{short} of 300");
    assert_eq!(rule(&driver, 1).chosen, 300);
    assert_eq!(rule(&driver, 2).beaten, 300);
}
