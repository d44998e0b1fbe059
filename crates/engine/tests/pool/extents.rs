//! Tests trims and zeroes of whole blocks: a run of up to 64 MiB counts as one dirty block, and is written
//! with one zio for each disk.

use dashpot_engine::pool::{Layout, ThrottleConfig, Tunable, WritePolicy};
use dashpot_engine::{Errno, Op, PoolId, VolumeId, Wait, Zio, ZioId};

use crate::hand::{BLOCK, Hand};

const IO: Errno = Errno::Io;
const GIB: u64 = 1 << 30;

fn trim(hand: &mut Hand, id: u32, first: u64, blocks: u64) {
    let length = (blocks * BLOCK) as u32;
    hand.submit(id, Op::Trim, false, first * BLOCK, length);
}

fn flush(hand: &mut Hand, id: u32) {
    hand.submit(id, Op::Flush, false, 0, 0);
}

fn dirty(hand: &Hand) -> u64 {
    let stats = hand.engine.pool_stats(PoolId(0), hand.now);
    stats.expect("a pool").dirty
}

/// The zios at the disks, each as (disk, operation, first block, number of blocks).
fn at_disks(hand: &Hand) -> Vec<(u32, Op, u64, u64)> {
    let zios = hand.working.iter().filter_map(|id| hand.engine.child(*id));
    let blocks = |bytes: u64| bytes / BLOCK;
    let tuple = |zio: Zio| {
        let length = blocks(u64::from(zio.length));
        (zio.device.0, zio.op, blocks(zio.offset), length)
    };
    zios.map(tuple).collect()
}

fn waits_for_lock(hand: &Hand, id: u32) -> bool {
    let zio = hand.engine.at_volume(VolumeId(0), ZioId(id));
    zio.is_some_and(|zio| zio.wait == Wait::Lock)
}

fn large(members: &[usize], write: WritePolicy) -> Hand {
    let mut hand =
        Hand::pool(members, Layout::Static, 16 * GIB, ThrottleConfig::None, &[]).expect("a pool");
    hand.add(8 * GIB, BLOCK as u32, write).expect("a volume");
    hand
}

#[test]
fn a_run_goes_home_as_one_zio_of_each_member() {
    for write in [WritePolicy::Back, WritePolicy::Through] {
        let mut hand = large(&[1, 2, 1], write);
        trim(&mut hand, 0, 10, 101);
        let charge = if write == WritePolicy::Back { BLOCK } else { 0 };
        assert_eq!(dirty(&hand), charge);
        flush(&mut hand, 1);
        let expected = [
            (1, Op::Trim, 3, 34),
            (2, Op::Trim, 3, 34),
            (3, Op::Trim, 3, 34),
            (0, Op::Trim, 4, 33),
        ];
        let is_trim = |zio: &(u32, Op, u64, u64)| zio.1 == Op::Trim;
        let trims: Vec<_> = at_disks(&hand).into_iter().filter(is_trim).collect();
        assert_eq!(trims, expected);
        hand.run(100);
        assert_eq!(hand.outcome(1), Some(Ok(())));
        assert_eq!(dirty(&hand), 0);
    }
}

#[test]
fn a_large_run_is_charged_for_each_64_mib() {
    let mut hand = large(&[1], WritePolicy::Back);
    hand.submit(0, Op::Zero, false, 0, (2 * GIB) as u32);
    assert_eq!(dirty(&hand), 32 * BLOCK);
    flush(&mut hand, 1);
    let mut zeroed = 0;
    while hand.outcome(1).is_none() {
        for (_, op, first, blocks) in at_disks(&hand) {
            if op == Op::Zero {
                assert_eq!((first, blocks), (zeroed, 8_192));
                zeroed += blocks;
            }
        }
        for _ in 0..hand.working.len() {
            hand.done(Ok(()));
        }
    }
    assert_eq!(zeroed * BLOCK, 2 * GIB);
}

#[test]
fn memory_answers_reads_of_an_extent() {
    let mut hand = Hand::volume(&[1], ThrottleConfig::None, &[]);
    trim(&mut hand, 0, 4, 16);
    hand.submit(1, Op::Read, false, 6 * BLOCK, BLOCK as u32);
    assert_eq!(hand.outcome(1), Some(Ok(())));
    flush(&mut hand, 2);
    hand.submit(3, Op::Read, false, 6 * BLOCK, BLOCK as u32);
    assert_eq!(hand.outcome(3), Some(Ok(())), "it is not on the disk yet");
    hand.run(10);
    hand.submit(4, Op::Read, false, 6 * BLOCK, BLOCK as u32);
    assert_eq!(hand.outcome(4), None, "the disk has it");
}

