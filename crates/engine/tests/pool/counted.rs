//! Tests that the traffic of a pool counts the I/Os that its disks have done without an error (OpenZFS:
//! `vdev_stat_update`), and none that has only begun.

use dashpot_engine::pool::{Layout, ThrottleConfig, Traffic, WritePolicy};
use dashpot_engine::{Errno, Op, PoolId};

use crate::hand::{BLOCK, Hand};

fn disks(hand: &Hand) -> [Traffic; 3] {
    let stats = hand.engine.pool_stats(PoolId(0), hand.now).unwrap();
    [stats.queued, stats.disks, stats.by_volume[0].disks]
}

#[test]
fn an_io_counts_when_it_is_done() {
    let mut hand = Hand::pool(&[1], Layout::Static, 1 << 20, ThrottleConfig::OpenZfs, &[]).unwrap();
    hand.add(1 << 20, BLOCK as u32, WritePolicy::Through)
        .unwrap();
    let written = |writes| Traffic {
        writes,
        bytes_written: writes * BLOCK,
        ..Traffic::default()
    };
    hand.write(1, 0);
    assert_eq!(hand.ops(), [Op::Write]);
    assert_eq!(disks(&hand), [written(0); 3], "begun");
    hand.done(Ok(()));
    assert_eq!(disks(&hand), [written(1); 3], "done");
    hand.write(2, 1);
    hand.done(Err(Errno::Io));
    assert_eq!(disks(&hand), [written(1); 3], "failed");
}

#[test]
fn a_side_that_fails_does_not_count() {
    let mut hand = Hand::volume(&[2], ThrottleConfig::OpenZfs, &[]);
    hand.submit(1, Op::Write, true, 0, BLOCK as u32);
    hand.done(Ok(()));
    hand.done(Err(Errno::Io));
    assert_eq!(disks(&hand).map(|traffic| traffic.writes), [1; 3]);
}
