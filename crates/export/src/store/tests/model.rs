//! Random operations on a real store and on a vector of bytes must read the same.

use dashpot_engine::Outcome;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::super::lossy::{SECTOR, wait};
use super::super::slabs::CHUNK;
use super::super::{Attempt, FileStore, Store, StoreConfig};
use super::{directory_of, disk, open_one};

/// Three chunks and a bit: no boundary falls onto the end.
const SIZE: u64 = 3 * CHUNK + 777;

#[derive(Clone, Debug)]
enum Request {
    Read {
        offset: u64,
        length: u64,
    },
    Write {
        offset: u64,
        length: u64,
        byte: u8,
        fua: bool,
    },
    Zero {
        offset: u64,
        length: u64,
        no_hole: bool,
        fua: bool,
    },
    Trim {
        offset: u64,
        length: u64,
        fua: bool,
    },
    Extents {
        offset: u64,
        length: u64,
        limit: usize,
    },
    Flush,
    Lose {
        seed: u64,
    },
}

/// Short and long ranges, and such as end where chunks and the disk do.
fn range() -> impl Strategy<Value = (u64, u64)> {
    let edges = [0, 1, SECTOR, CHUNK, 2 * CHUNK, 3 * CHUNK, SIZE - 1];
    let offset = prop_oneof![0..SIZE, proptest::sample::select(edges.to_vec())];
    let length = prop_oneof![
        1..2000_u64,
        1..=SIZE,
        proptest::sample::select(vec![CHUNK, SIZE])
    ];
    (offset, length).prop_map(|(offset, length)| (offset, length.min(SIZE - offset)))
}

fn request() -> impl Strategy<Value = Request> {
    let flags = any::<(bool, bool)>();
    prop_oneof![
        2 => range().prop_map(|(offset, length)| Request::Read { offset, length }),
        4 => (range(), any::<u8>(), any::<bool>()).prop_map(|((offset, length), byte, fua)| {
            Request::Write { offset, length, byte, fua }
        }),
        2 => (range(), flags).prop_map(|((offset, length), (no_hole, fua))| {
            Request::Zero { offset, length, no_hole, fua }
        }),
        1 => (range(), any::<bool>()).prop_map(|((offset, length), fua)| {
            Request::Trim { offset, length, fua }
        }),
        1 => (range(), 1..5_usize).prop_map(|((offset, length), limit)| {
            Request::Extents { offset, length, limit }
        }),
        1 => proptest::strategy::Just(Request::Flush),
        1 => any::<u64>().prop_map(|seed| Request::Lose { seed }),
    ]
}

/// The naive store: what is read now, and what the last sync has made sure of.
struct Model {
    current: Vec<u8>,
    durable: Vec<u8>,
}

impl Model {
    fn fill(&mut self, offset: u64, length: u64, pattern: impl Fn(usize) -> u8) {
        for at in 0..length as usize {
            self.current[offset as usize + at] = pattern(at);
        }
    }

    /// Whole sectors are synced: what else was written to them goes along.
    fn sync_if(&mut self, fua: bool, offset: u64, length: u64) {
        if fua {
            let end = (offset + length).next_multiple_of(SECTOR).min(SIZE);
            let range = (offset / SECTOR * SECTOR) as usize..end as usize;
            self.durable[range.clone()].copy_from_slice(&self.current[range]);
        }
    }
}

/// A pattern that shows bytes in the wrong place.
fn pattern(byte: u8) -> impl Fn(usize) -> u8 {
    move |at| byte.wrapping_add((at % 251) as u8)
}

struct Pair {
    store: Store,
    model: Model,
}

impl Pair {
    fn new(store: Store) -> Pair {
        let zeroes = vec![0; SIZE as usize];
        Pair {
            store,
            model: Model {
                current: zeroes.clone(),
                durable: zeroes,
            },
        }
    }

    fn apply(&mut self, request: Request) -> Result<(), TestCaseError> {
        match request {
            Request::Read { offset, length } => return self.check_read(offset, length),
            Request::Extents {
                offset,
                length,
                limit,
            } => {
                return self.check_extents(offset, length, limit);
            }
            Request::Lose { seed } => return self.check_loss(seed),
            Request::Write {
                offset,
                length,
                byte,
                fua,
            } => self.write(offset, length, byte, fua),
            Request::Zero {
                offset,
                length,
                no_hole,
                fua,
            } => {
                let attempt = self.store.zero(offset, length, no_hole, fua);
                self.done(attempt, |file| file.zero(offset, length, no_hole, fua));
                self.model.fill(offset, length, |_| 0);
                self.model.sync_if(fua, offset, length);
            }
            Request::Trim {
                offset,
                length,
                fua,
            } => {
                let attempt = self.store.trim(offset, length, fua);
                self.done(attempt, |file| file.trim(offset, length, fua));
                self.model.fill(offset, length, |_| 0);
                self.model.sync_if(fua, offset, length);
            }
            Request::Flush => {
                let attempt = self.store.flush();
                self.done(attempt, FileStore::sync);
                self.model.sync_if(true, 0, SIZE);
            }
        }
        Ok(())
    }

    fn done(&self, attempt: Attempt, block: impl FnOnce(&FileStore) -> Outcome) {
        assert_eq!(wait(&self.store, attempt, block), Ok(()));
    }

    fn write(&mut self, offset: u64, length: u64, byte: u8, fua: bool) {
        let bytes: Vec<u8> = (0..length as usize).map(pattern(byte)).collect();
        let attempt = self.store.write(offset, &bytes, fua);
        self.done(attempt, |file| file.write(offset, &bytes, fua));
        self.model.fill(offset, length, pattern(byte));
        self.model.sync_if(fua, offset, length);
    }