#[test]
fn a_trim_drops_what_is_dirty() {
    let mut hand = Hand::volume(&[1], ThrottleConfig::None, &[]);
    for id in 0..20 {
        hand.write(id, u64::from(id));
    }
    assert_eq!(dirty(&hand), 20 * BLOCK);
    trim(&mut hand, 30, 0, 20);
    assert_eq!(dirty(&hand), BLOCK);
    flush(&mut hand, 31);
    assert_eq!(at_disks(&hand), [(0, Op::Trim, 0, 20)]);
}

#[test]
fn a_write_within_an_extent_parts_it() {
    let mut hand = Hand::volume(&[1], ThrottleConfig::None, &[]);
    trim(&mut hand, 0, 0, 20);
    hand.write(1, 7);
    assert_eq!(dirty(&hand), 3 * BLOCK, "two extents and a block");
    for id in 2..9 {
        hand.write(id, u64::from(id) - 2);
    }
    assert_eq!(dirty(&hand), 9 * BLOCK, "one extent and eight blocks");
    flush(&mut hand, 10);
    let trims = at_disks(&hand).into_iter().filter(|zio| zio.1 == Op::Trim);
    assert_eq!(trims.collect::<Vec<_>>(), [(0, Op::Trim, 8, 12)]);
}

#[test]
fn newer_data_waits_until_an_extent_is_home() {
    let mut hand = Hand::volume(&[1], ThrottleConfig::None, &[]);
    trim(&mut hand, 0, 0, 20);
    flush(&mut hand, 1);
    hand.submit(2, Op::Write, true, 5 * BLOCK, BLOCK as u32);
    hand.submit(3, Op::Zero, true, 18 * BLOCK, 4 * BLOCK as u32);
    assert_eq!(at_disks(&hand), [(0, Op::Trim, 0, 20)]);
    hand.done(Ok(()));
    let expected = [(0, Op::Write, 5, 1), (0, Op::Zero, 18, 4)];
    let both = at_disks(&hand).into_iter().filter(|zio| zio.1 != Op::Flush);
    assert_eq!(both.collect::<Vec<_>>(), expected);
    hand.run(100);
    for id in 1..4 {
        assert_eq!(hand.outcome(id), Some(Ok(())), "{id}");
    }
}

/// A durable trim waits for an extent that is on its way to the disk, and a write then splits the trim. The
/// part that does not overlap the extent must be written, too. The swarm found this case.
#[test]
fn a_part_that_need_not_wait_goes_home() {
    let mut hand = Hand::volume(&[1], ThrottleConfig::None, &[]);
    trim(&mut hand, 0, 0, 20);
    flush(&mut hand, 1);
    hand.submit(2, Op::Trim, true, 18 * BLOCK, 10 * BLOCK as u32);
    hand.write(3, 24);
    assert!(at_disks(&hand).contains(&(0, Op::Trim, 25, 3)));
    hand.run(100);
    assert_eq!(hand.outcome(2), Some(Ok(())));
}

#[test]
fn blocks_on_their_way_stay_out_of_an_extent() {
    let mut hand = Hand::volume(&[1], ThrottleConfig::None, &[]);
    hand.submit(0, Op::Write, true, 5 * BLOCK, BLOCK as u32);
    trim(&mut hand, 1, 0, 20);
    assert_eq!(hand.outcome(1), Some(Ok(())), "a trim waits for no disk");
    flush(&mut hand, 2);
    let expected = [
        (0, Op::Write, 5, 1),
        (0, Op::Trim, 0, 5),
        (0, Op::Trim, 6, 14),
    ];
    assert_eq!(at_disks(&hand), expected);
    assert!(hand.done(Ok(())) && hand.done(Ok(())));
    assert!(at_disks(&hand).contains(&(0, Op::Trim, 5, 1)));
    hand.run(100);
    assert_eq!(hand.outcome(2), Some(Ok(())));
}

