//! Random clients and commands.

use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_engine::{Command, DiskId, Duration, Op, PoolId, Ratio, Release, Target as Rules};

use super::dice::Dice;
use super::lab::{group, rule, tuning};
use crate::scenario::{Calls, Load, Pattern, Scenario, Target, TraceEntry, WorkloadSpec};
use crate::setup;

/// Gives a lab its clients and commands.
pub(super) fn load(scenario: &mut Scenario, dice: &mut Dice) {
    let targets = targets(scenario);
    let clients = dice.within(1, 4) as usize;
    for at in 0..clients {
        let client = client(at, scenario, &targets, dice);
        scenario.workloads.push(client);
    }
    commands(scenario, dice);
    clear(scenario);
    let audit = audit(scenario, &targets);
    scenario.workloads.push(audit);
}

/// The possible targets, with their sizes.
fn targets(scenario: &Scenario) -> Vec<(Target, u64)> {
    let disks = (0..scenario.disks.len()).map(Target::Disk);
    let volumes = (0..scenario.volumes.len()).map(Target::Volume);
    let sized = |target| Some((target, setup::size(scenario, target)?));
    disks.chain(volumes).filter_map(sized).collect()
}

fn client(
    at: usize,
    scenario: &Scenario,
    targets: &[(Target, u64)],
    dice: &mut Dice,
) -> WorkloadSpec {
    let lasts = scenario.lasts;
    let load = match dice.within(0, 3) {
        0 => closed(targets, dice),
        _ => trace(lasts, targets, dice),
    };
    let disconnects = dice.one_of(&[0, 0, 1, 3]);
    WorkloadSpec {
        name: format!("client{at}"),
        starts: Duration::ZERO,
        stops: Some(part(lasts, CLEARED)),
        link: dice.once_in(4).then_some(50 << 20),
        disconnects: (0..disconnects).map(|_| dice.time(lasts)).collect(),
        slowest: 0,
        load,
    }
}

fn closed(targets: &[(Target, u64)], dice: &mut Dice) -> Load {
    let (target, size) = dice.one_of(targets);
    let sectors = size / 512;
    let block = dice.within(1, sectors.min(32)) as u32 * 512;
    let start = dice.within(0, (size - u64::from(block)) / 512) * 512;
    Load::Closed {
        threads: dice.within(1, 8) as u32,
        inside: dice.one_of(&[Duration::ZERO, Duration::from_micros(10)]),
        think: THINK_LEAST + dice.time(Duration::from_millis(20)),
        calls: Calls {
            target,
            region: Some((start, size - start)),
            block,
            reads: dice.one_of(&[(0, 1), (1, 3), (1, 1)].map(ratio)),
            pattern: dice.one_of(&[Pattern::Random, Pattern::Sequential]),
            sync: dice.once_in(3),
            flush_every: dice.once_in(2).then(|| dice.within(1, 20)),
        },
    }
}

fn ratio((numerator, denominator): (u64, u64)) -> Ratio {
    Ratio::new(numerator, denominator).unwrap_or(NEVER)
}

/// A trace of I/O that often overlaps, because most of it is in a small part of its target.
fn trace(lasts: Duration, targets: &[(Target, u64)], dice: &mut Dice) -> Load {
    let own: Vec<(Target, u64)> = (0..2).map(|_| dice.one_of(targets)).collect();
    let mut entries = Vec::new();
    let mut at = 0;
    let gap = Duration::from_nanos(lasts.as_nanos() / 16);
    while at < part(lasts, CLEARED).as_nanos() && entries.len() < TRACE_MAX {
        let burst = dice.one_of(&[1, 1, 2, 10]);
        for _ in 0..burst {
            entries.push(entry(Duration::from_nanos(at), dice.one_of(&own), dice));
        }
        at += dice.time(gap).as_nanos();
    }
    Load::Trace(entries)
}

fn entry(at: Duration, (target, size): (Target, u64), dice: &mut Dice) -> TraceEntry {
    let sectors = size / 512;
    let hot = if dice.once_in(4) {
        sectors
    } else {
        sectors.min(48)
    };
    let first = dice.within(0, hot - 1);
    let op = match dice.within(0, 22) {
        0..=9 => Op::Write,
        10..=14 => Op::Read,
        15..=17 => Op::Flush,
        18..=19 => Op::Trim,
        20..=21 => Op::Zero,
        _ => Op::Cache,
    };
    // Trims and zeroes are long enough to become extents in the engine.
    let lengths = match op {
        Op::Trim | Op::Zero => [4, 16, 64, 512],
        _ => [1, 4, 16, 64],
    };
    let most = dice.one_of(&lengths).min(sectors - first);
    let whole = op == Op::Flush;
    TraceEntry {
        at,
        op,
        fua: !matches!(op, Op::Read | Op::Flush | Op::Cache) && dice.once_in(5),
        target,
        offset: if whole { 0 } else { first * 512 },
        length: if whole {
            0
        } else {
            dice.within(1, most) as u32 * 512
        },
    }
}

