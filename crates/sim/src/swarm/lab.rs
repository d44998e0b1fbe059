//! Random disks, pools, volumes and rules.

use std::sync::Arc;

use dashpot_engine::inject::{
    Count, Delay, Effect, GroupId, Mode, QuantileTable, RuleSpec, Service, When,
};
use dashpot_engine::pool::{Layout, LegacyConfig, ThrottleConfig, Tunable, Tunables, WritePolicy};
use dashpot_engine::{Duration, Errno, Op, OpSet, Ratio};

use super::dice::Dice;
use crate::scenario::{DiskModel, DiskSpec, Scenario};
use dashpot_rules::{PoolSpec, VolumeSpec};

/// A lab without clients.
pub(super) fn lab(seed: u64, dice: &mut Dice) -> Scenario {
    let pooled = dice.within(0, 4) as usize;
    let lone = dice.within(u64::from(pooled == 0), 2) as usize;
    let mut disks: Vec<DiskSpec> = (0..pooled + lone).map(|at| disk(at, dice)).collect();
    let pools: Vec<PoolSpec> = (pooled > 0)
        .then(|| pool(pooled, dice))
        .into_iter()
        .collect();
    for sides in pools.iter().flat_map(|pool| &pool.members) {
        make_equal(sides, &mut disks);
    }
    let volumes = pools.iter().flat_map(|pool| volumes(pool, &disks, dice));
    Scenario {
        seed,
        volumes: volumes.collect(),
        disks,
        pools,
        workloads: Vec::new(),
        commands: Vec::new(),
        lasts: Duration::from_millis(dice.within(20, 2_000)),
        warmup: Duration::ZERO,
        check: true,
        sample_every: None,
    }
}

/// Gives the sides of a mirror one size.
fn make_equal(sides: &[usize], disks: &mut [DiskSpec]) {
    let smallest = sides.iter().map(|side| disks[*side].size).min();
    for side in sides {
        disks[*side].size = smallest.unwrap_or(0);
    }
}

fn disk(at: usize, dice: &mut Dice) -> DiskSpec {
    let rules = dice.one_of(&[0, 0, 1, 2, 3]);
    DiskSpec {
        name: format!("c1t{at}d0"),
        size: dice.within(4, 16) * DISK_UNIT,
        model: model(dice),
        rotational: dice.once_in(2),
        rules: (0..rules).map(|_| group(dice)).collect(),
    }
}

fn model(dice: &mut Dice) -> DiskModel {
    let some = |yes: bool, value: u64| yes.then_some(value);
    DiskModel {
        bandwidth: some(dice.once_in(3), dice.one_of(&[1 << 20, 100 << 20, 1 << 30])),
        lanes: dice.once_in(2).then(|| dice.within(1, 4) as u32),
        service: (!dice.once_in(4)).then(|| service(dice)),
        rate: some(dice.once_in(3), 10 << 20),
        flush: dice.once_in(2).then(|| service(dice)),
    }
}

fn service(dice: &mut Dice) -> Service {
    let longest = Duration::from_millis(20);
    let (one, other) = (dice.time(longest), dice.time(longest));
    let knots = vec![(0, one.min(other)), (u64::MAX, one.max(other))];
    match QuantileTable::new(knots) {
        Ok(table) if dice.once_in(2) => Service::Quantiles(Arc::new(table)),
        _ => Service::Constant(one),
    }
}

/// Rules that are armed together.
pub(super) fn group(dice: &mut Dice) -> (GroupId, Vec<RuleSpec>) {
    let rules = dice.within(1, 2);
    let group = GroupId(dice.within(1, 3) as u32);
    (group, (0..rules).map(|_| rule(dice)).collect())
}

pub(super) fn rule(dice: &mut Dice) -> RuleSpec {
    let fails = Effect::Fail {
        errno: dice.one_of(&[Errno::Io, Errno::NoSpc]),
        work: dice.once_in(2),
        delay: None,
    };
    let service = service(dice);
    let lanes = dice.once_in(2).then(|| dice.within(1, 3) as u32);
    let delays = Effect::Delay(Delay::new(service, lanes));
    let effect = match dice.within(0, 9) {
        0..=5 => delays,
        6..=7 => fails,
        8 => Effect::Hang,
        _ => Effect::Pass,
    };
    // Errors and hangs are rare, so that some of the lab still works.
    let rare = matches!(effect, Effect::Fail { .. } | Effect::Hang);
    let counts = [
        Count::first(dice.within(1, 5)),
        Count::every(dice.within(3, 20)),
    ];
    let needs_bandwidth = effect == Effect::Pass;
    RuleSpec {
        bandwidth: (needs_bandwidth || dice.once_in(8)).then_some(5 << 20),
        ops: ops(dice),
        chance: dice.once_in(4).then(|| Ratio::new(1, 3)).flatten(),
        count: if rare || dice.once_in(8) {
            dice.one_of(&counts)
        } else {
            Count::ALL
        },
        when: When {
            after: dice.one_of(&[Duration::ZERO, Duration::from_millis(5)]),
            lasts: dice.once_in(4).then_some(Duration::from_millis(50)),
            cycle: None,
        },
        mode: dice.one_of(&[Mode::Floor, Mode::Floor, Mode::Add]),
        ..RuleSpec::new(effect)
    }
}

