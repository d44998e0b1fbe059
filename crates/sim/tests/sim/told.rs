//! Tests commands during a simulation, and views of its progress.

use crate::common::{disk, ms, scenario, trace, workload};
use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_engine::{Answer, Command, CommandError, DiskId, Instant, Op};
use dashpot_sim::Simulation;
use dashpot_sim::scenario::{DiskModel, Target};

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// A simulation with reads at 10 ms and at 20 ms, from a disk without rules.
fn two_reads() -> Simulation {
    let reads = workload(trace(&[(10, Op::Read), (20, Op::Read)]));
    let disk = disk(DiskModel::default(), Vec::new());
    Simulation::new(scenario(disk, reads, ms(100))).unwrap()
}

fn five_ms(rule: u32) -> Command {
    Command::Inject {
        disk: DiskId(0),
        group: GroupId(1),
        rules: vec![(RuleId(rule), RuleSpec::delay(ms(5), Some(1)))],
    }
}

fn latencies(simulation: &Simulation) -> Vec<u64> {
    let mut calls = simulation.results(0).unwrap().slowest.clone();
    calls.sort_by_key(|call| call.began);
    let latencies = calls.iter().map(|call| call.latency.as_nanos());
    latencies.collect()
}

#[test]
fn a_rule_delays_what_comes_after_it() {
    let mut simulation = two_reads();
    simulation.run_until(at(15)).unwrap();
    let place = simulation.tell(five_ms(1)).unwrap();
    assert_eq!(simulation.answers(), [(place, Ok(Answer::Done))]);
    simulation.run_until(at(100)).unwrap();
    assert_eq!(latencies(&simulation), [0, 5_000_000]);
    // The scenario now contains the command, so a second run of it must do the same.
    let mut again = Simulation::new(simulation.scenario().clone()).unwrap();
    again.run_until(at(100)).unwrap();
    assert_eq!(latencies(&again), latencies(&simulation));
}

#[test]
fn what_is_refused_is_answered_too() {
    let mut simulation = two_reads();
    simulation.tell(five_ms(2)).unwrap();
    let place = simulation.tell(five_ms(1)).unwrap();
    let (answered, answer) = simulation.answers().last().unwrap();
    assert_eq!((*answered, place), (1, 1));
    assert!(matches!(answer, Err(CommandError::InvalidRule(_))));
}

#[test]
fn calls_are_in_the_lab_until_they_are_replied_to() {
    let mut simulation = two_reads();
    simulation.tell(five_ms(1)).unwrap();
    let mut seen = Vec::new();
    for millis in [9, 12, 16, 24, 26] {
        simulation.run_until(at(millis)).unwrap();
        seen.push(in_lab(&simulation, Target::Disk(0)));
    }
    let none = (0, None);
    let since = |millis| (1, Some(at(millis)));
    assert_eq!(seen, [none, since(10), none, since(20), none]);
    assert_eq!(in_lab(&simulation, Target::Volume(0)), none);
}

/// How many calls are in the lab, and when the oldest of them arrived.
fn in_lab(simulation: &Simulation, target: Target) -> (usize, Option<Instant>) {
    let came = simulation.in_lab(target).map(|call| call.submitted);
    let came: Vec<_> = came.flatten().collect();
    (came.len(), came.iter().min().copied())
}
