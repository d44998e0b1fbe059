//! A store for tests: another store behind a volatile write cache, which a power cut empties.
//!
//! This store models the effect of a power cut on a disk. `kill -9` does not show that effect, because the
//! page cache survives a killed process. After a cut, any subset of the writes since the last flush may be on
//! the medium, as if these writes had been made in any order. Each of these writes may be whole or torn. A
//! sector of 512 bytes is never torn. FUA requests, and writes that a flush has covered, are always on the
//! medium.
//!
//! The cache keeps every version of a sector since the last flush, because after a power cut an older version
//! may be on the medium. Like a real cache, it is bounded: when it is full, it writes the newest version of
//! each sector to the medium early, without a sync, and is empty again.
//!
//! Unlike other stores, this store makes its shard wait for the store below it. That is acceptable because it
//! is for tests only.

mod cut;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use dashpot_engine::{Errno, Instant, Outcome, ZioId};

use super::medium::Medium;
use super::pieces::pieces;

/// The smallest piece of a torn write, in bytes.
pub(super) const SECTOR: u64 = 512;
/// The largest number of versions of sectors in the cache. They take 64 MiB.
const MOST: usize = 128 << 10;

type Sector = [u8; SECTOR as usize];

/// The content of a sector. `None` stands for zeroes.
type Version = Option<Box<Sector>>;

/// A store that can lose unsynced writes.
#[derive(Debug)]
pub(crate) struct Lossy<M> {
    medium: M,
    /// The disk's size in bytes. The last sector ends at the end of the disk.
    size: u64,
    /// The cache. The key of a version is the index of its sector and the number of the write that made it.
    versions: BTreeMap<(u64, u64), Version>,
    /// The writes that are in progress or have versions in the cache, by their numbers.
    writes: BTreeMap<u64, Unsynced>,
    /// For each zio without a reply, the numbers of its writes. A zio whose work is done in pieces has
    /// several writes.
    unanswered: HashMap<ZioId, Vec<u64>>,
    /// The number of the next write.
    next: u64,
    /// The cause of the next write, if the shard has named it.
    asker: Option<Asker>,
    /// How many sectors a full cache has sent to the medium since the last flush or power cut.
    early: u64,
}

/// The cause of a write.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    /// The zio of a client. Writes of a pool have none, because it is the pool that acknowledges their data
    /// to clients.
    pub(crate) zio: Option<ZioId>,
    /// The name of the client. A pool's disk has the pool and its volumes as clients.
    pub(crate) client: Arc<str>,
    /// When the shard asked the store for the write.
    pub(crate) at: Instant,
}

/// A write that is in progress, or has at least one version in the cache.
#[derive(Debug)]
struct Unsynced {
    client: Arc<str>,
    /// When the shard asked the store for the write.
    at: Instant,
    offset: u64,
    length: u64,
    /// How many versions of sectors in the cache come from this write, plus one while the write is in
    /// progress.
    versions: u64,
    /// Whether the shard has acknowledged the write to the client.
    acknowledged: bool,
}

impl<M: Medium> Lossy<M> {
    pub(crate) fn new(medium: M, size: u64) -> Lossy<M> {
        Lossy {
            medium,
            size,
            versions: BTreeMap::new(),
            writes: BTreeMap::new(),
            unanswered: HashMap::new(),
            next: 0,
            asker: None,
            early: 0,
        }
    }

    pub(crate) fn inner(&self) -> &M {
        &self.medium
    }

    /// Names the cause of the next write.
    pub(crate) fn set_asker(&mut self, asker: Asker) {
        self.asker = Some(asker);
    }

    /// Notes that the shard has replied to a zio, which acknowledges the zio's writes.
    pub(crate) fn acknowledge(&mut self, zio: ZioId) {
        for number in self.unanswered.remove(&zio).into_iter().flatten() {
            if let Some(write) = self.writes.get_mut(&number) {
                write.acknowledged = true;
            }
        }
    }