fn commands(scenario: &mut Scenario, dice: &mut Dice) {
    let disks = scenario.disks.len() as u64;
    let pools = scenario.pools.len() as u64;
    let begun = scenario.disks.iter().flat_map(|disk| &disk.rules);
    let mut rules = begun.map(|(_, specs)| specs.len() as u32).sum::<u32>();
    let mut times: Vec<Duration> = (0..dice.within(0, 10))
        .map(|_| dice.time(part(scenario.lasts, CLEARED)))
        .collect();
    times.sort_unstable();
    for at in times {
        let disk = DiskId(dice.within(0, disks - 1) as u32);
        let command = match dice.within(0, 6) {
            0 => inject(disk, group(dice), &mut rules),
            1 => Command::Update(
                RuleId(dice.within(1, u64::from(rules) + 1) as u32),
                Box::new(rule(dice)),
            ),
            2 => Command::Clear {
                target: Rules::Disk(disk),
                release: match dice.within(0, 2) {
                    0 => Release::Nothing,
                    1 => Release::Hung,
                    _ => Release::All,
                },
            },
            3 => Command::Suspend {
                disk,
                lasts: dice.once_in(2).then(|| dice.time(scenario.lasts)),
                now: dice.once_in(2),
            },
            4 => Command::Resume(disk),
            _ if pools == 0 => Command::Resume(disk),
            _ => Command::Tune {
                pool: PoolId(0),
                changes: vec![tuning(dice)],
            },
        };
        scenario.commands.push((at, command));
    }
}

fn inject(disk: DiskId, (group, specs): (GroupId, Vec<RuleSpec>), last: &mut u32) -> Command {
    let rule = |spec| {
        *last += 1;
        (RuleId(*last), spec)
    };
    Command::Inject {
        disk,
        group,
        rules: specs.into_iter().map(rule).collect(),
    }
}

/// Ends all errors, hangs and suspensions.
fn clear(scenario: &mut Scenario) {
    let at = part(scenario.lasts, CLEARED);
    let clear = Command::Clear {
        target: Rules::All,
        release: Release::All,
    };
    scenario.commands.push((at, clear));
    for disk in (0..scenario.disks.len() as u32).map(DiskId) {
        scenario.commands.push((at, Command::Resume(disk)));
    }
}

/// The last client, which flushes every target and reads all of it.
fn audit(scenario: &Scenario, targets: &[(Target, u64)]) -> WorkloadSpec {
    let mut entries = Vec::new();
    for (target, size) in targets {
        let reads = (0..*size).step_by(AUDIT_STEP);
        let entry = |op, offset: u64| TraceEntry {
            at: Duration::ZERO,
            op,
            fua: false,
            target: *target,
            offset,
            length: (size - offset).min(AUDIT_STEP as u64) as u32,
        };
        entries.push(TraceEntry {
            length: 0,
            ..entry(Op::Flush, 0)
        });
        entries.extend(reads.map(|offset| entry(Op::Read, offset)));
    }
    WorkloadSpec {
        name: "audit".into(),
        starts: part(scenario.lasts, AUDITED),
        stops: None,
        link: None,
        disconnects: Vec::new(),
        slowest: 0,
        load: Load::Trace(entries),
    }
}

/// A percentage of a time.
fn part(all: Duration, percent: u64) -> Duration {
    Duration::from_nanos(all.as_nanos() / 100 * percent)
}

const NEVER: Ratio = match Ratio::new(0, 1) {
    Some(never) => never,
    None => panic!("0 of 1 is a ratio"),
};
/// The least time that a client thinks between calls. It bounds the number of calls if disks take no time.
const THINK_LEAST: Duration = Duration::from_micros(500);
/// When rules are cleared and clients end, in percent of the whole time.
const CLEARED: u64 = 80;
/// When the last client begins, in percent of the whole time.
const AUDITED: u64 = 95;
/// How many bytes the last client reads at a time.
const AUDIT_STEP: usize = 64 << 10;
/// The maximum number of entries in a trace.
const TRACE_MAX: usize = 300;
