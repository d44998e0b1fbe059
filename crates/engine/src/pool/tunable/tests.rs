use super::{ORDERED, TABLE, Tunable, TunableError, Tunables, Unit};
use alloc::collections::BTreeSet;
use alloc::string::ToString;

const GIB: u64 = 1 << 30;

#[test]
fn every_row_is_complete_and_its_defaults_are_within_bounds() {
    let mut names = BTreeSet::new();
    for tunable in Tunable::ALL.iter().copied() {
        let info = tunable.info();
        assert!(names.insert(info.name), "{} is there twice", info.name);
        assert_eq!(Tunable::from_name(info.name), Some(tunable));
        assert!(
            info.help.ends_with('.') && info.min <= info.max,
            "{}",
            info.name
        );
        let default = (TABLE[tunable as usize].default)(8 * GIB);
        assert_eq!(default, info.default(8 * GIB), "{} is clamped", info.name);
        if let Unit::Choice(words) = info.unit {
            assert_eq!((info.min, info.max), (0, words.len() as u64 - 1));
        }
    }
    assert_eq!(Tunable::from_name("zfs_dirty_data"), None);
}

#[test]
fn the_defaults_are_those_of_zfs() {
    let tunables = Tunables::new(8 * GIB);
    for (name, value) in [
        ("zfs_dirty_data_max", 8 * GIB / 10),
        ("zfs_dirty_data_sync_percent", 20),
        ("zfs_delay_min_dirty_percent", 60),
        ("zfs_delay_scale", 500_000),
        ("zfs_txg_timeout", 5),
        ("zfs_vdev_async_write_active_min_dirty_percent", 30),
        ("zfs_vdev_async_write_active_max_dirty_percent", 60),
        ("zfs_vdev_max_active", 1_000),
        ("zfs_vdev_async_write_min_active", 2),
        ("zfs_vdev_async_write_max_active", 10),
        ("zfs_vdev_aggregation_limit", 1_048_576),
        ("zfs_vdev_read_gap_limit", 32_768),
        ("zfs_throttle_delay", 10_000_000),
    ] {
        let tunable = Tunable::from_name(name).unwrap();
        assert_eq!(tunables.get(tunable), value, "{name}");
    }
}

#[test]
fn dirty_data_max_follows_the_memory_up_to_four_gibibytes() {
    for (ram, max) in [
        (GIB, GIB / 10),
        (40 * GIB, 4 * GIB),
        (1 << 40, 4 * GIB),
        (0, 4_096),
    ] {
        assert_eq!(Tunables::new(ram).get(Tunable::DirtyDataMax), max);
    }
}

#[test]
fn bounds_are_kept_and_named() {
    let mut tunables = Tunables::new(8 * GIB);
    for tunable in Tunable::ALL.iter().copied() {
        let info = tunable.info();
        let above = tunables.set(tunable, info.max + 1);
        let value = info.max + 1;
        assert_eq!(above, Err(TunableError::OutOfBounds { tunable, value }));
    }
    let message = |tunable, value| {
        Tunables::new(GIB)
            .set(tunable, value)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(Tunable::DelayMinDirtyPercent, 101),
        "zfs_delay_min_dirty_percent cannot be 101: it is from 0 to 100 %"
    );
    assert_eq!(
        message(Tunable::TxgTimeout, 0),
        "zfs_txg_timeout cannot be 0: it is from 1 to 3600 s"
    );
    assert_eq!(
        message(Tunable::FailMode, 2),
        "failmode cannot be 2: it is one of wait, continue"
    );
    assert_eq!(tunables, Tunables::new(8 * GIB));
}

#[test]
fn a_minimum_stays_below_its_maximum() {
    for (low, high) in ORDERED {
        let mut tunables = Tunables::new(8 * GIB);
        let (above, top) = (tunables.get(high) + 1, tunables.get(high) + 2);
        let refused = tunables.set(low, above).unwrap_err();
        let message = refused.to_string();
        assert!(message.contains(low.info().name) && message.contains(high.info().name));
        assert!(
            tunables
                .set(high, tunables.get(low).wrapping_sub(1))
                .is_err()
        );
        // A caller that sets the low and the high tunable in one call may move each past the old value of the
        // other, and may name them in any order.
        tunables.set_all([(low, above), (high, top)]).unwrap();
        assert_eq!((tunables.get(low), tunables.get(high)), (above, top));
    }
}

#[test]
fn what_the_delay_multiplies_fits_into_64_bits() {
    let mut tunables = Tunables::new(8 * GIB);
    tunables.set(Tunable::DelayScale, 1_000_000_000).unwrap();
    let refused = tunables.set(Tunable::DirtyDataMax, 1 << 45).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "zfs_delay_scale (1000000000) times zfs_dirty_data_max (35184372088832) must stay below 2^64; lower one of them"
    );
    assert_eq!(tunables.get(Tunable::DirtyDataMax), 8 * GIB / 10);
}
