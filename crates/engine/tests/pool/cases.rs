//! Tests sequences of events in which the pool once lost data or a zio, or could lose one.

use dashpot_engine::inject::RuleSpec;
use dashpot_engine::pool::{Layout, LegacyConfig, PoolError, ThrottleConfig, Tunable, WritePolicy};
use dashpot_engine::{
    ClientId, Command, Device, Duration, Errno, Input, Instant, Op, OpSet, PoolId, ZioId,
};

use crate::hand::{BLOCK, Hand};

const OPENZFS: ThrottleConfig = ThrottleConfig::OpenZfs;
const NONE: ThrottleConfig = ThrottleConfig::None;
const IO: Errno = Errno::Io;

#[test]
fn a_stalled_durable_write_is_not_acknowledged_before_it_is_home() {
    let mut hand = Hand::volume(&[1], OPENZFS, &[]);
    hand.submit(1, Op::Write, true, 0, BLOCK as u32);
    hand.done(Err(IO));
    assert_eq!(hand.outcome(1), Some(Err(IO)));
    hand.submit(2, Op::Write, true, 0, BLOCK as u32);
    hand.tick();
    hand.done(Ok(()));
    assert!(
        !hand.ops().contains(&Op::Flush),
        "its block is still on its way"
    );
    hand.run(10);
    assert_eq!(hand.outcome(2), Some(Ok(())));
}

#[test]
fn a_lock_goes_on_when_its_holder_and_the_next_are_gone() {
    let mut hand = Hand::volume(&[1], OPENZFS, &[(Tunable::DirtyDataMax, BLOCK)]);
    hand.write(0, 1);
    for id in 1..4 {
        hand.write(id, 0);
    }
    hand.step(Input::Abort(&[ZioId(1), ZioId(2)]));
    hand.run(100);
    assert_eq!(hand.outcome(3), Some(Ok(())));
}

#[test]
fn a_trim_of_nothing_whole_lets_the_next_go() {
    let mut hand = Hand::volume(&[1], NONE, &[(Tunable::DirtyDataMax, BLOCK)]);
    hand.write(0, 0);
    hand.submit(1, Op::Trim, false, BLOCK, 512);
    hand.write(2, 2);
    hand.run(100);
    assert_eq!(
        (hand.outcome(1), hand.outcome(2)),
        (Some(Ok(())), Some(Ok(())))
    );
}

/// The operations at the disks, each with its client.
fn asked(hand: &Hand) -> Vec<(Op, ClientId)> {
    let zios = hand.working.iter().filter_map(|id| hand.engine.child(*id));
    zios.map(|zio| (zio.op, zio.client)).collect()
}

#[test]
fn a_disk_works_for_a_volume_or_for_the_pool() {
    let mut hand = Hand::volume(&[1], OPENZFS, &[]);
    let volume = ClientId::of_volume(0);
    hand.submit(1, Op::Write, true, 0, 512);
    assert_eq!(asked(&hand), [(Op::Read, volume)], "the rest of the block");
    hand.done(Ok(()));
    assert_eq!(asked(&hand), [(Op::Write, volume)]);
    hand.done(Ok(()));
    assert_eq!(asked(&hand), [(Op::Flush, volume)]);
    hand.done(Ok(()));
    hand.write(2, 1);
    hand.command(Command::Drain);
    assert_eq!(asked(&hand), [(Op::Write, volume)]);
    hand.done(Ok(()));
    assert_eq!(asked(&hand), [(Op::Flush, ClientId::POOL)], "the txg ends");
    assert_eq!(ClientId::of_volume(63), ClientId::OTHER, "not the pool");
}

#[test]
fn one_bad_block_does_not_fail_its_neighbours() {
    let bad = 20 * BLOCK;
    let mut hand = Hand::volume(&[1], OPENZFS, &[]);
    for id in 0..30 {
        hand.submit(id, Op::Read, false, u64::from(id) * BLOCK, BLOCK as u32);
    }
    while hand.done_unless(|zio| (zio.offset..zio.offset + u64::from(zio.length)).contains(&bad)) {}
    let failed = hand.ended.iter().filter(|(_, outcome)| outcome.is_err());
    assert_eq!(failed.map(|(id, _)| *id).collect::<Vec<_>>(), [20]);
    assert_eq!(hand.ended.len(), 30);
}

#[test]
fn a_durable_write_syncs_the_disks_that_have_it_and_a_flush_all() {
    let mut hand = Hand::volume(&[1, 2, 1], OPENZFS, &[]);
    hand.submit(0, Op::Write, true, BLOCK, BLOCK as u32);
    assert_eq!(hand.ops(), [Op::Write; 2]);
    hand.done(Ok(()));
    hand.done(Ok(()));
    assert_eq!(hand.ops(), [Op::Flush; 2]);
    hand.run(10);
    hand.submit(1, Op::Flush, false, 0, 0);
    assert_eq!(hand.ops(), [Op::Flush; 4]);
}

#[test]
fn what_goes_home_for_a_durable_write_is_its_child() {
    let mut hand = Hand::volume(&[1], OPENZFS, &[]);
    hand.engine.record_events(true);
    hand.submit(0, Op::Write, true, 0, BLOCK as u32);
    hand.run(3);
    let events: Vec<_> = hand.engine.events().collect();
    let parent = events
        .iter()
        .find(|event| matches!(event.device, Device::Volume(_)));
    let parent = parent.map(|event| event.number);
    let children = events
        .iter()
        .filter(|event| matches!(event.device, Device::Disk(_)));
    assert!(children.clone().count() >= 2);
    assert!(children.into_iter().all(|event| event.parent == parent));
}

