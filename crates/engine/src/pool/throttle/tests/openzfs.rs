//! Tests delays and the hard stop with examples.

use super::{OPEN, Throttle, Tunable, Verdict, at, drain, run, throttle, tunables, tx};
use crate::pool::{ThrottleConfig, ThrottleLevel, Tunables};
use crate::time::Duration;
use crate::zio::ZioId;
use alloc::vec;
use alloc::vec::Vec;

/// The maximum of dirty data, in bytes. Delays begin above 60,000 bytes, and the delay at 80,000 bytes is 500
/// µs.
const MAX: u64 = 100_000;

fn openzfs(dirty: u64) -> Throttle {
    throttle(ThrottleConfig::OpenZfs, &with_max(MAX), dirty)
}

fn with_max(max: u64) -> Tunables {
    tunables(&[(Tunable::DirtyDataMax, max)])
}

fn ask_all(throttle: &mut Throttle, us: u64, zios: core::ops::Range<u32>) -> Vec<Verdict> {
    zios.map(|zio| throttle.ask(at(us), tx(zio, at(us), 1)))
        .collect()
}

#[test]
fn nobody_waits_up_to_the_mark() {
    let mut throttle = openzfs(MAX / 100 * 60);
    assert_eq!(ask_all(&mut throttle, 1_000, 0..1), [Verdict::Admitted]);
    throttle.dirtied_beside(at(1_000), OPEN, 1_000);
    assert_eq!(throttle.admissions().assigned, 1);
    assert_eq!(throttle.admissions().dirty_delay, 0);
    assert_eq!(ask_all(&mut throttle, 1_000, 1..2), [Verdict::Waits]);
    assert_eq!(
        throttle.next_wake(),
        Some(at(1_000) + Duration::from_nanos(12_820))
    );
}

#[test]
fn the_level_says_what_a_write_meets() {
    let level = |dirty| openzfs(dirty).level();
    let empty = ThrottleLevel {
        filled: 0,
        delays_above: Some(60_000),
        stops_at: MAX,
        delay: Duration::ZERO,
    };
    assert_eq!(level(0), empty);
    assert_eq!(level(80_000).filled, 80_000);
    // The test `writers_are_let_go_in_order_and_one_delay_apart` has the same delays.
    let delays = [60_000, 80_000, MAX].map(|dirty| level(dirty).delay);
    let ms = Duration::from_millis;
    assert_eq!(delays, [ms(0), Duration::from_micros(500), ms(100)]);
    let none = throttle(ThrottleConfig::None, &with_max(MAX), 80_000).level();
    assert_eq!((none.delays_above, none.delay), (None, Duration::ZERO));
    assert_eq!((none.filled, none.stops_at), (80_000, MAX));
}

#[test]
fn the_level_has_the_bytes_that_admitted_writes_will_make_dirty() {
    for config in [ThrottleConfig::OpenZfs, ThrottleConfig::None] {
        let mut long = throttle(config, &with_max(MAX), 20_000);
        long.comes(60_000);
        assert_eq!(
            long.level(),
            throttle(config, &with_max(MAX), 80_000).level()
        );
    }
}

#[test]
fn writers_are_let_go_in_order_and_one_delay_apart() {
    let mut throttle = openzfs(80_000);
    assert_eq!(ask_all(&mut throttle, 1_000, 0..4), [Verdict::Waits; 4]);
    throttle.wake(at(1_499));
    assert_eq!(drain(&mut throttle, at(1_499), OPEN, 0), []);
    let expected = vec![
        (0, at(1_500)),
        (1, at(2_000)),
        (2, at(2_500)),
        (3, at(3_000)),
    ];
    assert_eq!(run(&mut throttle, OPEN, 1), expected);
    assert_eq!((throttle.dirty(), throttle.waiting()), (80_004, 0));
    assert_eq!(throttle.admissions().dirty_delay, 4);
}

#[test]
fn one_whose_delay_ends_this_moment_goes_on_and_the_next_is_one_delay_later() {
    let mut throttle = openzfs(80_000);
    let served = tx(0, at(500), 1);
    assert_eq!(throttle.ask(at(1_000), served), Verdict::Admitted);
    assert_eq!(throttle.ask(at(1_000), tx(1, at(600), 1)), Verdict::Waits);
    assert_eq!(throttle.next_wake(), Some(at(1_500)));
}

#[test]
fn one_that_has_slept_is_not_stopped_any_more() {
    let mut throttle = openzfs(80_000);
    ask_all(&mut throttle, 1_000, 0..2);
    throttle.dirtied_beside(at(1_000), OPEN, 30_000);
    assert_eq!(
        run(&mut throttle, OPEN, 1),
        [(0, at(1_500)), (1, at(2_000))]
    );
    assert_eq!(throttle.admissions().dirty_over_max, 0);
}

#[test]
fn each_change_that_leaves_room_signals_one() {
    let mut throttle = openzfs(MAX);
    assert_eq!(ask_all(&mut throttle, 0, 0..4), [Verdict::Waits; 4]);
    assert_eq!(
        (throttle.admissions().dirty_over_max, throttle.next_wake()),
        (4, None)
    );
    // By this time, each write has waited longer than any delay.
    let now = at(1_000_000);
    throttle.retired(now, OPEN, 2);
    // The first write makes room for the second, and the second leaves no room.
    assert_eq!(drain(&mut throttle, now, OPEN, 1), [0, 1]);
    throttle.retired(now, OPEN, 2);
    // A block that was already dirty adds nothing, but still passes the signal on.
    assert_eq!(drain(&mut throttle, now, OPEN, 0), [2, 3]);
}

