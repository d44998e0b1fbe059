//! Checks, for given arrivals, that I/Os end when the lanes of OpenZFS's `zio_handle_io_delay` would let them
//! end.

use crate::common::{disk, ends, ms, scenario, workload, writes};
use dashpot_engine::inject::RuleSpec;
use dashpot_engine::{Instant, Op, OpSet};
use dashpot_sim::Simulation;
use dashpot_sim::scenario::{DiskModel, Load};

fn rule(delay: u64, lanes: u32) -> RuleSpec {
    RuleSpec::delay(ms(delay), Some(lanes))
}

fn reads(at: &[u64]) -> Vec<(u64, Op)> {
    at.iter().map(|at| (*at, Op::Read)).collect()
}

#[test]
fn one_lane_serves_in_turn() {
    let arrivals = reads(&[100, 100, 100, 104, 145]);
    assert_eq!(
        ends(vec![rule(10, 1)], &arrivals),
        [110, 120, 130, 140, 155]
    );
}

#[test]
fn two_lanes_serve_two_at_a_time() {
    let arrivals = reads(&[100, 100, 100, 100, 103]);
    let expected = [110, 110, 120, 120, 130];
    assert_eq!(ends(vec![rule(10, 2)], &arrivals), expected);
    assert_eq!(ends(vec![rule(10, 1), rule(10, 1)], &arrivals), expected);
}

#[test]
fn the_lane_that_ends_soonest_is_taken_and_ties_go_to_the_older_rule() {
    let arrivals = reads(&[100; 10]);
    let expected = [110, 120, 125, 125, 130, 140, 150, 150, 150, 160];
    assert_eq!(ends(vec![rule(10, 1), rule(25, 2)], &arrivals), expected);
    assert_eq!(ends(vec![rule(25, 2), rule(10, 1)], &arrivals), expected);
}

#[test]
fn sixteen_lanes_and_seventeen_arrivals() {
    let mut expected = vec![116; 16];
    expected.push(132);
    assert_eq!(ends(vec![rule(16, 16)], &reads(&[100; 17])), expected);
}

#[test]
fn reads_and_writes_have_lanes_of_their_own() {
    let of = |op, rule: RuleSpec| RuleSpec {
        ops: OpSet::of(op),
        ..rule
    };
    let rules = vec![of(Op::Read, rule(10, 1)), of(Op::Write, rule(30, 1))];
    let arrivals = [
        (100, Op::Read),
        (100, Op::Write),
        (101, Op::Write),
        (102, Op::Read),
    ];
    assert_eq!(ends(rules, &arrivals), [110, 130, 160, 120]);
}

/// For this many seconds, runs threads that do not pause between calls. Returns how many calls they make, and
/// the calls' mean latency in µs.
fn closed_loop(rules: Vec<RuleSpec>, threads: u32, seconds: u64) -> (u64, u64) {
    let load = Load::Closed {
        threads,
        inside: ms(0),
        think: ms(0),
        calls: writes(),
    };
    let disk = disk(DiskModel::default(), rules);
    let scenario = scenario(disk, workload(load), ms(seconds * 1_000));
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.run_until(Instant::NEVER).unwrap();
    let writes = simulation.results(0).unwrap().op(Op::Write);
    let mean = writes.at_client.as_ref().unwrap().mean().unwrap();
    (writes.calls, mean / 1_000)
}

#[test]
fn a_closed_loop_gets_what_the_lanes_give() {
    let ten = || vec![rule(10, 1)];
    assert_eq!(closed_loop(ten(), 1, 10), (1_000, 10_000));
    assert_eq!(closed_loop(vec![rule(10, 2)], 4, 10), (2_000, 19_990));
    let both = || vec![rule(10, 1), rule(25, 2)];
    assert_eq!(closed_loop(both(), 1, 10), (1_000, 10_000));
    // In the time of its delay, each rule serves as many calls as it has lanes. Together, the two rules serve
    // 180 calls a second.
    let (calls, mean) = closed_loop(both(), 8, 1_000);
    assert!((179_900..=180_000).contains(&calls), "{calls}");
    assert!((44_300..44_500).contains(&mean), "{mean}");
    let (calls, mean) = closed_loop(both(), 3, 1_000);
    assert!((133_000..133_500).contains(&calls), "{calls}");
    assert!((22_400..22_600).contains(&mean), "{mean}");
}
