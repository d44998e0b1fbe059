//! Tests the throttle of ZFS before 2013 with examples.

use super::{OPEN, Throttle, Tunable, Verdict, at, drain, run, tunables, tx};
use crate::pool::{LegacyConfig, ThrottleConfig, ThrottleLevel};
use crate::time::Duration;
use crate::zio::ZioId;
use alloc::vec::Vec;

const MIB: u64 = 1 << 20;
/// The limit before the first measurement: 32 MiB.
const LIMIT: u64 = 32 * MIB;
const NOW: u64 = 1_000;

/// The throttle of a pool with a txg that syncs, a txg that waits for it, and an open txg with `dirty`
/// bytes.
fn full_pipeline(delay_slots: Option<u32>, dirty: u64) -> Throttle {
    let config = LegacyConfig {
        delay_slots,
        full_pipeline: None,
    };
    let mut throttle = Throttle::new(ThrottleConfig::Legacy(config), &tunables(&[]), OPEN);
    throttle.txg_opened(OPEN + 1);
    throttle.sync_started(OPEN);
    throttle.txg_opened(OPEN + 2);
    throttle.dirtied_beside(at(NOW), OPEN + 2, dirty);
    throttle
}

fn ask_all(throttle: &mut Throttle, zios: core::ops::Range<u32>, bytes: u64) -> Vec<Verdict> {
    zios.map(|zio| throttle.ask(at(NOW), tx(zio, at(NOW), bytes)))
        .collect()
}

#[test]
fn seven_eighths_delay_each_writer_by_ten_milliseconds() {
    let mut throttle = full_pipeline(None, LIMIT / 8 * 7);
    assert_eq!(ask_all(&mut throttle, 0..1, 1), [Verdict::Admitted]);
    throttle.dirtied(at(NOW), OPEN + 2, 1);
    assert_eq!(ask_all(&mut throttle, 1..3, 1), [Verdict::Waits; 2]);
    let wake = at(NOW + 10_000);
    assert_eq!(run(&mut throttle, OPEN + 2, 1), [(1, wake), (2, wake)]);
    let admissions = throttle.admissions();
    assert_eq!(
        (
            admissions.assigned,
            admissions.delay,
            admissions.write_limit
        ),
        (3, 2, 0)
    );
}

#[test]
fn the_level_is_that_of_the_open_txg() {
    let throttle = full_pipeline(None, LIMIT / 8 * 7);
    let level = ThrottleLevel {
        filled: LIMIT / 8 * 7,
        delays_above: Some(LIMIT / 8 * 7),
        stops_at: LIMIT,
        delay: Duration::ZERO,
    };
    assert_eq!(throttle.level(), level);
    let mut fuller = full_pipeline(None, LIMIT / 8 * 7 + 1);
    assert_eq!(fuller.level().delay, Duration::from_millis(10));
    // No write is delayed while the txg could quiesce.
    fuller.sync_started(OPEN + 1);
    assert_eq!(fuller.level().delay, Duration::ZERO);
}

#[test]
fn inflated_bytes_are_told_as_the_clients_know_them() {
    let tunables = tunables(&[(Tunable::WriteLimitInflation, 24)]);
    let config = LegacyConfig {
        delay_slots: None,
        full_pipeline: None,
    };
    let mut throttle = Throttle::new(ThrottleConfig::Legacy(config), &tunables, OPEN);
    throttle.dirtied_beside(at(NOW), OPEN, MIB);
    assert_eq!(throttle.level().filled, MIB);
    assert_eq!(throttle.level().stops_at, LIMIT / 24);
}

#[test]
fn a_delay_that_was_tuned_down_ends_before_those_that_began_earlier() {
    let mut throttle = full_pipeline(None, LIMIT - MIB);
    ask_all(&mut throttle, 0..1, 1);
    throttle.tuned(at(NOW), &tunables(&[(Tunable::ThrottleDelay, 1_000_000)]));
    ask_all(&mut throttle, 1..2, 1);
    let expected = [(1, at(NOW + 1_000)), (0, at(NOW + 10_000))];
    assert_eq!(run(&mut throttle, OPEN + 2, 1), expected);
}

#[test]
fn the_delay_ends_when_the_txg_before_syncs_or_a_quiesce_is_asked_for() {
    let mut throttle = full_pipeline(None, LIMIT - MIB);
    ask_all(&mut throttle, 0..2, 1);
    throttle.sync_started(OPEN + 1);
    assert_eq!(drain(&mut throttle, at(NOW), OPEN + 2, 1), [0, 1]);
    assert_eq!(ask_all(&mut throttle, 2..3, 1), [Verdict::Admitted]);

    let mut throttle = full_pipeline(None, LIMIT - MIB);
    ask_all(&mut throttle, 0..2, 1);
    throttle.quiesce_asked();
    assert_eq!(drain(&mut throttle, at(NOW), OPEN + 2, 1), [0, 1]);
    assert_eq!(throttle.next_wake(), None);
}

