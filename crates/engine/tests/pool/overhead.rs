//! Tests the overhead of txgs: the metadata that counts as dirty data, and the zios beside the data.

use std::collections::{BTreeMap, BTreeSet};

use dashpot_engine::inject::{Delay, Effect, RuleSpec, Service};
use dashpot_engine::pool::{
    Layout, LegacyConfig, PoolState, ThrottleConfig, Tunable, TxgState, WritePolicy,
};
use dashpot_engine::{Command, DiskId, Duration, Errno, Input, Op, OpSet, PoolId, Random, ZioId};

use crate::hand::{BLOCK, Hand};

const OPENZFS: ThrottleConfig = ThrottleConfig::OpenZfs;
const POOL: PoolId = PoolId(0);
const ON: [(Tunable, u64); 2] = [(Tunable::TxgOverhead, 1), (Tunable::Aggregation, 0)];
/// The metadata of a small volume: an indirect block, the block of dnodes, and five blocks above it.
const SMALL: u64 = (128 + 16 + 5 * 128) << 10;

fn state(hand: &Hand) -> PoolState {
    hand.engine.pool_state(POOL).unwrap()
}

/// The next zios at the disk, each with its operation and whether it is overhead. All end well.
fn end_all(hand: &mut Hand) -> Vec<(Op, bool)> {
    let zios: Vec<ZioId> = hand.working.iter().copied().collect();
    let ended = zios.into_iter().map(|id| {
        let overhead = hand.engine.is_overhead(id);
        let zio = hand.engine.child(id).unwrap();
        let bytes = hand.engine.segments(id).count();
        assert_eq!(bytes > 0, zio.op == Op::Write && !overhead, "{zio:?}");
        hand.working.retain(|other| *other != id);
        hand.step(Input::Done(id, Ok(())));
        (zio.op, overhead)
    });
    ended.collect()
}

/// Lets all zios end, round by round, until the disk has none. Returns each kind with how many of it came
/// one after the other.
fn kinds(hand: &mut Hand) -> Vec<((Op, bool), usize)> {
    let mut kinds: Vec<((Op, bool), usize)> = Vec::new();
    while !hand.working.is_empty() {
        for kind in end_all(hand) {
            match kinds.last_mut() {
                Some((last, count)) if *last == kind => *count += 1,
                _ => kinds.push((kind, 1)),
            }
        }
    }
    kinds
}

#[test]
fn a_txg_ends_with_metadata_later_passes_and_uberblocks_between_two_syncs() {
    let mut hand = Hand::volume(&[1], OPENZFS, &ON);
    for id in 0..20 {
        hand.write(id, u64::from(id));
    }
    assert_eq!(state(&hand).dirty, 20 * BLOCK);
    assert_eq!(state(&hand).dirty_metadata, SMALL);
    assert!(hand.tick(), "the txg timer is set");
    let (data, overhead, sync) = ((Op::Write, false), (Op::Write, true), (Op::Flush, false));
    // Two copies of 8 blocks of metadata, three copies of 10, 5 and 3 blocks, and one uberblock in each label.
    let expected = [
        (data, 20),
        (overhead, 2 * 8 + 3 * (10 + 5 + 3)),
        (sync, 1),
        (overhead, 4),
        (sync, 1),
    ];
    assert_eq!(kinds(&mut hand), expected);
    let after = state(&hand);
    assert_eq!((after.dirty, after.dirty_metadata), (0, 0));
    assert!(!hand.tick(), "an idle pool does not wake up");
    let stats = hand.engine.pool_stats(POOL, hand.now).unwrap();
    assert_eq!(stats.overhead.disks.writes, 2 * 8 + 3 * 18 + 4);
    assert_eq!(stats.disks.writes, 20 + stats.overhead.disks.writes);
    assert_eq!(stats.by_volume[0].disks.writes, 20);
}

