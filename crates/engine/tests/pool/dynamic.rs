//! Tests the dynamic layout, in which new blocks go to the member with the fewest bytes queued.

use dashpot_engine::pool::{Layout, ThrottleConfig, Tunable, WritePolicy};
use dashpot_engine::{DiskId, Errno, Op};

use crate::hand::{BLOCK, Hand};

const LENGTH: u32 = BLOCK as u32;

fn pool(members: &[usize], tunables: &[(Tunable, u64)]) -> Hand {
    let none = ThrottleConfig::None;
    Hand::with_layout(members, Layout::Dynamic, none, tunables)
}

/// Writes a whole block durably, and lets the write end.
fn write(hand: &mut Hand, id: u32, block: u64) {
    hand.submit(id, Op::Write, true, block * BLOCK, LENGTH);
    finish(hand, id);
}

/// Lets zios at the disks end until the zio `id` has ended.
fn finish(hand: &mut Hand, id: u32) {
    let ended = |hand: &Hand| hand.ended.iter().filter(|(other, _)| *other == id).count();
    let before = ended(hand);
    while ended(hand) == before {
        assert!(hand.done(Ok(())), "zio {id} never ends");
    }
    assert_eq!(hand.ended.last(), Some(&(id, Ok(()))));
}

/// The zios at the disks, each as (disk, operation, offset in blocks).
fn at_disks(hand: &Hand) -> Vec<(u32, Op, u64)> {
    let zios = hand.working.iter().filter_map(|id| hand.engine.child(*id));
    let zios = zios.map(|zio| (zio.device.0, zio.op, zio.offset / BLOCK));
    zios.collect()
}

fn reads(hand: &mut Hand, id: u32, block: u64) -> Option<u32> {
    hand.submit(id, Op::Read, false, block * BLOCK, LENGTH);
    let read = at_disks(hand).into_iter().find(|zio| zio.1 == Op::Read);
    finish_all(hand);
    read.map(|(disk, ..)| disk)
}

fn finish_all(hand: &mut Hand) {
    while hand.done(Ok(())) {}
}

#[test]
fn a_new_block_goes_to_the_member_with_the_least_queued() {
    let mut hand = pool(&[1, 1], &[]);
    for (id, block) in [(0, 7), (1, 3), (2, 5)] {
        hand.submit(id, Op::Write, true, block * BLOCK, LENGTH);
    }
    let expected = [(0, Op::Write, 0), (1, Op::Write, 0), (0, Op::Write, 1)];
    assert_eq!(at_disks(&hand), expected);
    // Let disk 0 do both of its zios, and disk 1 none.
    hand.working.swap(1, 2);
    assert!(hand.done(Ok(())) && hand.done(Ok(())));
    hand.submit(3, Op::Write, true, 0, 2 * LENGTH);
    let writes = at_disks(&hand).into_iter().filter(|zio| zio.1 == Op::Write);
    let disks: Vec<u32> = writes.map(|zio| zio.0).collect();
    assert_eq!(
        disks,
        [1, 0, 1],
        "one write is at disk 1 already, so the first of two new ones goes to disk 0"
    );
}

#[test]
fn a_block_stays_where_it_is() {
    let mut hand = pool(&[1, 1], &[]);
    write(&mut hand, 0, 9);
    for id in 1..5 {
        hand.submit(id, Op::Write, true, 9 * BLOCK, LENGTH);
        assert_eq!(at_disks(&hand)[0], (0, Op::Write, 0));
        finish(&mut hand, id);
    }
    assert_eq!(reads(&mut hand, 5, 9), Some(0));
}

