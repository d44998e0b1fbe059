//! Cases made by hand from the rules of ZFS.

use super::super::{Limits, Queue, Queued};
use super::{DEFAULTS, at, op_of, queue, tags};
use crate::histogram::Histogram;
use crate::pool::{Class, Traffic};
use crate::zio::{Errno, Op};
use Class::{AsyncRead, AsyncWrite, SyncRead, SyncWrite, Trim};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// With these limits nothing is joined.
const APART: Limits = Limits {
    aggregation_limit: 0,
    ..DEFAULTS
};
const K: u64 = 1 << 10;
/// The half second, in nanoseconds, within which an elevator sorts I/O by offset.
const BUCKET: u64 = 1 << 29;

/// An I/O of 8 KiB with a tag, at an offset in KiB.
fn io(class: Class, tag: u32, offset: u64) -> Queued {
    Queued {
        class,
        op: op_of(class),
        offset: offset * K,
        length: 8 << 10,
        tag,
        alone: false,
        beside: false,
    }
}

fn with(class: Class, io: &[(u32, u64)]) -> Queue {
    let mut queue = queue();
    for (tag, offset) in io {
        queue.push(at(0), self::io(class, *tag, *offset));
    }
    queue
}

/// The classes of the next picks.
fn classes(queue: &mut Queue, limits: &Limits) -> Vec<Class> {
    core::iter::from_fn(|| queue.pick(at(0), limits, limits.max[3]))
        .map(|picked| picked.class)
        .collect()
}

/// The tags of the next picks.
fn order(queue: &mut Queue, limits: &Limits) -> Vec<Vec<u32>> {
    core::iter::from_fn(|| {
        let picked = queue.pick(at(0), limits, limits.max[3])?;
        Some(tags(queue, &picked))
    })
    .collect()
}

/// A queue with plenty of I/O of every class, too far apart to be joined.
fn all_classes() -> Queue {
    let mut queue = queue();
    for class in Class::ALL {
        for number in 0..10 {
            let tag = class as u32 * 10 + number;
            queue.push(at(0), io(class, tag, u64::from(tag) * 1_000));
        }
    }
    queue
}

#[test]
fn below_their_minimum_classes_take_turns_and_then_priority_decides() {
    let limits = Limits {
        max_active: 9,
        min: [1, 2, 0, 1, 1],
        max: [2, 3, 1, 2, 1],
        ..APART
    };
    let expected = [
        // The queue starts as if it had just served a sync read, so the class after sync reads has the first
        // turn.
        SyncWrite, AsyncWrite, Trim, SyncRead, SyncWrite, // All at their minimum.
        SyncRead, SyncWrite, AsyncRead, AsyncWrite,
    ];
    assert_eq!(classes(&mut all_classes(), &limits), expected);
}

#[test]
fn a_class_below_its_minimum_goes_before_one_of_higher_priority() {
    let limits = Limits {
        max_active: 2,
        min: [1, 1, 1, 1, 1],
        ..APART
    };
    let mut queue = all_classes();
    let first = queue.pick(at(0), &limits, 10).unwrap();
    assert_eq!(classes(&mut queue, &limits), [AsyncRead]);
    queue.done(at(0), first.id, Ok(()));
    assert_eq!(classes(&mut queue, &limits), [AsyncWrite]);
}

#[test]
fn turns_begin_anew_when_none_may_be_served() {
    let limits = Limits {
        min: [1, 1, 0, 1, 0],
        max: [1, 1, 0, 1, 0],
        ..APART
    };
    let mut queue = with(SyncRead, &[(0, 0), (1, 100)]);
    let first = queue.pick(at(0), &limits, 1).unwrap();
    // Before this pick, it was the turn of the sync writes. A pick that finds nothing gives the turn to the
    // sync reads.
    assert_eq!(queue.pick(at(0), &limits, 1), None);
    queue.done(at(0), first.id, Ok(()));
    queue.push(at(0), io(SyncWrite, 2, 200));
    assert_eq!(classes(&mut queue, &limits), [SyncRead, SyncWrite]);
}

