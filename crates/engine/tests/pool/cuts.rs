//! Tests power cuts that take the pool several steps, and what happens meanwhile.

use dashpot_engine::pool::{
    Layout, LegacyConfig, MirrorStart, ThrottleConfig, Tunable, WritePolicy,
};
use dashpot_engine::{Command, Duration, Errno, Input, Op, PoolId, ZioId};

use crate::hand::{BLOCK, Hand};
use crate::machine::Machine;

const POOL: PoolId = PoolId(0);

/// Makes a volume of 1 GiB.
fn large(throttle: ThrottleConfig, tunables: &[(Tunable, u64)]) -> Hand {
    let size = 1 << 30;
    let mut hand = Hand::pool(&[1], Layout::Static, size, throttle, tunables).expect("a pool");
    hand.add(size, BLOCK as u32, WritePolicy::Back)
        .expect("a volume");
    hand
}

/// Ticks until all jobs have ended or wait for a disk.
fn end_jobs(hand: &mut Hand) {
    while hand.engine.next_deadline() == Some(hand.now) {
        hand.tick();
    }
}

#[test]
fn a_pool_without_a_volume_survives_a_power_cut() {
    let none = ThrottleConfig::None;
    let mut hand = Hand::pool(&[1], Layout::Dynamic, 1 << 20, none, &[]).expect("a pool");
    hand.command(Command::Crash(POOL));
    end_jobs(&mut hand);
}

#[test]
fn a_failing_disk_fails_no_read_that_waits_for_a_power_cut() {
    let mut hand = large(ThrottleConfig::None, &[(Tunable::FailMode, 1)]);
    (0..2_000).for_each(|id| hand.write(id, u64::from(id)));
    hand.command(Command::Crash(POOL));
    hand.submit(2_000, Op::Write, true, 0, BLOCK as u32);
    (2_001..2_600).for_each(|id| hand.write(id, u64::from(id)));
    hand.submit(2_600, Op::Read, false, 0, BLOCK as u32);
    while hand.working.is_empty() {
        assert!(hand.tick());
    }
    assert!(hand.done(Err(Errno::Io)), "the durable write fails");
    assert_eq!(hand.outcome(2_600), None, "the read waits");
    end_jobs(&mut hand);
    assert_eq!(hand.outcome(2_600), Some(Ok(())));
}

#[test]
fn requests_that_waited_for_a_power_cut_keep_the_order_of_locks() {
    let mut hand = large(ThrottleConfig::None, &[]);
    (0..2_000).for_each(|id| hand.write(id, u64::from(id)));
    hand.command(Command::Crash(POOL));
    hand.ended.clear();
    hand.submit(2_000, Op::Write, false, 0, 600 * BLOCK as u32);
    (2_001..2_400).for_each(|id| hand.write(id, 10));
    end_jobs(&mut hand);
    let ids: Vec<u32> = hand.ended.iter().map(|(id, _)| *id).collect();
    assert!(ids.iter().copied().eq(2_000..2_400), "{ids:?}");
}

#[test]
fn a_flush_after_a_power_cut_brings_no_place_back() {
    let none = ThrottleConfig::None;
    let mut hand = Hand::pool(&[2], Layout::Dynamic, 1 << 20, none, &[]).expect("a pool");
    hand.add(1 << 20, 512, WritePolicy::Back).expect("a volume");
    hand.engine.record_mirrors(POOL, &[MirrorStart::default()]);
    hand.command(Command::Repair(POOL));
    let write = |hand: &mut Hand, id: u32| {
        hand.submit(id, Op::Write, false, u64::from(id) * 512, 512);
    };
    (0..1_000).for_each(|id| write(&mut hand, id));
    hand.submit(2_000, Op::Flush, false, 0, 0);
    while hand.outcome(2_000).is_none() {
        end_jobs(&mut hand);
        hand.step(Input::Recorded(POOL, Ok(())));
        while hand.done(Ok(())) {}
    }
    // This block gets to the disks, but their caches may lose it.
    write(&mut hand, 1_000);
    while hand.ops().iter().filter(|op| **op == Op::Flush).count() < 2 {
        match hand.ops().first() {
            Some(Op::Write) => assert!(hand.done(Ok(()))),
            _ => assert!(hand.tick()),
        }
        hand.step(Input::Recorded(POOL, Ok(())));
    }
    hand.command(Command::Crash(POOL));
    while hand.done(Err(Errno::Io)) {}
    hand.command(Command::Repair(POOL));
    // The repair ends before the pool has worked through all places for the cut.
    let mut flushed = 0;
    for _ in 0..100 {
        while let Some(op) = hand.ops().first().copied() {
            flushed += u32::from(op == Op::Flush);
            hand.done(Ok(()));
        }
        hand.now = hand.now + Duration::from_millis(1);
        let now = hand.now;
        hand.step(Input::Stopped {
            from: now,
            until: now,
        });
    }
    assert_eq!(flushed, 2, "the repair has ended");
    end_jobs(&mut hand);
    hand.submit(3_000, Op::Read, false, 1_000 * 512, 512);
    assert_eq!(hand.ops(), [], "the place of the block is lost");
    assert_eq!(hand.outcome(3_000), Some(Ok(())));
}