fn ops(dice: &mut Dice) -> OpSet {
    let writes = OpSet::of(Op::Write);
    let flushes = OpSet::of(Op::Flush);
    dice.one_of(&[
        OpSet::DATA,
        OpSet::ALL,
        writes,
        flushes,
        OpSet::of(Op::Read),
    ])
}

/// A pool of the first `disks` disks.
fn pool(disks: usize, dice: &mut Dice) -> PoolSpec {
    let sides = dice.one_of(&[1, 1, 2, 3]).min(disks);
    let members: Vec<usize> = (0..disks).collect();
    PoolSpec {
        bitmap: None,
        name: "tank".into(),
        members: members.chunks(sides).map(<[usize]>::to_vec).collect(),
        layout: dice.one_of(&[Layout::Static, Layout::Dynamic]),
        throttle: throttle(dice),
        tunables: tunables(dice),
    }
}

fn throttle(dice: &mut Dice) -> ThrottleConfig {
    let legacy = LegacyConfig {
        delay_slots: dice.one_of(&[None, Some(1), Some(3)]),
        // A full pipeline contains blocks that no client wrote, so the contents would not match.
        full_pipeline: None,
    };
    dice.one_of(&[
        ThrottleConfig::None,
        ThrottleConfig::OpenZfs,
        ThrottleConfig::OpenZfs,
        ThrottleConfig::Legacy(legacy),
    ])
}

fn tunables(dice: &mut Dice) -> Tunables {
    let mut tunables = Tunables::new(8 << 30);
    for (tunable, value) in [
        (Tunable::DirtyDataMax, dice.within(1, 64) * 4096),
        (Tunable::TxgTimeout, 1),
        (Tunable::TxgOverhead, dice.within(0, 1)),
        (Tunable::WriteLimitMin, dice.within(1, 64) * 4096),
        (Tunable::WriteLimitOverride, dice.one_of(&[0, 1 << 16])),
    ] {
        // A refused tunable keeps its default.
        let _ = tunables.set(tunable, value);
    }
    for _ in 0..dice.within(0, 4) {
        let (tunable, value) = tuning(dice);
        let _ = tunables.set(tunable, value);
    }
    tunables
}

/// A tunable, and a value for it.
pub(super) fn tuning(dice: &mut Dice) -> (Tunable, u64) {
    let most = dice.within(1, 12);
    let percent = dice.within(10, 90);
    dice.one_of(&[
        (Tunable::DirtyDataMax, most * 8192),
        (Tunable::DirtyDataSyncPercent, percent),
        (Tunable::DelayMinDirtyPercent, percent),
        (Tunable::DelayScale, most * 10_000),
        (Tunable::AsyncWriteActiveMinDirtyPercent, percent),
        (Tunable::MaxActive, most),
        (Tunable::QueueDepthPct, most * 10),
        (Tunable::SyncReadMaxActive, most),
        (Tunable::SyncWriteMaxActive, most),
        (Tunable::AsyncWriteMinActive, most),
        (Tunable::AsyncWriteMaxActive, most),
        (Tunable::Aggregation, most % 2),
        (Tunable::AggregationLimit, most * 4096),
        (Tunable::AggregationLimitNonRotating, most * 4096),
        (Tunable::ReadGapLimit, most * 1024),
        (Tunable::TxgSynctimeMs, most * 20),
        (Tunable::ThrottleDelay, most * 1_000_000),
        (Tunable::DirtyRetire, most % 2),
        (Tunable::TxgOverhead, most % 2),
    ])
}

/// Volumes that fit into the pool. All volumes have the same block size, because otherwise the checker could
/// not know the sizes of the buffers of a child zio.
fn volumes(pool: &PoolSpec, disks: &[DiskSpec], dice: &mut Dice) -> Vec<VolumeSpec> {
    let smallest = pool.members.iter().flatten().map(|disk| disks[*disk].size);
    let block_size = 512 << dice.within(0, 5);
    let count = dice.within(1, 3);
    // How many blocks each volume can have on each member.
    let room = smallest.min().unwrap_or(0) / block_size / count;
    let volume = |at: u64| VolumeSpec {
        name: format!("tank/v{at}"),
        pool: 0,
        size: dice.within(1, room) * pool.members.len() as u64 * block_size,
        block_size: block_size as u32,
        write: dice.one_of(&[WritePolicy::Back, WritePolicy::Back, WritePolicy::Through]),
    };
    (0..count).map(volume).collect()
}

/// The sizes of disks are multiples of this unit. One unit has room for three volumes with the largest
/// blocks.
const DISK_UNIT: u64 = 64 << 10;