#[test]
fn async_writes_have_the_maximum_of_the_moment() {
    let mut queue = with(
        AsyncWrite,
        &[(0, 0), (1, 100), (2, 200), (3, 300), (4, 400)],
    );
    let mut picks = |max| core::iter::from_fn(|| queue.pick(at(0), &APART, max)).count();
    // Async writes may always have their minimum of 2 at the disk.
    assert_eq!((picks(0), picks(3), picks(3), picks(2)), (2, 1, 0, 0));
    assert_eq!(queue.stats().classes[3].pending, 2);
    assert_eq!(queue.stats().classes[3].active, 3);
}

#[test]
fn what_a_client_waits_for_is_first_in_first_out() {
    for class in [SyncRead, SyncWrite, Trim] {
        let mut queue = with(class, &[(0, 500), (1, 100), (2, 900), (3, 300)]);
        let limits = Limits {
            max: [10; 5],
            ..APART
        };
        assert_eq!(order(&mut queue, &limits), [[0], [1], [2], [3]]);
    }
}

#[test]
fn an_elevator_goes_up_from_where_the_disk_was_left_and_then_begins_below() {
    for class in [AsyncRead, AsyncWrite] {
        let mut queue = with(class, &[(0, 500), (1, 100), (2, 900), (3, 300)]);
        let limits = Limits {
            max: [10; 5],
            ..APART
        };
        let first = queue.pick(at(0), &limits, 10).unwrap();
        assert_eq!(tags(&queue, &first), [1]);
        // The picked I/O ends at 108 KiB. One of the new I/Os begins before its end, and the other exactly at
        // its end.
        queue.push(at(0), io(class, 4, 107));
        queue.push(at(0), io(class, 5, 108));
        assert_eq!(order(&mut queue, &limits), [[5], [3], [0], [2], [4]]);
    }
}

#[test]
fn an_elevator_serves_the_older_half_second_first() {
    let mut queue = queue();
    queue.push(at(BUCKET), io(AsyncWrite, 0, 500));
    queue.push(at(BUCKET - 1), io(AsyncWrite, 1, 900));
    queue.push(at(0), io(AsyncWrite, 2, 700));
    queue.push(at(2 * BUCKET - 1), io(AsyncWrite, 3, 100));
    assert_eq!(order(&mut queue, &APART), [[2], [1], [3], [0]]);
}

#[test]
fn adjacent_writes_are_joined_up_to_the_limit() {
    let blocks: Vec<(u32, u64)> = (0..20).map(|tag| (tag, u64::from(tag) * 8)).collect();
    let mut queue = with(AsyncWrite, &blocks);
    let limits = Limits {
        aggregation_limit: 128 << 10,
        ..DEFAULTS
    };
    let first = queue.pick(at(0), &limits, 10).unwrap();
    assert_eq!(
        (first.offset, first.length, first.count),
        (0, 128 << 10, 16)
    );
    assert!(tags(&queue, &first).into_iter().eq(0..16));
    let second = queue.pick(at(0), &limits, 10).unwrap();
    assert_eq!(
        (second.offset, second.length, second.count),
        (128 * K, 32 << 10, 4)
    );
    let traffic = |writes| Traffic {
        writes,
        bytes_written: 160 * K,
        ..Traffic::default()
    };
    assert_eq!(queue.joined(), Traffic::default(), "nothing is done yet");
    for picked in [first, second] {
        queue.done(at(1), picked.id, Ok(()));
    }
    assert_eq!((queue.apart(), queue.joined()), (traffic(20), traffic(2)));
}

#[test]
fn one_that_is_above_the_limit_goes_alone() {
    let mut queue = with(SyncWrite, &[(0, 0), (1, 8), (2, 16)]);
    let limits = Limits {
        aggregation_limit: 4 << 10,
        ..DEFAULTS
    };
    assert_eq!(order(&mut queue, &limits), [[0], [1], [2]]);
}

#[test]
fn what_is_below_is_joined_first() {
    let mut queue = with(SyncWrite, &[(0, 16), (1, 0), (2, 8), (3, 24)]);
    let limits = Limits {
        aggregation_limit: 24 << 10,
        ..DEFAULTS
    };
    assert_eq!(order(&mut queue, &limits), [&[1, 2, 0][..], &[3]]);
}

