//! Tests clients: the times of their calls, their links, and their results.

use crate::common::{disk, ms, scenario, trace, workload, writes};
use dashpot_engine::histogram::Histogram;
use dashpot_engine::inject::{Count, Effect, RuleSpec, Service};
use dashpot_engine::{
    Command, Duration, Errno, Instant, Op, OpSet, Release, Target as Rules, Wait,
};
use dashpot_sim::scenario::{Calls, DiskModel, Load, Scenario, Target, WorkloadSpec};
use dashpot_sim::{CallWait, SetupError, Simulation, WorkloadError, WorkloadResults};

/// A disk that takes this long for each I/O, however many are in flight.
fn slow(service: Duration) -> DiskModel {
    DiskModel {
        service: Some(Service::Constant(service)),
        ..DiskModel::default()
    }
}

fn run(scenario: Scenario) -> Simulation {
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.run_until(Instant::NEVER).unwrap();
    simulation
}

fn results(client: WorkloadSpec, model: DiskModel, lasts: Duration) -> WorkloadResults {
    let simulation = run(scenario(disk(model, Vec::new()), client, lasts));
    simulation.results(0).unwrap().clone()
}

fn open(rate: u64, burst: u32) -> Load {
    Load::Open {
        rate,
        burst,
        calls: writes(),
    }
}

#[test]
fn an_open_loop_begins_on_time_whatever_has_not_ended() {
    let seen = results(workload(open(3, 1)), slow(ms(5_000)), ms(10_000));
    let mut began: Vec<u64> = seen.slowest.iter().map(|c| c.began.as_nanos()).collect();
    began.sort_unstable();
    assert_eq!(began[..4], [0, 333_333_333, 666_666_666, 1_000_000_000]);
    assert_eq!(seen.op(Op::Write).calls, 16, "calls that began by 5 s");
    let bursts = results(workload(open(4, 2)), slow(ms(1)), ms(1_400));
    assert_eq!(bursts.op(Op::Write).calls, 6, "two each at 0, 0.5 and 1 s");
}

#[test]
fn a_closed_loop_spends_its_time_inside_at_the_disk_and_thinking() {
    let load = Load::Closed {
        threads: 2,
        inside: ms(3),
        think: ms(5),
        calls: Calls {
            flush_every: Some(2),
            ..writes()
        },
    };
    let seen = results(workload(load), slow(ms(2)), ms(1_000));
    let writes = seen.op(Op::Write);
    // A thread repeats two writes of 10 ms and a flush of 8 ms. Each of them takes 3 ms inside and 5 ms of
    // thinking. Only a write takes time at the disk.
    assert_eq!((writes.calls, seen.op(Op::Flush).calls), (144, 70));
    assert_eq!(writes.at_client.as_ref().unwrap().mean(), Some(5_000_000));
    assert_eq!(writes.at_lab.as_ref().unwrap().max(), Some(2_000_000));
    assert_eq!(writes.bytes, 144 * 8192);
}

#[test]
fn a_link_passes_writes_on_the_way_in_and_reads_on_the_way_back() {
    let ops = [(0, Op::Write), (0, Op::Write), (0, Op::Read), (9, Op::Read)];
    let client = WorkloadSpec {
        link: Some(512_000),
        ..workload(trace(&ops))
    };
    let seen = results(client, DiskModel::default(), ms(100));
    let (reads, writes) = (seen.op(Op::Read), seen.op(Op::Write));
    // A sector takes 1 ms on the link. The first read also waits behind two writes.
    let ms_of = |ns: Option<u64>| ns.map(|ns| ns / 1_000_000);
    let at_client = writes.at_client.as_ref().unwrap();
    assert_eq!(
        (ms_of(at_client.min()), ms_of(at_client.max())),
        (Some(1), Some(2))
    );
    let at_client = reads.at_client.as_ref().unwrap();
    assert_eq!(
        (ms_of(at_client.min()), ms_of(at_client.max())),
        (Some(1), Some(3))
    );
    assert_eq!(reads.at_lab.as_ref().unwrap().max(), Some(0));
}

