use super::{Attempt, Legacy};
use crate::pool::{LegacyConfig, Tunable, Tunables};
use crate::time::Duration;

const MIB: u64 = 1 << 20;
const RAM: u64 = 8 << 30;

fn legacy(changes: &[(Tunable, u64)]) -> Legacy {
    let mut tunables = Tunables::new(RAM);
    tunables.set_all(changes.iter().copied()).unwrap();
    let config = LegacyConfig {
        delay_slots: None,
        full_pipeline: None,
    };
    Legacy::new(config, &tunables, 4)
}

fn sync(legacy: &mut Legacy, written: u64, took: Duration) {
    legacy.sync_started(4, written);
    legacy.synced(took);
}

#[test]
fn the_limit_follows_the_throughput() {
    let mut legacy = legacy(&[(Tunable::TxgSynctimeMs, 1_000)]);
    assert_eq!((legacy.throughput, legacy.limit()), (0, 32 * MIB));
    for (written, ms, throughput, limit, seven_eighths) in [
        (524_288_000, 5_000, 104_857, 104_857_000, 91_749_875),
        (524_288_000, 2_500, 131_070, 131_070_000, 114_686_250),
        (524_288_000, 10_000, 111_409, 111_409_000, 97_482_875),
        (3_145_728, 1_000, 111_409, 111_409_000, 97_482_875),
        (524_288_000, 5_000, 109_770, 109_770_000, 96_048_750),
    ] {
        sync(&mut legacy, written, Duration::from_millis(ms));
        assert_eq!((legacy.throughput, legacy.limit()), (throughput, limit));
        assert_eq!(limit - limit / 8, seven_eighths);
    }
}

#[test]
fn small_and_short_syncs_teach_nothing() {
    let mut legacy = legacy(&[]);
    sync(&mut legacy, 4 * MIB, Duration::from_secs(1));
    sync(&mut legacy, 400 * MIB, Duration::from_millis(1));
    assert_eq!(legacy.throughput, 0);
    sync(&mut legacy, 4 * MIB + 1, Duration::from_nanos(1_000_001));
    assert_eq!(legacy.throughput, 4 * MIB + 1);
}

#[test]
fn the_limit_stays_between_its_minimum_and_its_share_of_the_memory() {
    let mut legacy = legacy(&[]);
    sync(&mut legacy, 5 * MIB, Duration::from_secs(600));
    assert_eq!(legacy.limit(), 32 * MIB);
    sync(&mut legacy, 1 << 40, Duration::from_secs(1));
    assert_eq!(legacy.limit(), RAM / 8);
}

#[test]
fn inflation_counts_everywhere_but_in_the_minimum() {
    let mut legacy = legacy(&[(Tunable::WriteLimitInflation, 24)]);
    legacy.txg_opened(5);
    // The limit of 32 MiB, divided by the inflation of 24 and rounded up.
    legacy.dirtied(5, 1_398_102);
    assert_eq!(legacy.attempt(1), Attempt::Blocked);
    legacy.txg_opened(6);
    legacy.dirtied(6, 1_398_101);
    assert_ne!(legacy.attempt(1), Attempt::Blocked);
    sync(&mut legacy, 1 << 40, Duration::from_secs(1));
    assert_eq!(legacy.limit(), RAM / 8 * 24);
}

#[test]
fn an_override_is_the_limit_at_once() {
    let mut legacy = legacy(&[]);
    legacy.dirtied(4, MIB + 1);
    assert_eq!(legacy.attempt(1), Attempt::Admitted);
    let mut tunables = Tunables::new(RAM);
    tunables.set(Tunable::WriteLimitOverride, MIB).unwrap();
    legacy.tuned(&tunables);
    assert_eq!(legacy.attempt(1), Attempt::Blocked);
}

#[test]
fn a_txg_that_is_seven_eighths_full_delays_only_behind_a_full_pipeline() {
    let mut legacy = legacy(&[]);
    let delayed = Attempt::Delayed(Duration::from_millis(10));
    legacy.dirtied(4, 28 * MIB + 1);
    assert_eq!(legacy.attempt(1), Attempt::Admitted);
    legacy.txg_opened(5);
    legacy.dirtied(5, 28 * MIB);
    assert_eq!(legacy.attempt(1), Attempt::Admitted);
    legacy.dirtied(5, 1);
    assert_eq!(legacy.attempt(4 * MIB), delayed);
    // Half of the reserved bytes count, so these bytes bring the txg up to the limit, but not above it.
    legacy.dirtied(5, 2 * MIB - 1);
    assert_eq!(legacy.attempt(2), delayed);
    assert_eq!(legacy.attempt(2), Attempt::Blocked);
    legacy.slept(4 * MIB);
    // The blocked write has asked for a quiesce, so the throttle delays no more writes.
    assert_eq!(legacy.attempt(2), Attempt::Admitted);
    legacy.txg_opened(6);
    legacy.dirtied(6, 29 * MIB);
    assert_eq!(legacy.attempt(1), delayed);
    legacy.sync_started(5, 0);
    assert_eq!(legacy.attempt(1), Attempt::Admitted);
}