#[test]
fn the_throttle_counts_long_writes_that_are_not_yet_dirty() {
    let legacy = ThrottleConfig::Legacy(LegacyConfig {
        delay_slots: None,
        full_pipeline: None,
    });
    for throttle in [ThrottleConfig::None, ThrottleConfig::OpenZfs, legacy] {
        let most = 1_000;
        let tunables = [
            (Tunable::DirtyDataMax, most * BLOCK),
            (Tunable::WriteLimitOverride, 300 * BLOCK),
        ];
        let mut hand = large(throttle, &tunables);
        for id in 0..8 {
            let offset = u64::from(id) * 1_024 * BLOCK;
            hand.submit(id, Op::Write, false, offset, 600 * BLOCK as u32);
        }
        end_jobs(&mut hand);
        let dirty = hand.engine.dirty() / BLOCK;
        assert!(dirty <= 3 * 600, "{throttle:?}: {dirty} blocks are dirty");
    }
}

#[test]
fn the_end_of_a_pool_fails_requests_that_wait_for_a_power_cut_once() {
    let mut hand = large(ThrottleConfig::None, &[]);
    (0..2_000).for_each(|id| hand.write(id, u64::from(id)));
    hand.command(Command::Crash(POOL));
    hand.ended.clear();
    hand.submit(2_000, Op::Read, false, 0, BLOCK as u32);
    hand.submit(2_001, Op::Write, false, 0, 600 * BLOCK as u32);
    hand.submit(2_002, Op::Flush, false, 0, 0);
    hand.command(Command::FailHeld(Errno::Shutdown));
    hand.write(2_003, 1);
    end_jobs(&mut hand);
    let failed = |id| (id, Err(Errno::Shutdown));
    assert_eq!(hand.ended, [2_000, 2_001, 2_002, 2_003].map(failed));
}

/// The second power cut comes while the pool still does the work of the first. The pool must free each buffer
/// only once: otherwise two later blocks would share a buffer.
#[test]
fn power_cuts_that_follow_each_other_take_each_buffer_once() {
    let (block, size) = (512, 512 * 2_048);
    let policies = [WritePolicy::Through, WritePolicy::Back];
    for (seed, write) in (0..).zip(policies) {
        for members in [&[1][..], &[2, 1]] {
            let policy = (ThrottleConfig::None, write);
            let mut machine = Machine::new(members, Layout::Static, policy, block, size, seed);
            for round in 0..6 {
                let bytes = vec![round + 1; 700 * block as usize + 100];
                machine.submit(ZioId(1), Op::Write, false, 0, bytes);
                for id in 0..600 {
                    let offset = 1_024 * 512 + u64::from(id) * 512;
                    machine.submit(ZioId(2 + id), Op::Read, false, offset, vec![0; 100]);
                }
                for _ in 0..u32::from(round) * 2 {
                    machine.advance();
                }
                machine.crash();
                machine.crash();
                machine.submit(ZioId(1), Op::Write, false, 0, vec![1; 600 * 512]);
                machine.advance();
                machine.crash();
                let bytes: Vec<u8> = (0..size as u32).map(|at| (at / 512 % 251) as u8).collect();
                machine.submit(ZioId(1), Op::Write, true, 0, bytes.clone());
                while machine.ended.is_empty() {
                    assert!(machine.advance(), "the write never ends");
                }
                machine.ended.clear();
                assert!(machine.read_all() == bytes, "{write:?}: wrong bytes");
            }
            while machine.advance() {}
            assert_eq!(machine.buffers(), 0, "{write:?}: a buffer was never freed");
        }
    }
}
