//! Tests flushes, syncs and trims of more blocks than one step may touch. No step may take long, and after a
//! power cut, all data that a flush or FUA had acknowledged must be there.

use std::collections::BTreeMap;

use dashpot_engine::pool::{Layout, ThrottleConfig, Tunable, WritePolicy};
use dashpot_engine::{Command, Input, Op, PoolId, Random, VolumeId, Wait, ZioId};

use crate::bytes::{LAYOUTS, Policy, policies};
use crate::hand::{self, Hand};
use crate::machine::Machine;

const BLOCK: u64 = 512;
const BLOCKS: u64 = 2_048;
/// How many requests are in flight at once.
const DEPTH: u32 = 12;
/// The maximum number of blocks in a durable write that goes to the disks in the step that admits it.
const DURABLE_MAX: u64 = 8;
/// A step may touch 256 blocks and 256 extents, each on two sides, and admit all durable writes that waited.
const TOUCHED_MAX: u64 = 2 * (2 * 256 + DURABLE_MAX * DEPTH as u64);

/// A version of a block, in which all bytes are the same.
#[derive(Clone, Copy, Debug)]
struct Version {
    byte: u8,
    submitted: u64,
    acknowledged: Option<u64>,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct Asked {
    op: Op,
    fua: bool,
    first: u64,
    count: u64,
    submitted: u64,
}

struct Run {
    machine: Machine,
    random: Random,
    /// The versions that each block may have after a power cut.
    blocks: Vec<Vec<Version>>,
    in_flight: BTreeMap<u32, Asked>,
    /// The number of submissions and replies so far.
    clock: u64,
}

impl Run {
    fn new(members: &[usize], layout: Layout, policy: Policy, seed: u64) -> Run {
        let size = BLOCKS * BLOCK;
        let mut machine = Machine::new(members, layout, policy, BLOCK as u32, size, seed);
        machine.tune(Tunable::DirtyDataMax, size);
        let zeroes = Version {
            byte: 0,
            submitted: 0,
            acknowledged: Some(0),
        };
        Run {
            machine,
            random: Random::new(seed),
            blocks: vec![vec![zeroes]; BLOCKS as usize],
            in_flight: BTreeMap::new(),
            clock: 0,
        }
    }

    fn ask(&mut self) {
        let ids = 0..DEPTH;
        let Some(id) = ids.into_iter().find(|id| !self.in_flight.contains_key(id)) else {
            return;
        };
        let op = match self.random.below(12) {
            0 => Op::Flush,
            1 => [Op::Trim, Op::Zero][self.random.below(2) as usize],
            _ => Op::Write,
        };
        let fua = op != Op::Flush && self.random.below(8) == 0;
        let first = self.random.below(BLOCKS);
        let most = match op {
            Op::Flush => 0,
            Op::Write if self.random.below(16) == 0 => BLOCKS,
            Op::Write if fua => DURABLE_MAX,
            Op::Write => 128,
            _ => BLOCKS,
        };
        let count = match most {
            0 => 0,
            _ => 1 + self.random.below(most.min(BLOCKS - first)),
        };
        self.clock += 1;
        let byte = match op {
            Op::Write => 1 + (self.clock % 255) as u8,
            _ => 0,
        };
        let version = Version {
            byte,
            submitted: self.clock,
            acknowledged: None,
        };
        for block in first..first + count {
            self.blocks[block as usize].push(version);
        }
        let asked = Asked {
            op,
            fua,
            first,
            count,
            submitted: self.clock,
        };
        self.in_flight.insert(id, asked);
        let data = vec![byte; (count * BLOCK) as usize];
        let offset = if op == Op::Flush { 0 } else { first * BLOCK };
        self.machine.submit(ZioId(id), op, fua, offset, data);
    }

    fn take_replies(&mut self) {
        for (id, outcome, _) in std::mem::take(&mut self.machine.ended) {
            assert_eq!(outcome, Ok(()));
            let asked = self.in_flight.remove(&id.0).expect("in flight");
            self.clock += 1;
            self.note_reply(asked);
        }
    }

