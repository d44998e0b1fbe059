use alloc::vec::Vec;
use core::ops::Range;

use super::{Regions, State};
use crate::random::Random;

const MIB: u64 = 1 << 20;
const SIDES: usize = 2;

/// A naive model that keeps the whole history, and searches it for each answer.
#[derive(Default)]
struct Naive {
    moment: u64,
    /// The range of each write, and when the write ended.
    writes: Vec<(Range<u64>, Option<u64>)>,
    /// For each side, when its completed FLUSHes began.
    flushes: [Vec<u64>; SIDES],
}

impl Naive {
    fn now(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// Whether the sides hold the same bytes at a place, even after a power cut.
    fn is_safe(&self, at: u64) -> bool {
        let covered = |ended: u64| {
            let has = |flushes: &Vec<u64>| flushes.iter().any(|began| *began > ended);
            self.flushes.iter().all(has)
        };
        let here = self.writes.iter().filter(|(range, _)| range.contains(&at));
        let mut ends = here.map(|(_, end)| *end);
        ends.all(|end| end.is_some_and(covered))
    }
}

fn draw_range(random: &mut Random) -> Range<u64> {
    let start = random.below(16 * MIB - 1);
    let most = [4_096, 5 * MIB][random.below(2) as usize];
    let length = 1 + random.below(most);
    start..(start + length).min(16 * MIB)
}

fn run(seed: u64) {
    let (mut random, mut naive) = (Random::new(seed), Naive::default());
    let mut regions = Regions::new(SIDES, 16 * MIB);
    // The FLUSHes at the disks. For each FLUSH, its side and the moment when it began: first as the regions
    // count moments, then as the model counts them.
    let mut flushes: Vec<(usize, u64, u64)> = Vec::new();
    for _ in 0..400 {
        match random.below(8) {
            0..=2 => {
                let range = draw_range(&mut random);
                regions.begin(&range);
                naive.writes.push((range, None));
            }
            3..=5 => {
                let open = naive.writes.iter().filter(|(_, end)| end.is_none()).count();
                if open > 0 {
                    let which = random.below(open as u64) as usize;
                    let now = naive.now();
                    let mut writes = naive.writes.iter_mut().filter(|(_, end)| end.is_none());
                    let (range, end) = writes.nth(which).unwrap();
                    *end = Some(now);
                    regions.end(range, false);
                }
            }
            6 => {
                let side = random.below(SIDES as u64) as usize;
                let now = naive.now();
                flushes.push((side, regions.covers(), now));
            }
            _ if flushes.is_empty() => {}
            _ => {
                let which = random.below(flushes.len() as u64) as usize;
                let (side, covers, began) = flushes.swap_remove(which);
                regions.flushed(side, covers);
                naive.flushes[side].push(began);
                regions.clear_covered(random.below(20) as usize);
            }
        }
        for at in 0..16 {
            let is_safe = (0..256).all(|part| naive.is_safe(at * MIB + part * 4_096));
            let state = regions.table.get(at as u32).state;
            assert!(is_safe || state == State::Dirty, "seed {seed}: region {at}");
        }
    }
    while let Some((range, end)) = naive.writes.iter_mut().find(|(_, end)| end.is_none()) {
        *end = Some(0);
        regions.end(range, false);
    }
    for side in 0..SIDES {
        regions.flushed(side, regions.covers());
    }
    regions.clear_covered(usize::MAX);
    assert_eq!((regions.dirty(), regions.nosync()), (0, 0), "seed {seed}");
    assert_eq!(regions.table.used(0..16).count(), 0, "seed {seed}");
}

#[test]
fn a_region_is_clean_only_if_flushes_of_all_sides_cover_it() {
    (0..200).for_each(run);
}

/// The regions of a mirror, with one write in flight to each MiB of a range.
fn written(range: Range<u64>) -> Regions {
    let mut regions = Regions::new(SIDES, 16 * MIB + 700);
    regions.begin(&range);
    regions
}

#[test]
fn a_power_cut_leaves_dirty_regions_out_of_sync() {
    let mut regions = written(MIB - 1..MIB + 1);
    assert_eq!((regions.dirty(), regions.nosync()), (2, 0));
    regions.power_cut();
    assert_eq!((regions.dirty(), regions.nosync()), (0, 2));
    assert!(!regions.is_in_sync(MIB) && regions.is_in_sync(2 * MIB));
    assert_eq!(regions.nosync_bytes(), 2 * MIB);
    // A sync that began before the power cut does not clean a region that is written after the power cut.
    assert_eq!([regions.recover(), regions.recover()], [Some(0), Some(1)]);
    assert_eq!(regions.recover(), None);
    regions.recovered(0);
    regions.not_recovered(1);
    assert_eq!((regions.dirty(), regions.nosync()), (1, 1));
    for side in 0..SIDES {
        regions.flushed(side, regions.covers());
    }
    regions.clear_covered(usize::MAX);
    assert_eq!((regions.dirty(), regions.nosync()), (0, 1));
    assert_eq!(regions.recover(), Some(1));
}

#[test]
fn a_failed_write_leaves_its_regions_out_of_sync() {
    let range = 0..2 * MIB;
    let mut regions = written(range.clone());
    regions.end(&range, true);
    assert_eq!((regions.dirty(), regions.nosync()), (0, 2));
    assert_eq!(regions.recover(), Some(0));
    regions.begin(&(0..1));
    regions.end(&(0..1), true);
    regions.recovered(0);
    assert_eq!(regions.nosync(), 2, "a write failed during the repair");
}

#[test]
fn the_last_region_ends_with_the_smallest_side() {
    let regions = written(0..1);
    assert_eq!(regions.range(16), 16 * MIB..16 * MIB + 512);
    assert_eq!(regions.of(&(0..MIB)), 0..=0);
    assert_eq!(regions.of(&(0..MIB + 1)), 0..=1);
}

#[test]
fn a_large_disk_has_larger_regions() {
    let sizes = [1 << 40, (1 << 40) + 1, 1 << 50, u64::MAX];
    let regions = sizes.map(|size| Regions::new(SIDES, size));
    assert_eq!(regions.each_ref().map(|r| r.shift), [20, 21, 30, 44]);
    assert_eq!(
        *regions[3].of(&(u64::MAX - 1..u64::MAX)).end(),
        (1 << 20) - 1
    );
}

#[test]
fn many_regions_are_cleaned_in_several_steps() {
    let range = 0..1_000 * MIB;
    let mut regions = Regions::new(1, 1 << 40);
    regions.begin(&range);
    regions.end(&range, false);
    regions.flushed(0, regions.covers());
    let mut left = Vec::new();
    while regions.clear_covered(256) {
        left.push(regions.dirty());
    }
    assert_eq!(left, [744, 488, 232]);
    assert_eq!(regions.dirty(), 0);
}
