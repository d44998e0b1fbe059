use super::{Marks, WakeUps};
use crate::pool::{Tunable, Tunables};
use crate::time::{Duration, Instant};
use alloc::vec::Vec;

/// A maximum of dirty data that makes each fraction in these tests a whole number of bytes.
const ROUND: u64 = 10_000_000_000;

fn marks(dirty_data_max: u64) -> Marks {
    let mut tunables = Tunables::new(8 << 30);
    tunables.set(Tunable::DirtyDataMax, dirty_data_max).unwrap();
    Marks::new(&tunables)
}

#[test]
fn the_delay_follows_the_published_curve() {
    let marks = marks(ROUND);
    // Each pair is an amount of dirty data, in thousandths of a percent of the maximum, and the delay at this
    // amount, in nanoseconds.
    for (percent, delay) in [
        (61_000, 12_820),
        (65_000, 71_428),
        (70_000, 166_666),
        (75_000, 300_000),
        (80_000, 500_000),
        (85_000, 833_333),
        (90_000, 1_500_000),
        (92_000, 2_000_000),
        (95_000, 3_500_000),
        (97_000, 6_166_666),
        (98_000, 9_500_000),
        (98_095, 9_998_687),
        (99_000, 19_500_000),
        (99_500, 39_500_000),
        (99_800, 99_500_000),
        (99_801, 100_000_000),
        (99_999, 100_000_000),
        (100_000, 100_000_000),
        (120_000, 100_000_000),
    ] {
        let ns = marks.delay(ROUND / 100_000 * percent).as_nanos();
        assert_eq!(ns, delay, "at {percent} thousandths");
    }
}

#[test]
fn the_delay_begins_above_its_mark_and_never_falls() {
    let marks = marks(ROUND);
    assert_eq!(marks.delay(ROUND / 100 * 60), Duration::ZERO);
    assert_eq!(marks.delay(0), Duration::ZERO);
    // One byte above the amount where delays begin gives a delay that rounds down to zero.
    assert_eq!(marks.delay(ROUND / 100 * 60 + 1), Duration::ZERO);
    let delays: Vec<_> = (0..=1_100)
        .map(|at| marks.delay(ROUND / 1_000 * at))
        .collect();
    assert!(delays.is_sorted());
}

#[test]
fn the_integers_of_four_gibibytes_are_the_originals() {
    let marks = marks(4 << 30);
    assert_eq!(marks.delay_above, 2_576_980_377);
    for (percent, ns) in [
        (61, 12_820),
        (65, 71_428),
        (70, 166_666),
        (75, 300_000),
        (80, 499_999),
        (85, 833_333),
        (90, 1_499_999),
        (95, 3_499_999),
        (98, 9_499_999),
        (99, 19_499_999),
    ] {
        let dirty = (4 << 30) * percent / 100;
        assert_eq!(marks.delay(dirty), Duration::from_nanos(ns), "{percent} %");
    }
}

#[test]
fn the_largest_tunables_do_not_overflow() {
    let most = |tunable: Tunable| (tunable, tunable.info().max);
    let mut tunables = Tunables::new(8 << 30);
    let max = tunables.set_all([
        most(Tunable::DirtyDataMax),
        most(Tunable::AsyncWriteMaxActive),
        (Tunable::DelayScale, (1 << 14) - 1),
        (Tunable::DelayMinDirtyPercent, 0),
        (Tunable::AsyncWriteActiveMinDirtyPercent, 0),
        (Tunable::AsyncWriteActiveMaxDirtyPercent, 100),
    ]);
    assert_eq!(max, Ok(()));
    let marks = Marks::new(&tunables);
    assert_eq!(marks.delay(marks.stop_at - 1), Duration::from_millis(100));
    assert_eq!(marks.max_async_writes(marks.stop_at - 1, false), 9_999);
}

#[test]
fn delays_that_begin_at_the_maximum_are_none() {
    let mut tunables = Tunables::new(8 << 30);
    tunables.set(Tunable::DelayMinDirtyPercent, 100).unwrap();
    let marks = Marks::new(&tunables);
    assert_eq!(marks.delay(marks.stop_at), Duration::ZERO);
}

#[test]
fn async_writes_rise_between_their_marks() {
    let marks = marks(ROUND);
    for (percent, writes) in [
        (0, 2),
        (30, 2),
        (33, 2),
        (34, 3),
        (38, 4),
        (42, 5),
        (45, 6),
        (49, 7),
        (53, 8),
        (57, 9),
        (59, 9),
        (60, 10),
        (100, 10),
    ] {
        let dirty = ROUND / 100 * percent;
        assert_eq!(marks.max_async_writes(dirty, false), writes, "{percent} %");
        assert_eq!(marks.max_async_writes(dirty, true), 10);
    }
}

#[test]
fn each_further_async_write_takes_the_same_step() {
    let marks = marks(ROUND);
    for step in 1..=8 {
        let dirty = ROUND / 100_000 * (30_000 + 3_750 * step);
        let before = marks.max_async_writes(dirty - 1, false);
        let after = marks.max_async_writes(dirty, false);
        assert_eq!((before, after), (step as u32 + 1, step as u32 + 2));
    }
}

#[test]
fn marks_of_async_writes_may_be_one() {
    let mut tunables = Tunables::new(8 << 30);
    tunables
        .set(Tunable::AsyncWriteActiveMinDirtyPercent, 60)
        .unwrap();
    let marks = Marks::new(&tunables);
    let mark = marks.most_writes.dirty;
    assert_eq!(marks.max_async_writes(mark - 1, false), 2);
    assert_eq!(marks.max_async_writes(mark, false), 10);
}

fn us(us: u64) -> Instant {
    Instant::from_nanos(us * 1_000)
}

const DELAY: Duration = Duration::from_micros(500);

#[test]
fn writers_that_come_together_are_let_go_one_by_one() {
    let mut wake_ups = WakeUps::default();
    for wake in [1_000_500, 1_001_000, 1_001_500, 1_002_000] {
        let booked = wake_ups.book(us(1_000_000), us(1_000_000), DELAY);
        assert_eq!(booked, Some(us(wake)));
    }
}

#[test]
fn time_already_spent_is_credited() {
    let mut wake_ups = WakeUps::default();
    for (started, wake) in [
        (1_000_000, Some(us(1_000_500))),
        (999_800, Some(us(1_001_000))),
        (999_400, None),
    ] {
        assert_eq!(wake_ups.book(us(1_000_000), us(started), DELAY), wake);
    }
    // The third write has not moved the clock.
    let next = wake_ups.book(us(1_000_000), us(1_000_000), DELAY);
    assert_eq!(next, Some(us(1_001_500)));
}

#[test]
fn a_delay_that_ends_this_moment_still_takes_its_place() {
    let mut wake_ups = WakeUps::default();
    let now = us(1_000_000);
    assert_eq!(wake_ups.book(now, us(999_500), DELAY), Some(now));
    assert_eq!(wake_ups.book(now, us(999_500), DELAY), Some(us(1_000_500)));
}