#[test]
fn neighbours_are_joined_whatever_their_class_and_go_as_the_one_that_was_picked() {
    let mut queue = with(AsyncWrite, &[(0, 0), (1, 8)]);
    queue.push(at(0), io(SyncWrite, 2, 16));
    queue.push(at(0), io(SyncRead, 3, 24));
    let picked = queue.pick(at(0), &DEFAULTS, 10).unwrap();
    assert_eq!((picked.class, picked.count), (SyncWrite, 3));
    let stands = |class: Class| {
        let stats = &queue.stats().classes[class as usize];
        (stats.pending, stats.active)
    };
    assert_eq!((stands(SyncWrite), stands(AsyncWrite)), ((0, 1), (0, 0)));
}

#[test]
fn reads_are_joined_over_a_gap_and_writes_are_not() {
    for (class, expected) in [(SyncRead, 2), (SyncWrite, 1)] {
        let mut queue = with(class, &[(0, 0), (1, 16), (2, 57)]);
        let limits = Limits {
            read_gap_limit: 32 << 10,
            ..DEFAULTS
        };
        let picked = queue.pick(at(0), &limits, 10).unwrap();
        assert_eq!(picked.count, expected);
        assert_eq!(picked.length, (8 << 10) + (expected - 1) * (16 << 10));
    }
}

#[test]
fn overlaps_other_operations_and_those_without_data_are_not_joined() {
    let zero = |io: Queued| Queued { op: Op::Zero, ..io };
    let flush = |io: Queued| Queued {
        op: Op::Flush,
        ..io
    };
    let (one, two) = (io(SyncWrite, 0, 0), io(SyncWrite, 1, 8));
    for (first, second, joined) in [
        (one, two, true),
        (zero(one), zero(two), true),
        (zero(one), two, false),
        (flush(one), flush(two), false),
        (one, io(SyncWrite, 1, 7), false),
        (one, io(SyncWrite, 1, 0), false),
        (io(Trim, 0, 0), io(Trim, 1, 8), false),
    ] {
        let mut queue = queue();
        queue.push(at(0), first);
        queue.push(at(0), second);
        let picked = queue.pick(at(0), &DEFAULTS, 10).unwrap();
        assert_eq!(picked.count == 2, joined, "{first:?} {second:?}");
    }
}

#[test]
fn one_that_is_promoted_goes_to_the_end_of_its_new_class() {
    let mut queue = with(AsyncWrite, &[(0, 0), (1, 100), (2, 200)]);
    queue.push(at(0), io(SyncWrite, 3, 300));
    queue.promote(1, SyncWrite);
    queue.promote(7, SyncWrite);
    let limits = Limits {
        min: [0; 5],
        ..APART
    };
    assert_eq!(order(&mut queue, &limits), [[3], [1], [2], [0]]);
    // The I/Os are at the disk now, so this must do nothing.
    queue.promote(0, SyncWrite);
    assert!(queue.stats().classes.iter().all(|class| class.pending == 0));
}

#[test]
fn the_lowest_member_stands_for_all_in_the_histograms() {
    let mut queue = queue();
    queue.push(at(10), io(SyncWrite, 0, 8));
    queue.push(at(30), io(AsyncWrite, 1, 0));
    let picked = queue.pick(at(100), &DEFAULTS, 10).unwrap();
    queue.done(at(1_000), picked.id, Ok(()));
    let stats = &queue.stats().classes[SyncWrite as usize];
    let only = |histogram: &Option<Box<Histogram>>| {
        let histogram = histogram.as_deref()?;
        (histogram.count() == 1).then(|| histogram.max()).flatten()
    };
    assert_eq!(only(&stats.total_wait), Some(970));
    assert_eq!(only(&stats.queue_wait), Some(70));
    assert_eq!(only(&stats.disk_wait), Some(900));
    assert_eq!(only(&stats.joined), Some(16 * K));
    assert!(stats.alone.is_none());
}

#[test]
fn failures_and_flushes_are_in_no_figure() {
    let mut queue = with(SyncWrite, &[(0, 0)]);
    queue.push(
        at(0),
        Queued {
            op: Op::Flush,
            ..io(SyncWrite, 1, 0)
        },
    );
    for outcome in [Err(Errno::Io), Ok(())] {
        let picked = queue.pick(at(0), &APART, 10).unwrap();
        queue.done(at(1), picked.id, outcome);
    }
    assert!(queue.stats().classes[1].total_wait.is_none());
    assert_eq!(queue.joined(), Traffic::default());
}