#[test]
fn what_a_lost_connection_takes_with_it_is_in_no_histogram() {
    let load = Load::Closed {
        threads: 3,
        inside: ms(0),
        think: ms(0),
        calls: writes(),
    };
    let client = WorkloadSpec {
        disconnects: vec![ms(15), ms(18)],
        stops: Some(ms(40)),
        ..workload(load)
    };
    let rule = RuleSpec::delay(ms(10), None);
    let lab = scenario(disk(DiskModel::default(), vec![rule]), client, ms(1_000));
    let mut simulation = run(lab);
    let seen = simulation.results(0).unwrap();
    assert_eq!(seen.aborted, 6);
    // Three calls end at 10 ms. The connection is lost at 15 ms and at 18 ms. Then three calls end at each of
    // 28, 38 and 48 ms.
    assert_eq!(seen.op(Op::Write).calls, 12);
    assert_eq!(
        seen.op(Op::Write).at_client.as_ref().unwrap().max(),
        Some(10_000_000)
    );
    assert_eq!(simulation.drain(Instant::NEVER), Ok(true));
    assert_eq!(simulation.unfinished(0).count(), 0);
}

#[test]
fn calls_that_fail_are_in_no_latency() {
    let fails = RuleSpec {
        count: Count::every(2),
        ..RuleSpec::new(Effect::Fail {
            errno: Errno::Io,
            work: false,
            delay: None,
        })
    };
    let client = workload(Load::Closed {
        threads: 1,
        inside: ms(3),
        think: ms(0),
        calls: writes(),
    });
    let simulation = run(scenario(disk(slow(ms(2)), vec![fails]), client, ms(80)));
    let seen = simulation.results(0).unwrap().op(Op::Write);
    // A call that succeeds takes 5 ms. A call that fails takes 3 ms, because it fails at once at the disk.
    assert_eq!((seen.calls, seen.failed, seen.bytes), (20, 10, 10 * 8192));
    let figures = |latencies: &Option<Box<Histogram>>| {
        let latencies = latencies.as_ref().unwrap();
        (latencies.count(), latencies.min(), latencies.max())
    };
    assert_eq!(
        figures(&seen.at_client),
        (10, Some(5_000_000), Some(5_000_000))
    );
    assert_eq!(
        figures(&seen.at_lab),
        (10, Some(2_000_000), Some(2_000_000))
    );
    assert_eq!(
        figures(&seen.failed_at_client),
        (10, Some(3_000_000), Some(3_000_000))
    );
}

#[test]
fn a_crowd_that_begins_at_once_is_no_standing_time() {
    let client = workload(Load::Closed {
        threads: 1_000_000,
        inside: ms(0),
        think: ms(1_000),
        calls: writes(),
    });
    let lab = Scenario {
        check: false,
        ..scenario(disk(DiskModel::default(), Vec::new()), client, ms(900))
    };
    assert_eq!(run(lab).calls_ended(), 1_000_000);
}

#[test]
fn an_open_loop_that_outruns_its_disk_ends_before_memory_does() {
    let client = workload(open(1_000_000_000, 1));
    let hang = RuleSpec::new(Effect::Hang);
    let lab = Scenario {
        check: false,
        ..scenario(disk(DiskModel::default(), vec![hang]), client, ms(1_000))
    };
    let mut simulation = Simulation::new(lab).unwrap();
    let error = simulation.run_until(Instant::NEVER).unwrap_err();
    assert!(error.what.contains("in flight"), "{error}");
}