#[test]
fn the_delay_after_the_stop_is_that_of_its_moment() {
    let mut throttle = openzfs(MAX);
    ask_all(&mut throttle, 1_000, 0..1);
    throttle.retired(at(1_100), OPEN, 20_000);
    assert_eq!(throttle.next_wake(), Some(at(1_500)));
    assert_eq!(run(&mut throttle, OPEN, 1), [(0, at(1_500))]);
}

#[test]
fn a_raised_maximum_lets_the_stopped_go_and_a_lowered_one_strands_nobody() {
    let now = at(1_000_000);
    let mut throttle = openzfs(MAX);
    ask_all(&mut throttle, 0, 0..3);
    throttle.tuned(now, &with_max(50_000));
    assert_eq!(drain(&mut throttle, now, OPEN, 1), []);
    throttle.retired(now, OPEN, 50_001);
    assert_eq!(drain(&mut throttle, now, OPEN, 1), [0]);
    throttle.tuned(now, &with_max(10 * MAX));
    assert_eq!(drain(&mut throttle, now, OPEN, 1), [1, 2]);
}

#[test]
fn the_gone_give_their_moments_back() {
    let mut throttle = openzfs(80_000);
    ask_all(&mut throttle, 1_000, 0..4);
    throttle.forget(at(1_100), &[ZioId(1), ZioId(3)]);
    ask_all(&mut throttle, 1_100, 4..5);
    let expected = [(0, at(1_500)), (2, at(2_500)), (4, at(3_000))];
    assert_eq!(run(&mut throttle, OPEN, 0), expected);

    ask_all(&mut throttle, 4_000, 5..900);
    let gone: Vec<ZioId> = (5..900).map(ZioId).collect();
    throttle.forget(at(4_100), &gone);
    assert_eq!(throttle.waiting(), 0);
    ask_all(&mut throttle, 4_100, 900..901);
    assert_eq!(throttle.next_wake(), Some(at(4_600)));
}

/// A client with very many waiting writes hangs up, and its writes leave in parts. The work for a part must not
/// depend on how many writes wait.
#[test]
fn no_part_of_the_gone_visits_the_others() {
    for (dirty, waiting) in [(MAX, 1_000), (MAX, 100_000), (80_000, 100_000)] {
        let mut throttle = openzfs(dirty);
        ask_all(&mut throttle, 0, 0..waiting);
        assert_eq!(throttle.waiting(), waiting);
        let all: Vec<ZioId> = (0..waiting).rev().map(ZioId).collect();
        for part in all.chunks(256) {
            let before = throttle.waiting.visits();
            throttle.forget(at(1), part);
            let visits = throttle.waiting.visits() - before;
            assert!(visits <= 4 * part.len() as u64, "{visits}");
        }
        assert_eq!(throttle.waiting(), 0);
    }
}

#[test]
fn the_gone_leave_their_signal_to_the_next() {
    let now = at(1_000_000);
    let mut throttle = openzfs(MAX);
    ask_all(&mut throttle, 0, 0..3);
    throttle.retired(now, OPEN, MAX);
    throttle.forget(now, &[ZioId(0)]);
    assert_eq!(drain(&mut throttle, now, OPEN, 0), [1, 2]);
    assert_eq!(throttle.admissions().assigned, 2);
}

#[test]
fn without_a_policy_there_is_only_the_stop() {
    let mut throttle = throttle(ThrottleConfig::None, &with_max(MAX), MAX - 1);
    assert_eq!(ask_all(&mut throttle, 0, 0..1), [Verdict::Admitted]);
    throttle.dirtied(at(0), OPEN, 1);
    assert_eq!(ask_all(&mut throttle, 0, 1..3), [Verdict::Waits; 2]);
    throttle.retired(at(0), OPEN, 1);
    assert_eq!(drain(&mut throttle, at(0), OPEN, 1), [1]);
    assert_eq!((throttle.dirty(), throttle.waiting()), (MAX, 1));
    assert_eq!(
        (
            throttle.admissions().dirty_delay,
            throttle.admissions().dirty_over_max
        ),
        (0, 2)
    );
}

#[test]
fn a_txg_above_a_fifth_of_the_maximum_wants_to_be_synced() {
    let mut throttle = openzfs(MAX / 5);
    assert!(!throttle.wants_sync(OPEN));
    throttle.dirtied_beside(at(0), OPEN + 1, MAX / 5 + 1);
    assert!(throttle.wants_sync(OPEN + 1) && !throttle.wants_sync(OPEN));
    assert_eq!(
        (throttle.dirty(), throttle.dirty_of(OPEN)),
        (MAX / 5 * 2 + 1, MAX / 5)
    );
}

#[test]
fn disks_get_async_writes_by_what_is_dirty() {
    assert_eq!(openzfs(10_000).max_async_writes(), 2);
    assert_eq!(openzfs(45_000).max_async_writes(), 6);
}
