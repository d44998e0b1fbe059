//! Tests that random operations on a real store and on a vector of bytes give the same reads.

use std::collections::BTreeMap;

use dashpot_engine::{Instant, Outcome};
use dashpot_rules::{DiskConfig, StoreConfig};
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::super::any::wait;
use super::super::lossy::SECTOR;
use super::super::slabs::CHUNK;
use super::super::{Attempt, Blocking, Store};
use super::{directory_of, disk, open_one};
use crate::power::{Cut, Keep, Loss, Then};

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
    Cut(Cut),
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

fn cut() -> impl Strategy<Value = Cut> {
    let keep = proptest::sample::select(vec![Keep::None, Keep::All, Keep::Random]);
    let tear = proptest::sample::select(vec![None, Some(SECTOR), Some(4096)]);
    (keep, tear, any::<u64>()).prop_map(|(keep, tear, seed)| Cut {
        keep,
        tear,
        seed,
        then: Then::Off,
    })
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
        1 => cut().prop_map(Request::Cut),
    ]
}

/// The naive store. It has the current content, the content at the last sync, and all contents that each
/// sector has had since the last sync.
struct Model {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// For each sector, the writes since the last sync, each with the content that it left in the sector.
    since: BTreeMap<usize, Vec<(Written, Vec<u8>)>>,
    writes: usize,
}

/// A write: its number, offset and length.
type Written = (usize, u64, u64);

impl Model {
    fn fill(&mut self, offset: u64, length: u64, pattern: impl Fn(usize) -> u8) {
        for at in 0..length as usize {
            self.current[offset as usize + at] = pattern(at);
        }
        self.writes += 1;
        for sector in offset / SECTOR..(offset + length).div_ceil(SECTOR) {
            let written = (self.writes, offset, length);
            let content = of_sector(&self.current, sector as usize).to_vec();
            self.since
                .entry(sector as usize)
                .or_default()
                .push((written, content));
        }
    }

    /// The content that a sector must have after a power cut that lost these writes and kept all others.
    fn survivor(&self, sector: usize, lost: &[(u64, u64)]) -> &[u8] {
        let versions = self.since.get(&sector).into_iter().flatten().rev();
        let is_kept = |written: &Written| !lost.contains(&(written.1, written.2));
        let mut kept = versions.filter(|(written, _)| is_kept(written));
        let durable = of_sector(&self.durable, sector);
        kept.next().map_or(durable, |(_, content)| content)
    }

    /// With `fua`, syncs the sectors of a write. Other writes to these sectors are then synced, too.
    fn sync_if(&mut self, fua: bool, offset: u64, length: u64) {
        if fua {
            let end = (offset + length).next_multiple_of(SECTOR).min(SIZE);
            let range = (offset / SECTOR * SECTOR) as usize..end as usize;
            self.since
                .retain(|sector, _| !range.contains(&(sector * SECTOR as usize)));
            self.durable[range.clone()].copy_from_slice(&self.current[range]);
        }
    }
}

fn of_sector(bytes: &[u8], sector: usize) -> &[u8] {
    let start = sector * SECTOR as usize;
    &bytes[start..bytes.len().min(start + SECTOR as usize)]
}

/// A pattern of bytes in which any misplaced bytes show.
fn pattern(byte: u8) -> impl Fn(usize) -> u8 {
    move |at| byte.wrapping_add((at % 251) as u8)
}

pub(super) struct Pair {
    store: Store,
    model: Model,
}

impl Pair {
    pub(super) fn new(store: Store) -> Pair {
        let zeroes = vec![0; SIZE as usize];
        Pair {
            store,
            model: Model {
                current: zeroes.clone(),
                durable: zeroes,
                since: BTreeMap::new(),
                writes: 0,
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
            Request::Cut(cut) => return self.check_cut(&cut),
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
                self.done(attempt, |store| store.sync());
                self.model.sync_if(true, 0, SIZE);
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
        self.model.fill(offset, length, pattern(byte));
        self.model.sync_if(fua, offset, length);
    }

    pub(super) fn read(&self, offset: u64, length: u64) -> Vec<u8> {
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

    /// Checks that holes read as zeroes, that data and holes alternate, and that the extents cover the whole
    /// range unless the limit ends them earlier.
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

    /// Cuts the power. Checks that each sector has its synced content or that of a later write, and that
    /// exactly the reported writes are lost.
    fn check_cut(&mut self, cut: &Cut) -> Result<(), TestCaseError> {
        let Some(loss) = self.store.cut(cut, Instant::ZERO) else {
            return Ok(());
        };
        let loss = loss.expect("a store that works");
        let left = self.read(0, SIZE);
        for sector in 0..left.len().div_ceil(SECTOR as usize) {
            let content = of_sector(&left, sector);
            let mut versions = self.model.since.get(&sector).into_iter().flatten();
            prop_assert!(
                content == of_sector(&self.model.durable, sector)
                    || versions.any(|(_, version)| version == content),
                "no write left this content in sector {sector}"
            );
            // If the cache was full, writes that the seed would have lost may already have reached the
            // medium.
            if loss.early_bytes == 0 {
                self.check_survivor(sector, content, cut, &loss)?;
            }
        }
        if cut.keep == Keep::None {
            prop_assert_eq!(loss.unflushed.writes, loss.lost.writes, "{:?}", loss);
        }
        self.model.current.clone_from(&left);
        self.model.durable = left;
        self.model.since.clear();
        Ok(())
    }

    fn check_survivor(
        &self,
        sector: usize,
        content: &[u8],
        cut: &Cut,
        loss: &Loss,
    ) -> Result<(), TestCaseError> {
        let lost: Vec<(u64, u64)> = loss.writes.iter().map(|w| (w.offset, w.length)).collect();
        let expected = match cut.keep {
            Keep::None => of_sector(&self.model.durable, sector),
            Keep::All => of_sector(&self.model.current, sector),
            Keep::Random if cut.tear.is_none() && are_unlike(&self.model, &lost) => {
                self.model.survivor(sector, &lost)
            }
            Keep::Random => return Ok(()),
        };
        prop_assert!(content == expected, "sector {sector} after {cut:?}");
        Ok(())
    }
}

/// Whether each lost write is the only write with its offset and length.
fn are_unlike(model: &Model, lost: &[(u64, u64)]) -> bool {
    let all = model.since.values().flatten().map(|(written, _)| *written);
    let all: std::collections::BTreeSet<Written> = all.collect();
    let named = |place: &(u64, u64)| all.iter().filter(|w| (w.1, w.2) == *place).count();
    lost.iter().all(|place| named(place) == 1)
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
    fn lossy_ram_loses_what_was_not_synced_and_says_what(requests in requests()) {
        check(lossy(StoreConfig::Ram), requests)?;
    }

    #[test]
    fn a_lossy_file_loses_what_was_not_synced_and_says_what(requests in requests()) {
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