#[test]
fn what_hangs_is_in_flight_until_a_command_ends_it() {
    let hang = RuleSpec {
        ops: OpSet::of(Op::Write),
        ..RuleSpec::new(Effect::Hang)
    };
    let ops = [(5, Op::Write), (6, Op::Read)];
    let client = workload(trace(&ops));
    let mut lab = scenario(disk(DiskModel::default(), vec![hang]), client, ms(100));
    lab.commands.push((
        ms(50),
        Command::Clear {
            target: Rules::All,
            release: Release::All,
        },
    ));
    let mut simulation = Simulation::new(lab).unwrap();
    simulation
        .run_until(Instant::from_nanos(49_000_000))
        .unwrap();
    let began = Instant::from_nanos(5_000_000);
    let waiting: Vec<_> = simulation.unfinished(0).collect();
    assert_eq!((waiting.len(), waiting[0].began), (1, began));
    let CallWait::Lab(zio) = simulation.waits(&waiting[0]) else {
        panic!("it is at the disk");
    };
    assert_eq!((zio.wait, zio.since), (Wait::Hung, began));
    simulation.run_until(Instant::NEVER).unwrap();
    assert_eq!(simulation.unfinished(0).count(), 0);
    assert_eq!(simulation.calls_ended(), 2);
    assert!(simulation.done() && simulation.answers()[0].1.is_ok());
}

#[test]
fn the_warm_up_and_all_that_comes_after_are_told_apart_by_their_beginning() {
    let load = Load::Closed {
        threads: 1,
        inside: ms(0),
        think: ms(0),
        calls: writes(),
    };
    let lab = Scenario {
        warmup: ms(25),
        sample_every: Some(ms(40)),
        ..scenario(disk(slow(ms(10)), Vec::new()), workload(load), ms(100))
    };
    let simulation = run(lab);
    assert_eq!(simulation.results(0).unwrap().op(Op::Write).calls, 7);
    assert_eq!(simulation.calls_ended(), 10);
    let samples = simulation.samples().iter();
    let samples: Vec<_> = samples
        .map(|s| (s.at.as_nanos() / 1_000_000, s.calls))
        .collect();
    assert_eq!(samples, [(0, 0), (40, 4), (80, 4)]);
    assert_eq!(simulation.samples()[1].disks[0].active, 1);
}

#[test]
fn going_round_without_taking_time_is_noticed() {
    let load = Load::Closed {
        threads: 1,
        inside: ms(0),
        think: ms(0),
        calls: writes(),
    };
    let lab = Scenario {
        check: false,
        ..scenario(
            disk(DiskModel::default(), Vec::new()),
            workload(load),
            ms(1),
        )
    };
    let violation = Simulation::new(lab).unwrap().run_until(Instant::NEVER);
    assert!(violation.unwrap_err().what.contains("time stands still"));
}

#[test]
fn what_cannot_be_simulated_is_refused_with_its_place() {
    let refused = |load: Load| {
        let lab = scenario(
            disk(DiskModel::default(), Vec::new()),
            workload(load),
            ms(1),
        );
        match Simulation::new(lab) {
            Err(SetupError::Workload { workload: 0, error }) => Some(error),
            _ => None,
        }
    };
    let calls = |calls: Calls| Load::Open {
        rate: 1,
        burst: 1,
        calls,
    };
    let target = Target::Volume(0);
    let elsewhere = Calls { target, ..writes() };
    assert_eq!(refused(calls(elsewhere)), Some(WorkloadError::Target));
    let region = Some((0, 100));
    let cut = Calls { region, ..writes() };
    assert_eq!(refused(calls(cut)), Some(WorkloadError::Region));
    let block = 1_000;
    let odd = Calls { block, ..writes() };
    assert_eq!(refused(calls(odd)), Some(WorkloadError::Sectors));
    assert_eq!(refused(open(0, 1)), Some(WorkloadError::Rate));
    let back = WorkloadError::TimeGoesBack { entry: 2 };
    let ops = [(1, Op::Read), (2, Op::Read), (1, Op::Read)];
    assert_eq!(refused(trace(&ops)), Some(back));
    let far = match trace(&ops[..2]) {
        Load::Trace(mut entries) => {
            entries[1].offset = 1 << 30;
            Load::Trace(entries)
        }
        other => other,
    };
    assert_eq!(refused(far), Some(WorkloadError::Entry { entry: 1 }));
}