    fn read(&self, offset: u64, length: u64) -> Vec<u8> {
        let mut bytes = vec![0xee; length as usize];
        let attempt = self.store.read(offset, &mut bytes);
        self.done(attempt, |file| file.read(offset, &mut bytes));
        bytes
    }

    fn check_read(&self, offset: u64, length: u64) -> Result<(), TestCaseError> {
        let expected = &self.model.current[offset as usize..(offset + length) as usize];
        prop_assert!(
            self.read(offset, length) == expected,
            "read {offset} {length}"
        );
        Ok(())
    }

    /// Holes read as zeroes, neighbours differ, and only the limit makes the map stop early.
    fn check_extents(&self, offset: u64, length: u64, limit: usize) -> Result<(), TestCaseError> {
        let mut extents = Vec::new();
        self.store.extents(offset, length, limit, &mut extents);
        let mut at = offset as usize;
        for extent in &extents {
            let end = at + extent.length as usize;
            let zero = self.model.current[at..end].iter().all(|&byte| byte == 0);
            prop_assert!(extent.length > 0 && (zero || !extent.hole), "{extents:?}");
            at = end;
        }
        prop_assert!(extents.windows(2).all(|pair| pair[0].hole != pair[1].hole));
        let mapped = at as u64 - offset;
        prop_assert!(mapped == length || (mapped < length && extents.len() == limit));
        Ok(())
    }

    /// What was synced is there; of the rest, every sector is as it was before or after.
    fn check_loss(&mut self, seed: u64) -> Result<(), TestCaseError> {
        let Some(lost) = self.store.lose(seed) else {
            return Ok(());
        };
        prop_assert!(lost.is_ok());
        let left = self.read(0, SIZE);
        let whole = SECTOR as usize;
        let model = self
            .model
            .current
            .chunks(whole)
            .zip(self.model.durable.chunks(whole));
        for (at, (sector, (current, durable))) in left.chunks(whole).zip(model).enumerate() {
            prop_assert!(
                sector == current || sector == durable,
                "sector {at} is neither"
            );
        }
        self.model.current.clone_from(&left);
        self.model.durable = left;
        Ok(())
    }
}

fn check(store: StoreConfig, requests: Vec<Request>) -> Result<(), TestCaseError> {
    let opened = open_one(disk("d0", store, Some(SIZE))).unwrap();
    prop_assert_eq!(opened.size, SIZE);
    let mut pair = Pair::new(opened.store);
    for request in requests {
        pair.apply(request)?;
    }
    pair.check_read(0, SIZE)
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    proptest::collection::vec(request(), 1..40)
}

fn lossy(inner: StoreConfig) -> StoreConfig {
    StoreConfig::Lossy(Box::new(inner))
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    #[test]
    fn ram_is_a_vector_of_bytes(requests in requests()) {
        check(StoreConfig::Ram, requests)?;
    }

    #[test]
    fn a_file_is_a_vector_of_bytes(requests in requests()) {
        let (_directory, path) = directory_of(SIZE);
        check(StoreConfig::File(path), requests)?;
    }

    #[test]
    fn lossy_ram_loses_only_what_was_not_synced(requests in requests()) {
        check(lossy(StoreConfig::Ram), requests)?;
    }

    #[test]
    fn a_lossy_file_loses_only_what_was_not_synced(requests in requests()) {
        let (_directory, path) = directory_of(SIZE);
        check(lossy(StoreConfig::File(path)), requests)?;
    }

    #[test]
    fn null_is_all_zeroes(requests in requests()) {
        let mut pair = Pair::new(open_one(disk("d0", StoreConfig::Null, Some(SIZE))).unwrap().store);
        for request in requests {
            match request {
                Request::Write { offset, length, byte, fua } => {
                    pair.write(offset, length, byte, fua);
                    pair.model.current.fill(0);
                }
                other => pair.apply(other)?,
            }
        }
        pair.check_read(0, SIZE)?;
    }
}

#[test]
fn a_loss_tears_a_write_at_512_bytes() {
    let mut store = open_one(disk("d0", lossy(StoreConfig::Ram), Some(SIZE)))
        .unwrap()
        .store;
    let sectors = 100;
    let _ = store.write(0, &vec![1; sectors * SECTOR as usize], false);
    let lost = store.lose(7).unwrap().unwrap();
    assert_eq!(lost.kept + lost.dropped, sectors as u64);
    assert!(lost.kept > 0 && lost.dropped > 0, "{lost:?}");
    let mut left = vec![9; sectors * SECTOR as usize];
    let _ = store.read(0, &mut left);
    let survived = left
        .chunks(SECTOR as usize)
        .filter(|sector| sector.iter().all(|&b| b == 1));
    assert_eq!(survived.count() as u64, lost.kept);
}

/// A cache that is full writes early, and that alone is no sync.
#[test]
fn the_cache_of_a_lossy_store_is_bounded() {
    let size = 100 << 20;
    let mut store = open_one(disk("d0", lossy(StoreConfig::Ram), Some(size)))
        .unwrap()
        .store;
    let _ = store.trim(0, size, false);
    let lost = store.lose(7).unwrap().unwrap();
    assert!(lost.kept + lost.dropped <= 128 << 10, "{lost:?}");
}

#[test]
fn equal_seeds_lose_the_same() {
    let left = |seed| {
        let mut store = open_one(disk("d0", lossy(StoreConfig::Ram), Some(SIZE)))
            .unwrap()
            .store;
        let _ = store.write(0, &[1; SIZE as usize], false);
        let _ = store.lose(seed);
        Pair::new(store).read(0, SIZE)
    };
    assert!(left(1) == left(1));
    assert!(left(1) != left(2));
}