#[test]
fn a_block_that_was_never_written_is_zeroes_on_no_disk() {
    let mut hand = pool(&[1, 1], &[]);
    assert_eq!(reads(&mut hand, 0, 3), None);
    for (id, op) in [(1, Op::Zero), (2, Op::Trim)] {
        hand.submit(id, op, true, 3 * BLOCK, 9 * LENGTH);
        hand.submit(id + 2, op, true, 20 * BLOCK, LENGTH);
        assert_eq!(hand.outcome(id), Some(Ok(())));
        assert_eq!(hand.outcome(id + 2), Some(Ok(())));
    }
    // Nor does a write of a part of such a block read a disk: the rest of the block is zeroes.
    hand.submit(7, Op::Write, true, 3 * BLOCK + 512, 512);
    assert_eq!(at_disks(&hand), [(0, Op::Write, 0)]);
}

#[test]
fn a_trim_goes_where_blocks_are_and_frees_their_rows() {
    let mut hand = pool(&[1, 1], &[]);
    for (id, block) in [(0, 4), (1, 8), (2, 5), (3, 9)] {
        hand.submit(id, Op::Write, true, block * BLOCK, LENGTH);
    }
    finish_all(&mut hand);
    hand.submit(4, Op::Trim, true, 0, 8 * LENGTH);
    let expected = [(0, Op::Trim, 0)];
    assert_eq!(at_disks(&hand), expected, "one zio for two rows");
    finish(&mut hand, 4);
    assert_eq!(reads(&mut hand, 5, 4), None);
    assert_eq!(reads(&mut hand, 6, 8), Some(1));
    // Disk 0 has the most room now.
    hand.submit(7, Op::Write, true, 30 * BLOCK, LENGTH);
    assert_eq!(at_disks(&hand), [(0, Op::Write, 0)]);
}

#[test]
fn new_blocks_wait_while_all_members_have_much_queued() {
    let depth = [
        (Tunable::QueueDepthPct, 30),
        (Tunable::AsyncWriteMaxActive, 10),
    ];
    let mut hand = pool(&[1, 1], &depth);
    hand.submit(0, Op::Write, false, 0, 20 * LENGTH);
    hand.submit(1, Op::Flush, false, 0, 0);
    let queued = |hand: &Hand| {
        hand.engine
            .pool_state(dashpot_engine::PoolId(0))
            .unwrap()
            .queues
    };
    let counts = |hand: &Hand| {
        let sum = |at: usize| {
            let queue = &queued(hand)[at];
            queue.pending.iter().chain(&queue.active).sum::<u32>()
        };
        [sum(0), sum(1)]
    };
    assert!(
        counts(&hand).iter().all(|count| *count <= 3),
        "{:?}",
        counts(&hand)
    );
    // Let disk 1 work, but not disk 0.
    for _ in 0..30 {
        let zios = hand.working.iter().map(|id| hand.engine.child(*id));
        let at = zios
            .map(|zio| zio.map(|zio| zio.device))
            .position(|disk| disk == Some(DiskId(1)));
        let Some(at) = at else { break };
        hand.working.swap(0, at);
        hand.done(Ok(()));
    }
    let stats = hand
        .engine
        .pool_stats(dashpot_engine::PoolId(0), hand.now)
        .unwrap();
    let dirty = stats.dirty / BLOCK;
    assert!((1..=3).contains(&dirty), "{dirty} blocks wait for disk 0");
    finish_all(&mut hand);
    assert_eq!(hand.outcome(1), Some(Ok(())));
}

#[test]
fn a_first_write_that_fails_leaves_zeroes_and_is_repeated_at_its_place() {
    let mut hand =
        Hand::pool(&[1, 1], Layout::Dynamic, 1 << 20, ThrottleConfig::None, &[]).unwrap();
    hand.add(1 << 20, LENGTH, WritePolicy::Through).unwrap();
    hand.submit(0, Op::Write, false, 4 * BLOCK, LENGTH);
    hand.done(Err(Errno::Io));
    assert_eq!(hand.outcome(0), Some(Err(Errno::Io)));
    assert_eq!(reads(&mut hand, 1, 4), None);
    hand.submit(2, Op::Write, false, 4 * BLOCK, LENGTH);
    assert_eq!(at_disks(&hand), [(0, Op::Write, 0)]);
    finish(&mut hand, 2);
    assert_eq!(reads(&mut hand, 3, 4), Some(0));
}