#[test]
fn only_the_throttle_of_openzfs_has_overhead_and_only_if_it_is_on() {
    let legacy = ThrottleConfig::Legacy(LegacyConfig {
        delay_slots: None,
        full_pipeline: None,
    });
    let cases = [
        (ThrottleConfig::None, WritePolicy::Back, 1),
        (ThrottleConfig::None, WritePolicy::Through, 1),
        (legacy, WritePolicy::Back, 1),
        (OPENZFS, WritePolicy::Back, 0),
    ];
    for (throttle, write, on) in cases {
        let tunables = [(Tunable::TxgOverhead, on)];
        let mut hand = Hand::pool(&[1], Layout::Static, 1 << 20, throttle, &tunables).unwrap();
        hand.add(1 << 20, BLOCK as u32, write).unwrap();
        hand.write(1, 0);
        hand.run(100);
        let stats = hand.engine.pool_stats(POOL, hand.now).unwrap();
        assert_eq!(stats.overhead.queued.writes, 0, "{throttle:?}");
        assert!(stats.disks.writes > 0);
    }
}

/// After a FLUSH only metadata is dirty. It reaches the disks when the txg syncs, and then the pool is idle.
#[test]
fn a_flush_leaves_the_metadata_to_the_txg() {
    let mut hand = Hand::volume(&[2], OPENZFS, &ON);
    hand.write(1, 0);
    hand.submit(2, Op::Flush, false, 0, 0);
    while hand.done(Ok(())) {}
    assert_eq!(hand.outcome(2), Some(Ok(())));
    assert_eq!((state(&hand).dirty, hand.engine.dirty()), (0, 0));
    assert_eq!(state(&hand).dirty_metadata, SMALL);
    hand.run(1_000);
    assert_eq!(state(&hand).dirty_metadata, 0);
    assert!(!hand.tick() && hand.working.is_empty());
}

#[test]
fn overhead_that_fails_is_repeated_and_the_pool_is_degraded_meanwhile() {
    let mut hand = Hand::volume(&[1], OPENZFS, &ON);
    hand.write(1, 0);
    assert!(hand.tick());
    let (mut fails, mut degraded) = (3, 0);
    loop {
        let overhead = hand.working.front().map(|id| hand.engine.is_overhead(*id));
        let fail = overhead == Some(true) && fails > 0;
        fails -= i32::from(fail);
        let ended = hand.done(if fail { Err(Errno::Io) } else { Ok(()) });
        degraded += u32::from(hand.engine.is_degraded());
        if !ended && !hand.tick() {
            break;
        }
    }
    assert!(fails == 0 && degraded > 0 && !hand.engine.is_degraded());
    assert_eq!(state(&hand).dirty_metadata, 0);
    hand.write(2, 0);
    assert_eq!(hand.outcome(2), Some(Ok(())));
}

/// Rules see the zios as writes. A rule that hangs writes keeps the txg from ending; after a power cut a new
/// txg works.
#[test]
fn rules_hold_overhead_and_a_power_cut_forgets_it() {
    let mut hand = Hand::volume(&[1], OPENZFS, &ON);
    let service = Service::Constant(Duration::from_millis(10));
    let delay = Effect::Delay(Delay::new(service, None));
    hand.inject(RuleSpec {
        ops: OpSet::of(Op::Write),
        ..RuleSpec::new(delay)
    });
    hand.write(1, 0);
    hand.run(1_000);
    let stats = hand.engine.disk_stats(DiskId(0), hand.now).unwrap();
    assert_eq!(stats.op(Op::Write).completed, 1 + 2 * 8 + 3 * 18 + 4);
    // One write and the metadata beside it, three passes, and the uberblocks come one after the other. Ten
    // zios of the class are at the disk at a time, at least two of them.
    assert!(hand.now.as_nanos() >= 5_000_000_000 + 5 * 10_000_000);

    hand.write(2, 1);
    assert!(hand.tick());
    for _ in 0..3 {
        end_all(&mut hand);
        hand.tick();
    }
    hand.command(Command::Crash(POOL));
    hand.run(1_000);
    assert_eq!(state(&hand).dirty_metadata, 0);
    hand.write(3, 1);
    hand.run(1_000);
    assert_eq!(
        (hand.outcome(3), state(&hand).dirty_metadata),
        (Some(Ok(())), 0)
    );
}

/// A naive model of dirty metadata: all blocks of data that have become dirty in each txg.
#[derive(Default)]
struct Naive {
    dirtied: BTreeMap<u64, BTreeSet<(usize, u64)>>,
}