#[test]
fn a_full_txg_stops_writers_until_the_next_one_opens() {
    let mut throttle = full_pipeline(None, LIMIT - MIB);
    ask_all(&mut throttle, 0..1, 1);
    throttle.dirtied_beside(at(NOW), OPEN + 2, MIB + 1);
    assert!(!throttle.wants_quiesce());
    // The first of these writes asks for a quiesce, and so ends the delay of write 0.
    ask_all(&mut throttle, 1..4, LIMIT / 2 + 1);
    assert!(throttle.wants_quiesce());
    assert_eq!(drain(&mut throttle, at(NOW), OPEN + 2, 1), [0]);
    assert_eq!(
        (throttle.admissions().write_limit, throttle.next_wake()),
        (3, None)
    );

    throttle.retired(at(NOW), OPEN + 2, LIMIT);
    assert_eq!(drain(&mut throttle, at(NOW), OPEN + 2, 1), []);
    throttle.sync_started(OPEN + 1);
    throttle.txg_opened(OPEN + 3);
    // Two writes fill the next txg, and the third write finds the txg full.
    assert_eq!(
        drain(&mut throttle, at(NOW), OPEN + 3, LIMIT / 2 + 1),
        [1, 2]
    );
    assert!(throttle.wants_quiesce());
    assert_eq!(throttle.admissions().write_limit, 4);
    throttle.txg_opened(OPEN + 4);
    assert_eq!(drain(&mut throttle, at(NOW), OPEN + 4, 1), [3]);
}

#[test]
fn writers_queue_behind_the_slots_of_those_who_sleep() {
    let mut throttle = full_pipeline(Some(2), LIMIT - MIB);
    assert_eq!(ask_all(&mut throttle, 0..5, 1), [Verdict::Waits; 5]);
    assert_eq!((throttle.admissions().delay, throttle.waiting()), (2, 5));
    let (first, second, third) = (at(NOW + 10_000), at(NOW + 20_000), at(NOW + 30_000));
    let expected = [(0, first), (1, first), (2, second), (3, second), (4, third)];
    assert_eq!(run(&mut throttle, OPEN + 2, 1), expected);
}

#[test]
fn a_quiesce_lets_go_those_behind_as_well() {
    let mut throttle = full_pipeline(Some(1), LIMIT - MIB);
    ask_all(&mut throttle, 0..3, 1);
    throttle.quiesce_asked();
    assert_eq!(drain(&mut throttle, at(NOW), OPEN + 2, 1), [0, 1, 2]);
}

#[test]
fn the_gone_free_their_slots_and_reservations() {
    let mut throttle = full_pipeline(Some(1), LIMIT - MIB);
    ask_all(&mut throttle, 0..3, 2 * MIB);
    throttle.forget(at(NOW), &[ZioId(0)]);
    assert_eq!(drain(&mut throttle, at(NOW), OPEN + 2, 1), []);
    assert_eq!(
        (throttle.next_wake(), throttle.waiting()),
        (Some(at(NOW + 10_000)), 2)
    );
    throttle.forget(at(NOW), &[ZioId(1), ZioId(2)]);
    // No bytes are reserved any more. If half of the earlier reservation still counted, the txg would be one
    // byte above the limit.
    throttle.dirtied_beside(at(NOW), OPEN + 2, MIB - 1);
    ask_all(&mut throttle, 3..4, 1);
    assert!(!throttle.wants_quiesce());
}

#[test]
fn a_sync_teaches_the_limit_what_the_disks_can_do() {
    let mut throttle = full_pipeline(None, 0);
    let txg = OPEN + 1;
    throttle.dirtied_beside(at(0), txg, 100 * MIB);
    throttle.sync_started(txg);
    throttle.retired(at(NOW), txg, 100 * MIB);
    throttle.synced(txg, Duration::from_secs(1));
    assert_eq!(throttle.write_limit(), Some(100 * MIB / 1_000 * 5_000));
}

#[test]
fn dirty_data_does_not_matter() {
    let throttle = full_pipeline(None, 4 << 30);
    assert!(!throttle.wants_sync(OPEN + 2));
    assert_eq!(full_pipeline(None, 0).max_async_writes(), 10);
}
