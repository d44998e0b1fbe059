//! Tests the memories of seconds, minutes and hours.

use std::sync::Arc;

use dashpot_engine::Op;
use dashpot_engine::histogram::{Histogram, Sparse};
use dashpot_export::DeviceId;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{SECONDS, SIZE, SecondCell, Seconds, Steps};
use crate::collector::tally::Brief;

#[test]
fn busy_seconds_are_remembered_in_bounded_memory() {
    let mut seconds = Seconds::default();
    let mut histogram = Histogram::default();
    (0..1 << 22).step_by(64).for_each(|ns| histogram.record(ns));
    let tally = Brief {
        completed: histogram.count(),
        bytes: 0,
        disk: histogram.to_sparse(),
    };
    let size = tally.disk.buckets.len() * size_of::<(usize, u64)>();
    for second in 0..SECONDS as u64 {
        for client in 0..10 {
            let cell = SecondCell {
                device: DeviceId(0),
                client: client.to_string().into(),
                op: Op::Read,
                tally: tally.clone(),
            };
            seconds.add(second, cell);
        }
    }
    let remembered = seconds.iter().count();
    assert!(remembered < SIZE / (10 * size) + 2, "{remembered}");
    assert!(remembered > SIZE / (10 * size) / 2, "{remembered}");
    assert_eq!(
        seconds.iter().last().map(|(number, _)| number),
        Some(SECONDS as u64 - 1)
    );
}

/// A reader converts the seconds later. Zios that the collector counts in the meantime must not appear in
/// these seconds.
#[test]
fn a_second_that_was_taken_stays_as_it_was_seen() {
    let mut seconds = Seconds::default();
    let mut add = |completed| {
        let tally = Brief {
            completed,
            ..Brief::default()
        };
        let (device, client, op) = (DeviceId(0), "c".into(), Op::Read);
        seconds.add(
            7,
            SecondCell {
                device,
                client,
                op,
                tally,
            },
        );
        seconds
            .iter()
            .next()
            .map(|(_, cells)| std::sync::Arc::clone(cells))
            .unwrap()
    };
    let (taken, later) = (add(1), add(2));
    assert_eq!((taken[0].tally.completed, later[0].tally.completed), (1, 3));
}

proptest! {
    #[test]
    fn minutes_and_hours_are_the_sums_of_their_seconds(
        zios in vec((0_u64..3 * 3_600, 1_u64..1 << 40), 1..200),
    ) {
        let mut seconds = Seconds::default();
        for (second, ns) in &zios {
            let tally = Brief {
                completed: 1,
                bytes: *ns,
                disk: Histogram::of(*ns, 1).to_sparse(),
            };
            let cell = SecondCell {
                device: DeviceId(0),
                client: "c".into(),
                op: Op::Read,
                tally,
            };
            seconds.add(*second, cell);
        }
        for steps in &seconds.levels()[1..] {
            let unit = steps.bounds.unit;
            for (from, cells) in steps.iter() {
                let own = zios.iter().filter(|(second, _)| second / unit * unit == from);
                let mut sum = Histogram::default();
                own.for_each(|(_, ns)| sum.record(*ns));
                prop_assert_eq!(cells.len(), 1);
                prop_assert_eq!(&cells[0].tally.disk, &sum.to_sparse());
                prop_assert_eq!(cells[0].tally.completed, sum.count());
            }
            let all: u64 = steps.iter().map(|(_, cells)| cells[0].tally.completed).sum();
            prop_assert_eq!(all, zios.len() as u64);
        }
    }
}

/// The I/O of a client in a second, which takes some memory.
fn cell(client: &str, buckets: usize) -> SecondCell {
    SecondCell {
        device: DeviceId(0),
        client: client.into(),
        op: Op::Read,
        tally: Brief {
            completed: 1,
            bytes: 1,
            disk: Sparse {
                buckets: vec![(0, 1); buckets],
                ..Sparse::default()
            },
        },
    }
}

/// The bytes that the cells occupy, including those that are reserved for more.
fn occupied(steps: &Steps) -> usize {
    let cells = steps.iter().map(|(_, cells)| {
        let own = cells.capacity() * size_of::<SecondCell>();
        let of_cell = |cell: &SecondCell| {
            cell.client.len() + cell.tally.disk.buckets.capacity() * size_of::<(usize, u64)>()
        };
        own + cells.iter().map(of_cell).sum::<usize>()
    });
    cells.sum()
}

#[test]
fn the_bound_counts_what_is_reserved_and_what_a_copy_changes() {
    let mut seconds = Seconds::default();
    for client in 0..21 {
        // A reader holds the cells during some of the additions.
        let held = (client % 4 == 0).then(|| {
            seconds
                .iter()
                .map(|(_, cells)| Arc::clone(cells))
                .collect::<Vec<_>>()
        });
        seconds.add(client / 8, cell(&format!("client {client}"), 3));
        drop(held);
        for steps in seconds.levels() {
            assert_eq!(steps.size, occupied(steps));
        }
    }
}

#[test]
fn a_late_zio_of_a_forgotten_second_brings_nothing_back() {
    let mut seconds = Seconds::default();
    for second in [1, 5, 9] {
        seconds.add(second, cell("c", 1));
    }
    seconds.add(9, cell("large", SIZE / size_of::<(usize, u64)>()));
    assert_eq!(seconds.since(), 6);
    seconds.add(2, cell("late", 1));
    assert_eq!(seconds.since(), 6);
    assert!(seconds.iter().all(|(second, _)| second == 9));
}

#[test]
fn a_full_memory_says_that_it_lacks_a_late_zio() {
    let mut seconds = Seconds::default();
    let late = 7;
    for second in (late + 1..).take(SECONDS).chain([late]) {
        seconds.add(second, cell("c", 1));
    }
    assert_eq!(seconds.since(), late + 1);
    assert_eq!(seconds.iter().count(), SECONDS);
}
