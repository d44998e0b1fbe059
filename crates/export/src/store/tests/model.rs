//! Tests that random operations on a real store and on a vector of bytes give the same reads.

use dashpot_engine::Outcome;
use dashpot_rules::{DiskConfig, StoreConfig};
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::super::any::wait;
use super::super::lossy::SECTOR;
use super::super::slabs::CHUNK;
use super::super::{Attempt, Blocking, Store};
use super::{directory_of, disk, open_one};

/// The file has this many bytes before the store's part, and as many after the store's part.
const BEFORE: usize = 4096 + 333;

/// A bit more than three chunks, so that the disk does not end at the boundary of a chunk.
pub(super) const SIZE: u64 = 3 * CHUNK + 777;

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
}

/// Short and long ranges, and ranges that end where chunks or the disk end.
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
    ]
}

/// A pattern of bytes in which any misplaced bytes show.
fn pattern(byte: u8) -> impl Fn(usize) -> u8 {
    move |at| byte.wrapping_add((at % 251) as u8)
}

pub(super) struct Pair {
    store: Store,
    model: Vec<u8>,
}

impl Pair {
    pub(super) fn new(store: Store) -> Pair {
        Pair {
            store,
            model: vec![0; SIZE as usize],
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
                self.fill(offset, length, |_| 0);
            }
            Request::Trim {
                offset,
                length,
                fua,
            } => {
                let attempt = self.store.trim(offset, length, fua);
                self.done(attempt, |file| file.trim(offset, length, fua));
                self.fill(offset, length, |_| 0);
            }
            Request::Flush => {
                let attempt = self.store.flush();
                self.done(attempt, |store| store.sync());
            }
        }
        Ok(())
    }

    fn done(&self, attempt: Attempt, block: impl FnOnce(&dyn Blocking) -> Outcome) {
        assert_eq!(wait(&self.store, attempt, block), Ok(()));
    }

    fn write(&mut self, offset: u64, length: u64, byte: u8, fua: bool) {
        let bytes: Vec<u8> = (0..length as usize).map(pattern(byte)).collect();
        let attempt = self.store.write(offset, &bytes, fua);
        self.done(attempt, |file| file.write(offset, &bytes, fua));
        self.fill(offset, length, pattern(byte));
    }

    fn fill(&mut self, offset: u64, length: u64, pattern: impl Fn(usize) -> u8) {
        for at in 0..length as usize {
            self.model[offset as usize + at] = pattern(at);
        }
    }

    pub(super) fn read(&self, offset: u64, length: u64) -> Vec<u8> {
        let mut bytes = vec![0xee; length as usize];
        let attempt = self.store.read(offset, &mut bytes);
        self.done(attempt, |file| file.read(offset, &mut bytes));
        if let Store::Lossy(lossy) = &self.store {
            lossy.fill_in(offset, &mut bytes);
        }
        bytes
    }

    fn check_read(&self, offset: u64, length: u64) -> Result<(), TestCaseError> {
        let expected = &self.model[offset as usize..(offset + length) as usize];
        prop_assert!(
            self.read(offset, length) == expected,
            "read {offset} {length}"
        );
        Ok(())
    }

    /// Checks that holes read as zeroes, that data and holes alternate, and that the extents cover the whole
    /// range unless the limit ends them earlier.
    fn check_extents(&self, offset: u64, length: u64, limit: usize) -> Result<(), TestCaseError> {
        let mut extents = Vec::new();
        self.store.extents(offset, length, limit, &mut extents);
        let mut at = offset as usize;
        for extent in &extents {
            let end = at + extent.length as usize;
            let zero = self.model[at..end].iter().all(|&byte| byte == 0);
            prop_assert!(extent.length > 0 && (zero || !extent.hole), "{extents:?}");
            at = end;
        }
        prop_assert!(extents.windows(2).all(|pair| pair[0].hole != pair[1].hole));
        let mapped = at as u64 - offset;
        prop_assert!(mapped == length || (mapped < length && extents.len() == limit));
        Ok(())
    }
}

fn check(store: StoreConfig, requests: Vec<Request>) -> Result<(), TestCaseError> {
    check_disk(disk("d0", store, Some(SIZE)), requests)
}

fn check_disk(disk: DiskConfig, requests: Vec<Request>) -> Result<(), TestCaseError> {
    let opened = open_one(disk).unwrap();
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

pub(super) fn lossy(inner: StoreConfig) -> StoreConfig {
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

    /// A store in a part of a file behaves like a vector of bytes, and the bytes around this part stay as
    /// they are.
    #[test]
    fn a_part_of_a_file_is_a_vector_of_bytes(requests in requests()) {
        let (_directory, path) = directory_of(0);
        let around = [7; BEFORE];
        std::fs::write(&path, [&around[..], &[0; SIZE as usize], &around].concat()).unwrap();
        let part = DiskConfig { offset: BEFORE as u64, ..disk("d0", StoreConfig::File(path.clone()), Some(SIZE)) };
        check_disk(part, requests)?;
        let bytes = std::fs::read(&path).unwrap();
        prop_assert_eq!(bytes.len(), SIZE as usize + 2 * BEFORE);
        prop_assert!(bytes.starts_with(&around) && bytes.ends_with(&around));
    }

    #[test]
    fn lossy_ram_is_a_vector_of_bytes(requests in requests()) {
        check(lossy(StoreConfig::Ram), requests)?;
    }

    #[test]
    fn a_lossy_file_is_a_vector_of_bytes(requests in requests()) {
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
                    pair.model.fill(0);
                }
                other => pair.apply(other)?,
            }
        }
        pair.check_read(0, SIZE)?;
    }
}