#[test]
fn writes_that_wait_fail_when_the_pool_must_not_wait() {
    let tunables = [(Tunable::DirtyDataMax, BLOCK), (Tunable::FailMode, 1)];
    let mut hand = Hand::volume(&[1], NONE, &tunables);
    for id in 0..3 {
        hand.write(id, u64::from(id));
    }
    hand.tick();
    hand.done(Err(IO));
    assert_eq!(
        (hand.outcome(1), hand.outcome(2)),
        (Some(Err(IO)), Some(Err(IO)))
    );
    let mut hand = Hand::volume(&[1], OPENZFS, &[]);
    hand.submit(1, Op::Write, true, 0, BLOCK as u32);
    hand.done(Err(IO));
    hand.write(2, 1);
    assert_eq!(hand.outcome(2), None, "it waits");
    let (pool, tunable, value) = (PoolId(0), Tunable::FailMode, 1);
    hand.command(Command::Tune {
        pool,
        changes: vec![(tunable, value)],
    });
    assert_eq!(hand.outcome(2), Some(Err(IO)));
}

#[test]
fn a_disk_that_cannot_sync_makes_the_pool_fail_or_wait_and_go_on() {
    for (failmode, expected) in [(1, Err(IO)), (0, Ok(()))] {
        let tunables = [
            (Tunable::DirtyDataMax, BLOCK),
            (Tunable::FailMode, failmode),
        ];
        let mut hand = Hand::volume(&[1], NONE, &tunables);
        hand.write(0, 0);
        hand.tick();
        hand.done(Ok(()));
        assert_eq!(hand.ops(), [Op::Flush]);
        hand.done(Err(IO));
        hand.write(1, 1);
        hand.run(100);
        assert_eq!(hand.outcome(1), Some(expected));
    }
}

#[test]
fn nothing_waits_for_ever_when_the_daemon_goes_away() {
    let mut hand = Hand::volume(&[1], OPENZFS, &[]);
    hand.inject(RuleSpec {
        ops: OpSet::of(Op::Write),
        ..RuleSpec::delay(Duration::from_secs(1), None)
    });
    hand.submit(0, Op::Write, true, 0, BLOCK as u32);
    hand.done(Ok(()));
    hand.submit(1, Op::Write, false, 81 * BLOCK, 512);
    hand.command(Command::FailHeld(Errno::Shutdown));
    hand.run(100);
    assert_eq!(hand.outcome(0), Some(Err(Errno::Shutdown)));
    assert_eq!(hand.outcome(1), Some(Err(Errno::Shutdown)));
    assert_eq!(hand.engine.dirty(), 0, "acknowledged data reaches the disk");
}

#[test]
fn what_a_volume_does_not_have_is_refused() {
    let mut hand = Hand::volume(&[1], NONE, &[]);
    for (id, offset, length) in [
        (0, 1 << 20, 512),
        (1, (1 << 20) - 512, 1_024),
        (2, u64::MAX, 9),
    ] {
        hand.submit(id, Op::Write, false, offset, length);
        assert_eq!(
            hand.outcome(id),
            Some(Err(Errno::Inval)),
            "{offset}+{length}"
        );
    }
}

#[test]
fn what_cannot_be_is_refused_and_says_why() {
    let mut hand = Hand::pool(&[1], Layout::Static, 1 << 50, NONE, &[]).expect("a pool");
    for (size, block_size, why) in [
        (1 << 42, 512, "blocks: choose larger ones"),
        (u64::MAX - 511, 512, "blocks: choose larger ones"),
        (8_192, 3_000, "power of two"),
        (8_193, 8_192, "whole number of blocks"),
        (0, 8_192, "whole number of blocks"),
        (1 << 51, 1 << 20, "left"),
    ] {
        let error = hand
            .add(size, block_size, WritePolicy::Through)
            .expect_err("refused");
        assert!(
            error.to_string().contains(why),
            "{size}, {block_size}: {error}"
        );
    }
    let wide = Hand::pool(&[65], Layout::Static, 1 << 20, NONE, &[]).map(|_| ());
    assert_eq!(wide.expect_err("refused"), PoolError::TooManySides(65));
}

#[test]
fn a_pool_that_begins_full_begins_with_the_limit_twice_and_at_once() {
    let legacy = ThrottleConfig::Legacy(LegacyConfig {
        delay_slots: Some(0),
        full_pipeline: Some(104_857),
    });
    let tunables = [(Tunable::WriteLimitShift, 9)];
    let mut hand = Hand::pool(&[1], Layout::Static, 1 << 30, legacy, &tunables).expect("a pool");
    hand.add(1 << 30, BLOCK as u32, WritePolicy::Back)
        .expect("a volume");
    let stats = hand.engine.pool_stats(PoolId(0), hand.now).expect("a pool");
    let limit = stats.write_limit.expect("a limit");
    assert_eq!(stats.dirty, 2 * (limit / BLOCK * BLOCK));
    while hand.working.is_empty() {
        assert!(hand.tick(), "its sync begins");
    }
    assert_eq!(hand.now, Instant::ZERO);
    hand.write(0, 0);
    hand.run(20_000);
    assert_eq!(hand.outcome(0), Some(Ok(())));
}
