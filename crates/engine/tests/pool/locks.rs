//! Tests range locks: writes wait for bytes, not for blocks, and a write's transaction begins once it has its
//! locks.

use dashpot_engine::pool::{ThrottleConfig, Tunable};
use dashpot_engine::{Duration, Op, VolumeId, Wait, ZioId};

use crate::hand::{BLOCK, Hand};

fn wait_of(hand: &Hand, id: u32) -> Option<Wait> {
    let zio = hand.engine.at_volume(VolumeId(0), ZioId(id))?;
    Some(zio.wait)
}

/// A pool with so much dirty data that later writes wait.
fn full() -> Hand {
    let limit = [(Tunable::DirtyDataMax, BLOCK)];
    let mut hand = Hand::volume(&[1], ThrottleConfig::None, &limit);
    hand.write(0, 0);
    hand
}

fn write_part(hand: &mut Hand, id: u32, block: u64, from: u64, length: u32) {
    hand.submit(id, Op::Write, false, block * BLOCK + from, length);
}

/// Lets the reads at the disks end, but no other zio.
fn end_reads(hand: &mut Hand) {
    while let Some(at) = hand.ops().iter().position(|op| *op == Op::Read) {
        hand.working.swap(0, at);
        hand.done(Ok(()));
    }
}

#[test]
fn writes_of_other_bytes_of_a_block_do_not_wait_for_each_other() {
    let mut hand = full();
    write_part(&mut hand, 1, 5, 0, 1024);
    write_part(&mut hand, 2, 5, 1024, 512);
    write_part(&mut hand, 3, 5, 512, 1024);
    write_part(&mut hand, 4, 5, 4096, 512);
    let reads = hand.ops().iter().filter(|op| **op == Op::Read).count();
    assert_eq!(reads, 1, "both need the same old content");
    end_reads(&mut hand);
    assert_eq!(wait_of(&hand, 1), Some(Wait::Throttle));
    assert_eq!(wait_of(&hand, 2), Some(Wait::Throttle));
    assert_eq!(wait_of(&hand, 3), Some(Wait::Lock));
    assert_eq!(wait_of(&hand, 4), Some(Wait::Lock), "none overtakes");
    hand.run(100);
    for id in 0..5 {
        assert_eq!(hand.outcome(id), Some(Ok(())), "{id}");
    }
}

#[test]
fn a_write_of_a_whole_block_waits_for_all_of_its_bytes() {
    let mut hand = full();
    write_part(&mut hand, 1, 5, 0, 512);
    write_part(&mut hand, 2, 5, 512, 512);
    hand.write(3, 5);
    hand.write(4, 6);
    end_reads(&mut hand);
    assert_eq!(wait_of(&hand, 3), Some(Wait::Lock));
    assert_eq!(wait_of(&hand, 4), Some(Wait::Throttle));
    hand.run(100);
    assert_eq!(hand.outcome(3), Some(Ok(())));
}

/// ZFS creates the transaction after `zfs_rangelock_enter`, so the wait for the lock must not count towards
/// the write's delay.
#[test]
fn the_wait_for_a_lock_is_no_delay_served() {
    let limit = [(Tunable::DirtyDataMax, 10 * BLOCK)];
    let mut hand = Hand::volume(&[1], ThrottleConfig::OpenZfs, &limit);
    write_part(&mut hand, 0, 50, 0, 512);
    write_part(&mut hand, 1, 50, 0, 512);
    for id in 2..10 {
        hand.write(id, u64::from(id));
    }
    assert_eq!(wait_of(&hand, 1), Some(Wait::Lock));
    hand.now = hand.now + Duration::from_secs(1);
    end_reads(&mut hand);
    let served = hand.outcome(0);
    assert_eq!(served, Some(Ok(())), "its read took longer than any delay");
    assert_eq!(wait_of(&hand, 1), Some(Wait::Throttle));
}