    /// Notes that a zio is gone. If it had no reply until now, it will never get one.
    pub(crate) fn forget(&mut self, zio: ZioId) {
        self.unanswered.remove(&zio);
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Outcome {
        self.medium.read(offset, into)?;
        let mut rest = into;
        for (index, range) in pieces(SECTOR, offset, rest.len() as u64) {
            let (part, tail) = rest.split_at_mut(range.len());
            let mut versions = self.versions.range((index, 0)..=(index, u64::MAX));
            match versions.next_back() {
                Some((_, Some(sector))) => part.copy_from_slice(&sector[range]),
                Some((_, None)) => part.fill(0),
                None => {}
            }
            rest = tail;
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, offset: u64, from: &[u8], fua: bool) -> Outcome {
        self.one_write(offset, from.len() as u64, |lossy| {
            let mut rest = from;
            for (index, range) in pieces(SECTOR, offset, from.len() as u64) {
                let (part, tail) = rest.split_at(range.len());
                lossy.change(index, |sector| sector[range].copy_from_slice(part))?;
                rest = tail;
            }
            Ok(())
        })?;
        self.sync_if(fua, offset, from.len() as u64)
    }

    pub(crate) fn zero(&mut self, offset: u64, length: u64, fua: bool) -> Outcome {
        self.one_write(offset, length, |lossy| {
            for (index, range) in pieces(SECTOR, offset, length) {
                if range.len() == length_of(index, lossy.size) {
                    lossy.keep(index, None)?;
                } else {
                    lossy.change(index, |sector| sector[range].fill(0))?;
                }
            }
            Ok(())
        })?;
        self.sync_if(fua, offset, length)
    }

    pub(crate) fn flush(&mut self) -> Outcome {
        self.sync(0..u64::MAX)?;
        self.early = 0;
        Ok(())
    }

    pub(crate) fn fault(&self) -> Option<&str> {
        self.medium.fault()
    }

    /// Lets `work` put the versions of a write into the cache, and ends the write, even if `work` fails.
    fn one_write(
        &mut self,
        offset: u64,
        length: u64,
        work: impl FnOnce(&mut Self) -> Outcome,
    ) -> Outcome {
        self.begin(offset, length);
        let outcome = work(self);
        // From here on, only the versions in the cache keep the write.
        self.uncount(self.next - 1);
        outcome
    }

    /// Begins a write, with the next number.
    fn begin(&mut self, offset: u64, length: u64) {
        let number = self.next;
        self.next += 1;
        let asker = self.asker.take();
        let zio = asker.as_ref().and_then(|asker| asker.zio);
        if let Some(zio) = zio {
            self.unanswered.entry(zio).or_default().push(number);
        }
        // A write without a zio gets no acknowledgement later, so it counts as acknowledged.
        let acknowledged = zio.is_none();
        let (client, at) = asker.map_or_else(
            || ("".into(), Instant::ZERO),
            |asker| (asker.client, asker.at),
        );
        let write = Unsynced {
            client,
            at,
            acknowledged,
            offset,
            length,
            versions: 1,
        };
        self.writes.insert(number, write);
    }

    /// Changes a part of a sector in the cache.
    fn change(&mut self, index: u64, change: impl FnOnce(&mut Sector)) -> Outcome {
        let mut sector = Box::new([0; SECTOR as usize]);
        let length = length_of(index, self.size);
        self.read(index * SECTOR, &mut sector[..length])?;
        change(&mut sector);
        self.keep(index, Some(sector))
    }

    /// Puts a version of a sector into the cache, for the current write.
    fn keep(&mut self, index: u64, version: Version) -> Outcome {
        let number = self.next - 1;
        if self.versions.len() == MOST {
            self.early += self.settle(0..u64::MAX)?;
        }
        self.versions.insert((index, number), version);
        if let Some(write) = self.writes.get_mut(&number) {
            write.versions += 1;
        }
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
        self.medium.flush()
    }

    /// Moves the newest version of each cached sector in this range to the medium, and drops the older
    /// versions. Returns how many sectors it has moved.
    fn settle(&mut self, sectors: Range<u64>) -> Result<u64, Errno> {
        let mut settled = 0;
        let next = |versions: &BTreeMap<(u64, u64), Version>| {
            let mut rest = versions.range((sectors.start, 0)..(sectors.end, 0));
            rest.next().map(|((index, _), _)| *index)
        };
        while let Some(index) = next(&self.versions) {
            let all = (index, 0)..=(index, u64::MAX);
            if let Some((_, last)) = self.versions.range(all.clone()).next_back() {
                put(&mut self.medium, index, last.as_deref(), self.size)?;
            }
            let numbers: Vec<u64> = self.versions.range(all).map(|((_, n), _)| *n).collect();
            for number in numbers {
                self.versions.remove(&(index, number));
                self.uncount(number);
            }
            settled += 1;
        }
        Ok(settled)
    }

    /// Reduces the number of a write's versions by one. Forgets the write if none is left.
    fn uncount(&mut self, number: u64) {
        if let Some(write) = self.writes.get_mut(&number) {
            write.versions -= 1;
            if write.versions == 0 {
                self.writes.remove(&number);
            }
        }
    }
}

/// Writes a sector to the medium.
fn put<M: Medium>(medium: &mut M, index: u64, sector: Option<&Sector>, size: u64) -> Outcome {
    let offset = index * SECTOR;
    let length = length_of(index, size);
    match sector {
        Some(sector) => medium.write(offset, &sector[..length]),
        None => medium.zero(offset, length as u64),
    }
}

/// The length of a sector in bytes. The last sector is shorter if the disk ends within it.
fn length_of(index: u64, size: u64) -> usize {
    (size - index * SECTOR).min(SECTOR) as usize
}