const SECTOR: u64 = 512;
/// The sizes of the volumes in blocks: one, two and three levels of indirect blocks.
const VOLUMES: [u64; 3] = [3 << 10, 9 << 10, 4 << 20];

impl Naive {
    /// The bytes of metadata that the blocks of a txg make dirty.
    fn metadata(&self, txg: u64) -> u64 {
        let mut above = BTreeSet::new();
        let dirtied = self.dirtied.get(&txg).into_iter().flatten();
        for (volume, block) in dirtied {
            let mut pointers = VOLUMES[*volume].div_ceil(1_024);
            let (mut level, mut index) = (1, block / 1_024);
            above.insert((*volume, level, index, 128 << 10));
            while pointers > 3 {
                (level, index) = (level + 1, index / 1_024);
                pointers = pointers.div_ceil(1_024);
                above.insert((*volume, level, index, 128 << 10));
            }
            above.insert((*volume, 100, 0, 16 << 10));
            for level in 101..106 {
                above.insert((*volume, level, 0, 128 << 10));
            }
        }
        above.iter().map(|(_, _, _, size)| size).sum()
    }
}

fn random_run(members: &[usize], layout: Layout, seed: u64) {
    let mut random = Random::new(seed);
    // So much that no write waits: each joins the txg that is open when it comes.
    let tunables = [
        ON[0],
        (Tunable::DirtyDataMax, 512 << 20),
        (Tunable::DirtyDataSyncPercent, 1),
    ];
    let mut hand = Hand::pool(members, layout, 8 << 30, OPENZFS, &tunables).unwrap();
    for blocks in VOLUMES {
        hand.add(blocks * SECTOR, SECTOR as u32, WritePolicy::Back)
            .unwrap();
    }
    let mut naive = Naive::default();
    let mut asked = 0;
    for _ in 0..3_000 {
        match random.below(8) {
            0..=2 => {
                let volume = random.below(3) as usize;
                let block =
                    random.below(VOLUMES[volume]) % [VOLUMES[volume], 50][asked as usize % 2];
                let open = state(&hand).txgs.last().unwrap().0;
                let (at, length) = (block * SECTOR, SECTOR as u32);
                hand.submit_to(volume as u32, asked, Op::Write, at, length);
                assert_eq!(hand.outcome(asked), Some(Ok(())));
                naive
                    .dirtied
                    .entry(open)
                    .or_default()
                    .insert((volume, block));
                asked += 1;
            }
            3 if random.below(4) == 0 => {
                hand.submit_to(random.below(3) as u32, asked, Op::Flush, 0, 0);
                asked += 1;
            }
            4 if random.below(4) == 0 => drop(hand.tick()),
            _ => drop(hand.done(Ok(()))),
        }
        check(&hand, &naive, seed);
    }
    hand.run(200_000);
    assert_eq!(hand.ended.len(), asked as usize, "seed {seed}");
    let ids: BTreeSet<u32> = hand.ended.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids.len(), asked as usize, "a zio ended twice");
    assert_eq!((state(&hand).dirty, state(&hand).dirty_metadata), (0, 0));
    assert!(!hand.tick() && hand.working.is_empty());
}

/// Compares the dirty metadata with the model. Of the syncing txg the model knows only the most.
fn check(hand: &Hand, naive: &Naive, seed: u64) {
    let state = state(hand);
    let of = |wanted: TxgState| {
        let txgs = state.txgs.iter().filter(|(_, state)| *state == wanted);
        txgs.map(|(txg, _)| naive.metadata(*txg)).sum::<u64>()
    };
    let (least, most) = (
        of(TxgState::Open) + of(TxgState::Quiesced),
        of(TxgState::Syncing),
    );
    let dirty = state.dirty_metadata;
    let passes = if most > 0 { 10 * (48 << 10) } else { 0 };
    assert!(
        (least..=least + most.max(passes)).contains(&dirty),
        "seed {seed}: {dirty} bytes of metadata are dirty, not from {least} to {least} + {most}"
    );
}

#[test]
fn dirty_metadata_is_that_of_a_naive_model() {
    let members: [&[usize]; 3] = [&[1], &[2], &[1, 2, 1]];
    for seed in 0..4 {
        for members in members {
            random_run(members, Layout::Static, seed);
        }
        random_run(&[1, 1], Layout::Dynamic, seed);
    }
}