    fn note_reply(&mut self, asked: Asked) {
        for block in asked.first..asked.first + asked.count {
            let versions = self.blocks[block as usize].iter_mut();
            for version in versions.filter(|version| version.submitted == asked.submitted) {
                version.acknowledged = Some(self.clock);
            }
        }
        match asked.op {
            Op::Flush => {
                for versions in &mut self.blocks {
                    forget_replaced(versions, asked.submitted);
                }
            }
            _ if asked.fua => {
                for block in asked.first..asked.first + asked.count {
                    let own = |version: &Version| version.submitted == asked.submitted;
                    forget_before(&mut self.blocks[block as usize], own);
                }
            }
            _ => {}
        }
    }

    fn crash(&mut self, what: &str) {
        // The bound does not apply here: a power cut forgets everything at once, and the read below is as
        // long as the volume.
        let most_touched = self.machine.most_touched;
        self.machine.crash();
        self.in_flight.clear();
        let bytes = self.machine.read_all();
        self.machine.most_touched = most_touched;
        for (block, content) in bytes.chunks(BLOCK as usize).enumerate() {
            let byte = content[0];
            assert!(
                content.iter().all(|other| *other == byte),
                "{what}: block {block} is torn"
            );
            let versions = &mut self.blocks[block];
            let found = versions.iter().find(|version| version.byte == byte);
            let Some(found) = found.copied() else {
                panic!("{what}: block {block} holds {byte}, not one of {versions:?}");
            };
            // Several versions may have this byte. It does not matter which of them is kept, because the byte
            // is on the disks and stays there.
            *versions = vec![Version {
                acknowledged: Some(self.clock),
                ..found
            }];
        }
    }
}

/// Forgets the versions that can no longer come back, because the flush that was submitted at the time
/// `submitted` has made newer versions durable.
fn forget_replaced(versions: &mut Vec<Version>, submitted: u64) {
    let durable = |version: &Version| version.acknowledged.is_some_and(|at| at < submitted);
    forget_before(versions, durable);
}

/// Forgets the versions that were acknowledged before the last durable version was submitted.
fn forget_before(versions: &mut Vec<Version>, is_durable: impl Fn(&Version) -> bool) {
    let durable = versions.iter().filter(|version| is_durable(version));
    let since = durable.map(|version| version.submitted).max().unwrap_or(0);
    versions.retain(|version| version.acknowledged.is_none_or(|at| at >= since));
}

fn run(members: &[usize], layout: Layout, policy: Policy, seed: u64) {
    let what = format!("seed {seed}: {members:?} {layout:?} {policy:?}");
    let mut run = Run::new(members, layout, policy, seed);
    for _ in 0..3 {
        for _ in 0..100 {
            run.ask();
            for _ in 0..run.random.below(12) >> run.random.below(6) {
                run.machine.advance();
            }
            run.take_replies();
        }
        run.crash(&what);
    }
    let most = run.machine.most_touched;
    if policy.1 == WritePolicy::Back && layout == Layout::Static {
        assert!(most <= TOUCHED_MAX, "{what}: a step touched {most} blocks");
    }
}

#[test]
fn what_was_flushed_in_parts_survives_power_cuts() {
    for seed in 0..6 {
        for members in LAYOUTS {
            for policy in policies() {
                for layout in [Layout::Static, Layout::Dynamic] {
                    run(members, layout, policy, seed);
                }
            }
        }
    }
}

/// The maximum number of blocks or I/Os that one step touches when `op` covers a volume whose blocks are all
/// dirty.
fn most_touched(op: Op) -> u64 {
    let policy = (ThrottleConfig::None, WritePolicy::Back);
    let size = BLOCKS * BLOCK;
    let mut machine = Machine::new(&[1], Layout::Static, policy, BLOCK as u32, size, 1);
    machine.tune(Tunable::DirtyDataMax, 4 * size);
    for block in 0..BLOCKS {
        machine.submit(
            ZioId(0),
            Op::Write,
            false,
            block * BLOCK,
            vec![1; BLOCK as usize],
        );
        assert_eq!(machine.ended.drain(..).count(), 1, "acknowledged at once");
    }
    machine.most_touched = 0;
    match op {
        Op::Flush => machine.submit(ZioId(0), op, false, 0, Vec::new()),
        Op::Trim => machine.submit(ZioId(0), op, false, 0, vec![0; size as usize]),
        _ => machine.drain(),
    }
    while machine.advance() {}
    machine.most_touched
}

#[test]
fn a_flush_a_trim_and_a_sync_take_short_steps() {
    for op in [Op::Flush, Op::Trim, Op::Write] {
        let most = most_touched(op);
        assert!(
            (100..=256).contains(&most),
            "{op:?}: a step touched {most} blocks"
        );
    }
}

#[test]
fn long_writes_and_reads_and_a_power_cut_take_short_steps() {
    let size = BLOCKS * BLOCK;
    for (members, layout) in LAYOUTS
        .into_iter()
        .flat_map(|members| [(members, Layout::Static), (members, Layout::Dynamic)])
    {
        for (policy, fua) in policies()
            .into_iter()
            .flat_map(|policy| [(policy, false), (policy, true)])
        {
            let what = format!("{members:?} {layout:?} {policy:?}, FUA {fua}");
            let mut machine = Machine::new(members, layout, policy, BLOCK as u32, size, 1);
            machine.tune(Tunable::DirtyDataMax, 4 * size);
            // The write begins and ends within a block.
            let bytes: Vec<u8> = (100..size - 100).map(|at| (at / 7) as u8).collect();
            machine.submit(ZioId(1), Op::Write, fua, 100, bytes.clone());
            while machine.ended.is_empty() {
                assert!(machine.advance(), "{what}: the write never ends");
            }
            machine.ended.clear();
            let all = machine.read_all();
            assert!(
                all[100..(size - 100) as usize] == bytes,
                "{what}: wrong bytes"
            );
            machine.submit(ZioId(1), Op::Write, false, 0, vec![9; size as usize]);
            machine.advance();
            machine.crash();
            let found = machine.read_all();
            let kept = |at: usize| found[at] == bytes[at - 100] || found[at] == 9;
            assert!(
                !fua || (100..bytes.len()).all(kept),
                "{what}: lost what was durable"
            );
            // A step has at most two moves for each block: one for its bytes, and one that frees its buffer.
            let most = machine.most_moved;
            assert!(most <= 2 * 256 + 8, "{what}: a step moved {most} blocks");
            while machine.advance() {}
            assert_eq!(machine.buffers(), 0, "{what}: a buffer was never freed");
        }
    }
}

/// Makes a volume of 1 GiB without a throttle.
fn large() -> Hand {
    let none = ThrottleConfig::None;
    let mut hand = Hand::pool(&[1], Layout::Static, 1 << 30, none, &[]).expect("a pool");
    hand.add(1 << 30, hand::BLOCK as u32, WritePolicy::Back)
        .expect("a volume");
    hand
}

fn dirty_blocks(hand: &Hand) -> u64 {
    let state = hand.engine.pool_state(PoolId(0)).expect("a pool");
    state.dirty / hand::BLOCK
}

/// Ticks until all jobs have ended or wait for a disk.
fn end_jobs(hand: &mut Hand) {
    while hand.engine.next_deadline() == Some(hand.now) {
        hand.tick();
    }
}

/// Lets the disks work until the request `id` is answered.
fn answer(hand: &mut Hand, id: u32) {
    for _ in 0..10_000 {
        if hand.outcome(id).is_some() {
            break;
        }
        hand.run(1);
    }
    assert_eq!(hand.outcome(id), Some(Ok(())));
}

#[test]
fn a_trim_takes_no_place_of_a_block_that_a_flush_has_yet_to_send() {
    let mut hand = large();
    (0..600).for_each(|id| hand.write(id, u64::from(id)));
    hand.submit(600, Op::Flush, false, 0, 0);
    hand.submit(601, Op::Trim, false, 0, 600 * hand::BLOCK as u32);
    let mut home = 0;
    while hand.outcome(600).is_none() {
        let zio = hand.working.front().and_then(|id| hand.engine.child(*id));
        home += zio.map_or(0, |zio| u64::from(zio.length) / hand::BLOCK);
        hand.run(1);
    }
    assert!(
        home >= 600,
        "only {home} blocks, or their trims, are on the disk"
    );
}

#[test]
fn a_flush_waits_for_extents_that_a_sync_takes_meanwhile() {
    let mut hand = large();
    for id in 0..1_500 {
        let offset = u64::from(id) * 4 * hand::BLOCK;
        hand.submit(id, Op::Trim, false, offset, 2 * hand::BLOCK as u32);
        end_jobs(&mut hand);
    }
    assert_eq!(dirty_blocks(&hand), 1_500);
    hand.submit(1_500, Op::Flush, false, 0, 0);
    hand.command(Command::Drain);
    end_jobs(&mut hand);
    answer(&mut hand, 1_500);
    assert_eq!(dirty_blocks(&hand), 0);
}

#[test]
fn a_block_that_waited_for_an_extent_waits_no_longer_when_its_turn_has_come() {
    let mut hand = large();
    hand.submit(0, Op::Trim, false, 0, 600 * hand::BLOCK as u32);
    hand.submit(1, Op::Flush, false, 0, 0);
    for block in 0..600 {
        hand.submit(
            10 + block,
            Op::Write,
            true,
            u64::from(block) * hand::BLOCK,
            hand::BLOCK as u32,
        );
    }
    assert_eq!(hand.working.len(), 1, "all wait for the trim");
    assert!(hand.done(Ok(())));
    let first = hand.working.len();
    (0..first).for_each(|_| assert!(hand.done(Ok(()))));
    hand.submit(700, Op::Write, true, 0, hand::BLOCK as u32);
    answer(&mut hand, 700);
    for id in 10..610 {
        answer(&mut hand, id);
    }
}

fn wait_of(hand: &Hand, id: u32) -> Option<Wait> {
    let zio = hand.engine.at_volume(VolumeId(0), ZioId(id));
    zio.map(|zio| zio.wait)
}

#[test]
fn requests_wait_until_a_power_cut_has_ended() {
    let mut hand = large();
    (0..2_000).for_each(|id| hand.write(id, u64::from(id)));
    hand.command(Command::Crash(PoolId(0)));
    assert_eq!(dirty_blocks(&hand), 0, "all is lost at once");
    for id in 2_000..2_004 {
        hand.write(id, u64::from(id % 2));
    }
    assert_eq!(wait_of(&hand, 2_000), Some(Wait::PowerCut));
    hand.step(Input::Abort(&[ZioId(2_002)]));
    hand.ended.clear();
    end_jobs(&mut hand);
    let ids: Vec<u32> = hand.ended.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [2_000, 2_001, 2_003], "in the order of arrival");
    assert_eq!(dirty_blocks(&hand), 2);
}

