//! Tests of single power cuts of a lossy store.

use dashpot_engine::Instant;
use dashpot_rules::StoreConfig;

use super::super::Store;
use super::super::lossy::SECTOR;
use super::model::{Pair, SIZE, lossy};
use super::{disk, open_one};
use crate::power::{Cut, Keep, Loss, Then};

fn lossy_ram(size: u64) -> Store {
    let opened = open_one(disk("d0", lossy(StoreConfig::Ram), Some(size)));
    opened.unwrap().store
}

fn cut_at(tear: Option<u64>, seed: u64) -> Cut {
    Cut {
        keep: Keep::Random,
        tear,
        seed,
        then: Then::Off,
    }
}

/// Cuts the power after a write of 100 sectors that begins at the third sector. Returns the loss, and tells
/// for each sector whether it has the written bytes.
fn torn(tear: Option<u64>, seed: u64) -> (Loss, Vec<bool>) {
    let mut store = lossy_ram(SIZE);
    let _ = store.write(2 * SECTOR, &vec![1; 100 * SECTOR as usize], false);
    let loss = store.cut(&cut_at(tear, seed), Instant::ZERO);
    let bytes = Pair::new(store).read(0, 102 * SECTOR);
    let survived = bytes.chunks(SECTOR as usize).map(|sector| sector[0] == 1);
    (loss.unwrap().unwrap(), survived.collect())
}

#[test]
fn a_write_is_torn_where_it_was_asked_to_be() {
    for (tear, sectors) in [(Some(512), 1), (Some(4096), 8)] {
        let (loss, survived) = torn(tear, 7);
        let left = survived.iter().filter(|survived| **survived).count() as u64;
        assert_eq!((loss.lost.writes, loss.torn), (1, 1), "{loss:?}");
        assert_eq!(loss.writes[0].missing, (100 - left) * SECTOR);
        // The first two sectors were not written.
        for unit in survived.chunks(sectors).skip(2) {
            assert!(
                unit.iter().all(|one| *one == unit[0]),
                "{tear:?}: {survived:?}"
            );
        }
    }
}

#[test]
fn without_a_tear_a_write_survives_whole_or_not_at_all() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let (loss, survived) = torn(None, seed);
        assert!(survived[2..].iter().all(|one| *one == survived[2]));
        assert_eq!(loss.lost.writes == 0, survived[2]);
        outcomes.insert(survived[2]);
    }
    assert_eq!(outcomes.len(), 2, "some seeds keep the write, not all");
}

/// A full cache writes its data early, and the report counts these bytes.
#[test]
fn the_cache_of_a_lossy_store_is_bounded_and_says_what_it_wrote_early() {
    let piece = 4 << 20;
    let mut store = lossy_ram(25 * piece);
    for at in 0..25 {
        let _ = store.trim(at * piece, piece, false);
    }
    let loss = store.cut(&cut_at(None, 7), Instant::ZERO).unwrap().unwrap();
    assert_eq!(loss.early_bytes, 64 << 20);
    assert!(loss.lost.bytes <= 64 << 20, "{loss:?}");
}

#[test]
fn a_write_that_a_kept_one_has_replaced_is_not_missed() {
    let mut store = lossy_ram(SIZE);
    let _ = store.write(0, &[1; 1024], false);
    let _ = store.flush();
    let _ = store.write(0, &[2; 1024], false);
    let _ = store.write(0, &[3; 1024], true);
    let _ = store.write(512, &[4; 512], false);
    let keep_none = Cut {
        keep: Keep::None,
        ..cut_at(None, 1)
    };
    let loss = store.cut(&keep_none, Instant::ZERO).unwrap().unwrap();
    let lost: Vec<(u64, u64)> = loss.writes.iter().map(|w| (w.offset, w.missing)).collect();
    assert_eq!(
        lost,
        [(512, 512)],
        "what was flushed, and made durable, is there"
    );
    assert_eq!(Pair::new(store).read(0, 1024), [3; 1024]);
}

/// A write of 4K of which a later, durable write has replaced 1K has lost 3K, and nothing of it has survived.
#[test]
fn a_write_is_not_torn_because_a_later_one_has_replaced_a_part() {
    for durable_trim in [false, true] {
        let mut store = lossy_ram(SIZE);
        let _ = store.write(0, &[1; 4096], false);
        let _ = if durable_trim {
            store.trim(1024, 1024, true)
        } else {
            store.write(1024, &[2; 1024], true)
        };
        let keep_none = Cut {
            keep: Keep::None,
            ..cut_at(None, 1)
        };
        let loss = store.cut(&keep_none, Instant::ZERO).unwrap().unwrap();
        assert_eq!((loss.lost.bytes, loss.torn), (3072, 0), "{loss:?}");
    }
    for seed in 0..20 {
        let mut store = lossy_ram(SIZE);
        let _ = store.write(0, &[1; 4096], false);
        let _ = store.write(1024, &[2; 1024], false);
        let loss = store
            .cut(&cut_at(None, seed), Instant::ZERO)
            .unwrap()
            .unwrap();
        assert_eq!(loss.torn, 0, "{loss:?}");
    }
}

#[test]
fn equal_seeds_lose_the_same() {
    assert_eq!(torn(Some(512), 1).1, torn(Some(512), 1).1);
    assert_ne!(torn(Some(512), 1).1, torn(Some(512), 2).1);
}
