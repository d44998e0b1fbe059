//! A test store: another store behind a volatile write cache whose content can be lost on demand.
//!
//! It models what a disk may do in a power cut, and what `kill -9` does not show because the page
//! cache survives it: of the sectors that were written since the last flush, any subset may have
//! reached the medium, in any order, and a larger write is torn at 512 bytes. Sectors are whole.
//! What a flush has acknowledged, and each FUA request, is on the medium.
//!
//! A real cache is of bounded size too: when it is full, all of it goes to the medium early, unsynced.
//!
//! Unlike other stores, this one waits for the store below it, on its shard: it is for tests.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;

use dashpot_engine::{Errno, Outcome, Random};

use super::pieces::pieces;
use super::{Attempt, FileStore, Store};

/// What a write is torn at, in bytes.
pub(super) const SECTOR: u64 = 512;
/// Sectors that the cache holds: 64 MiB.
const MOST: usize = 128 << 10;

type Sector = [u8; SECTOR as usize];

/// A store that can lose what was not synced.
#[derive(Debug)]
pub(crate) struct Lossy {
    medium: Store,
    /// The disk's size in bytes: where its last sector ends.
    size: u64,
    /// The cache. Sectors of zeroes are `None`.
    unsynced: BTreeMap<u64, Option<Box<Sector>>>,
}

/// What became of the cache, in sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Reached the medium just in time.
    pub kept: u64,
    /// Never reached it.
    pub dropped: u64,
}

impl Lossy {
    pub(crate) fn new(medium: Store, size: u64) -> Lossy {
        Lossy {
            medium,
            size,
            unsynced: BTreeMap::new(),
        }
    }

    pub(crate) fn inner(&self) -> &Store {
        &self.medium
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Outcome {
        self.read_medium(offset, into)?;
        let mut rest = into;
        for (index, range) in pieces(SECTOR, offset, rest.len() as u64) {
            let (part, tail) = rest.split_at_mut(range.len());
            match self.unsynced.get(&index) {
                Some(Some(sector)) => part.copy_from_slice(&sector[range]),
                Some(None) => part.fill(0),
                None => {}
            }
            rest = tail;
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, offset: u64, from: &[u8], fua: bool) -> Outcome {
        let mut rest = from;
        for (index, range) in pieces(SECTOR, offset, from.len() as u64) {
            let (part, tail) = rest.split_at(range.len());
            self.change(index, |sector| sector[range].copy_from_slice(part))?;
            rest = tail;
        }
        self.sync_if(fua, offset, from.len() as u64)
    }

    pub(crate) fn zero(&mut self, offset: u64, length: u64, fua: bool) -> Outcome {
        for (index, range) in pieces(SECTOR, offset, length) {
            if range.len() == length_of(index, self.size) {
                self.keep(index, None)?;
            } else {
                self.change(index, |sector| sector[range].fill(0))?;
            }
        }
        self.sync_if(fua, offset, length)
    }

    pub(crate) fn flush(&mut self) -> Outcome {
        self.sync(0..u64::MAX)
    }

    /// A power cut: each sector that was not synced is kept or dropped, as `seed` has it.
    pub(crate) fn lose(&mut self, seed: u64) -> Result<Lost, Errno> {
        let mut random = Random::new(seed);
        let mut lost = Lost::default();
        for (index, sector) in mem::take(&mut self.unsynced) {
            if random.below(2) == 0 {
                put(&mut self.medium, index, sector.as_deref(), self.size)?;
                lost.kept += 1;
            } else {
                lost.dropped += 1;
            }
        }
        Ok(lost)
    }

    pub(crate) fn fault(&self) -> Option<&str> {
        self.medium.fault()
    }

    /// Changes a part of a sector in the cache.
    fn change(&mut self, index: u64, change: impl FnOnce(&mut Sector)) -> Outcome {
        let mut sector = Box::new([0; SECTOR as usize]);
        let length = length_of(index, self.size);
        self.read(index * SECTOR, &mut sector[..length])?;
        change(&mut sector);
        self.keep(index, Some(sector))
    }

    fn keep(&mut self, index: u64, sector: Option<Box<Sector>>) -> Outcome {
        if self.unsynced.len() == MOST {
            self.settle(0..u64::MAX)?;
        }
        self.unsynced.insert(index, sector);
        Ok(())
    }

    fn sync_if(&mut self, fua: bool, offset: u64, length: u64) -> Outcome {
        if !fua {
            return Ok(());
        }
        self.sync(offset / SECTOR..(offset + length).div_ceil(SECTOR))
    }

    fn sync(&mut self, sectors: Range<u64>) -> Outcome {
        self.settle(sectors)?;
        let attempt = self.medium.flush();
        wait(&self.medium, attempt, FileStore::sync)
    }

    /// Moves sectors from the cache to the medium.
    fn settle(&mut self, sectors: Range<u64>) -> Outcome {
        while let Some((&index, sector)) = self.unsynced.range(sectors.clone()).next() {
            put(&mut self.medium, index, sector.as_deref(), self.size)?;
            self.unsynced.remove(&index);
        }
        Ok(())
    }

    fn read_medium(&self, offset: u64, into: &mut [u8]) -> Outcome {
        let attempt = self.medium.read(offset, into);
        wait(&self.medium, attempt, |file| file.read(offset, into))
    }
}

/// Writes a sector to the medium.
fn put(medium: &mut Store, index: u64, sector: Option<&Sector>, size: u64) -> Outcome {
    let offset = index * SECTOR;
    let length = length_of(index, size);
    let Some(sector) = sector else {
        let attempt = medium.zero(offset, length as u64, false, false);
        return wait(medium, attempt, |file| {
            file.zero(offset, length as u64, false, false)
        });
    };
    let bytes = &sector[..length];
    let attempt = medium.write(offset, bytes, false);
    wait(medium, attempt, |file| file.write(offset, bytes, false))
}

/// The last sector ends where the disk does.
fn length_of(index: u64, size: u64) -> usize {
    (size - index * SECTOR).min(SECTOR) as usize
}

/// Does at once what would block.
pub(super) fn wait(
    store: &Store,
    attempt: Attempt,
    block: impl FnOnce(&FileStore) -> Outcome,
) -> Outcome {
    match (attempt, store.blocking()) {
        (Attempt::Done(outcome), _) => outcome,
        (Attempt::WouldBlock, Some(file)) => block(file),
        (Attempt::WouldBlock, None) => Err(Errno::Io),
    }
}