#[test]
fn a_failed_extent_is_written_again() {
    for members in [&[1][..], &[2]] {
        let mut hand = Hand::volume(members, ThrottleConfig::None, &[]);
        trim(&mut hand, 0, 0, 20);
        flush(&mut hand, 1);
        hand.write(2, 3);
        // This flush waits for the block, which waits for the extent.
        flush(&mut hand, 3);
        let sides = hand.working.len();
        for side in 0..sides {
            hand.done(if side == 0 { Err(IO) } else { Ok(()) });
        }
        assert_eq!(hand.outcome(1), Some(Err(IO)));
        assert_eq!(hand.outcome(3), Some(Err(IO)));
        flush(&mut hand, 4);
        assert_eq!(hand.outcome(4), Some(Err(IO)), "the pool is degraded");
        hand.write(5, 6);
        assert_eq!(hand.outcome(5), None, "it stalls");
        assert!(hand.tick());
        assert_eq!(hand.ops(), vec![Op::Trim; sides]);
        hand.run(200);
        assert_eq!(hand.outcome(5), Some(Ok(())));
        flush(&mut hand, 6);
        hand.run(100);
        assert_eq!(hand.outcome(6), Some(Ok(())));
        assert_eq!(dirty(&hand), 0);
    }
}

#[test]
fn a_run_and_its_blocks_lock_each_other() {
    let full = [(Tunable::DirtyDataMax, BLOCK)];
    let mut hand = Hand::volume(&[1], ThrottleConfig::None, &full);
    hand.write(0, 100);
    hand.write(1, 10);
    trim(&mut hand, 2, 0, 20);
    assert!(waits_for_lock(&hand, 2), "for block 10");
    hand.write(3, 5);
    assert!(waits_for_lock(&hand, 3), "the trim has locked block 5");
    hand.write(4, 15);
    assert!(!waits_for_lock(&hand, 4), "the trim is not there yet");
    trim(&mut hand, 5, 8, 4);
    assert!(waits_for_lock(&hand, 5));
    hand.run(1_000);
    for id in 0..6 {
        assert_eq!(hand.outcome(id), Some(Ok(())), "{id}");
    }
}

#[test]
fn a_trim_that_leaves_gives_its_locks_back() {
    let full = [(Tunable::DirtyDataMax, BLOCK)];
    let mut hand = Hand::volume(&[1], ThrottleConfig::None, &full);
    hand.write(0, 100);
    hand.write(1, 10);
    trim(&mut hand, 2, 0, 20);
    trim(&mut hand, 3, 30, 5);
    hand.write(4, 5);
    hand.write(5, 32);
    assert!(waits_for_lock(&hand, 4) && waits_for_lock(&hand, 5));
    hand.step(dashpot_engine::Input::Abort(&[ZioId(2), ZioId(3)]));
    assert!(!waits_for_lock(&hand, 4) && !waits_for_lock(&hand, 5));
    hand.run(1_000);
    for id in [0, 1, 4, 5] {
        assert_eq!(hand.outcome(id), Some(Ok(())), "{id}");
    }
}

/// If the trim did not wait, it would be acknowledged too early, and a power cut could bring back the bytes
/// from before the trim.
#[test]
fn a_durable_trim_waits_for_what_has_taken_its_place() {
    let mut hand = Hand::volume(&[1], ThrottleConfig::None, &[]);
    trim(&mut hand, 0, 0, 20);
    flush(&mut hand, 1);
    hand.submit(2, Op::Trim, true, 18 * BLOCK, 10 * BLOCK as u32);
    hand.write(3, 19);
    assert!(hand.done(Ok(())), "the first trim");
    while hand.outcome(2).is_none() {
        assert!(hand.done(Ok(())) || hand.tick());
    }
    assert_eq!(dirty(&hand), 0, "the block is on the disk, too");
}

#[test]
fn a_durable_trim_syncs_all_members_that_have_it() {
    let mut hand = Hand::volume(&[1, 1, 1], ThrottleConfig::None, &[]);
    hand.submit(0, Op::Trim, true, BLOCK, 2 * BLOCK as u32);
    assert_eq!(hand.ops(), [Op::Trim; 2]);
    assert!(hand.done(Ok(())) && hand.done(Ok(())));
    let syncs: Vec<u32> = at_disks(&hand).iter().map(|zio| zio.0).collect();
    assert_eq!(syncs, [1, 2]);
}