#[test]
fn a_power_cut_takes_the_requests_that_wait_for_another() {
    let mut hand = large();
    (0..2_000).for_each(|id| hand.write(id, u64::from(id)));
    hand.command(Command::Crash(PoolId(0)));
    hand.write(2_000, 0);
    hand.tick();
    hand.command(Command::Crash(PoolId(0)));
    hand.write(2_001, 1);
    end_jobs(&mut hand);
    assert_eq!(hand.outcome(2_000), None);
    assert_eq!(wait_of(&hand, 2_000), None, "it was dropped");
    assert_eq!(hand.outcome(2_001), Some(Ok(())));
    assert_eq!(dirty_blocks(&hand), 1);
}

#[test]
fn a_long_write_gets_its_locks_in_the_order_of_arrival() {
    let mut hand = large();
    // This write covers a part of a block, so it holds its lock until a disk has read the rest of the block.
    hand.submit(1, Op::Write, false, 300 * hand::BLOCK, 512);
    hand.submit(2, Op::Write, false, 0, 600 * hand::BLOCK as u32);
    hand.write(3, 10);
    hand.write(4, 300);
    for id in 2..5 {
        assert_eq!(wait_of(&hand, id), Some(Wait::Lock), "{id}");
    }
    assert!(hand.done(Ok(())));
    end_jobs(&mut hand);
    let ids: Vec<u32> = hand.ended.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [1, 2, 3, 4]);
    assert_eq!(dirty_blocks(&hand), 600);
}
