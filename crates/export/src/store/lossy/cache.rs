//! The cache of a lossy store: the writes that a power cut may still take, and what the medium had before
//! them.
//!
//! A write is durable once its client was told so: the write has FUA and the client got the reply, or the
//! client got the reply to a flush that had arrived after the reply to the write. The medium may have a write
//! earlier. Then the cache keeps the bytes that the write has replaced, so that a power cut can bring them
//! back.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use dashpot_engine::Instant;

use super::super::pieces::pieces;
use super::batch::{Batch, Settled};
use super::disk_sectors::{SECTOR, length_of};
use super::sector::{Sector, State, Version, Writes};
use super::write::{Asker, Write};

#[derive(Debug)]
pub(super) struct Cache {
    /// The disk's size in bytes. The last sector ends at the end of the disk.
    pub(super) size: u64,
    pub(super) sectors: BTreeMap<u64, Sector>,
    pub(super) writes: Writes,
    /// The number of the next write.
    next: u64,
    /// How many bytes the writes have.
    bytes: u64,
    /// When the flush arrived that covers most, of those whose clients were told.
    pub(super) covered: Option<Instant>,
}

/// The writes that a batch moves to the medium, besides the durable ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    None,
    /// Writes whose clients were told by this time.
    ToldBy(Instant),
    /// The writes with these numbers.
    These(Vec<u64>),
}

impl Choice {
    fn has(&self, number: u64, write: &Write) -> bool {
        match self {
            Choice::None => false,
            Choice::ToldBy(time) => write.told.is_some_and(|told| told <= *time),
            Choice::These(numbers) => numbers.binary_search(&number).is_ok(),
        }
    }
}

impl Cache {
    pub(super) fn new(size: u64) -> Cache {
        Cache {
            size,
            sectors: BTreeMap::new(),
            writes: Writes::new(),
            next: 0,
            bytes: 0,
            covered: None,
        }
    }

    /// Whether a write of this length must wait until the cache has written something to the medium.
    pub(super) fn is_full_for(&self, length: u64) -> bool {
        self.bytes > 0 && self.bytes + length.max(SECTOR) > MOST
    }

    /// Puts a write into the cache. Returns its number.
    pub(super) fn insert(
        &mut self,
        asker: Asker,
        offset: u64,
        length: u64,
        data: Option<Arc<[u8]>>,
        fua: bool,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        let mut versions = 0;
        for (index, range) in pieces(SECTOR, offset, length) {
            let sector = self.sectors.entry(index).or_default();
            sector.versions.push(Version::new(number, &range));
            versions += 1;
        }
        if versions > 0 {
            let write = Write {
                client: asker.client,
                at: asker.at,
                offset,
                length,
                data,
                fua,
                told: asker.zio.is_none().then_some(asker.at),
                sure: false,
                versions,
            };
            self.bytes += length.max(SECTOR);
            self.writes.insert(number, write);
        }
        number
    }

    /// Passes the cached bytes of a range to `paint`, oldest first, each with its place in the range. `None`
    /// stands for zeroes.
    pub(super) fn paint(
        &self,
        offset: u64,
        length: u64,
        mut paint: impl FnMut(Range<usize>, Option<&[u8]>),
    ) {
        let end = offset + length;
        for (index, sector) in self.sectors.range(offset / SECTOR..end.div_ceil(SECTOR)) {
            let start = index * SECTOR;
            let part = offset.saturating_sub(start) as usize..(end - start).min(SECTOR) as usize;
            sector.paint(*index, &part, &self.writes, |range, bytes| {
                let at = |within: usize| (start + within as u64 - offset) as usize;
                paint(at(range.start)..at(range.end), bytes);
            });
        }
    }

    /// Makes the told writes reach the medium, although no flush covers them. If too much of the cache is not
    /// told, makes all writes reach it.
    pub(super) fn make_sure(&mut self) {
        let untold = self.writes.values().filter(|write| write.told.is_none());
        let untold: u64 = untold.map(|write| write.length.max(SECTOR)).sum();
        let all = untold > MOST / 2;
        for write in self.writes.values_mut() {
            write.sure |= all || write.told.is_some();
        }
    }

    pub(super) fn make_all_sure(&mut self) {
        self.writes.values_mut().for_each(|write| write.sure = true);
    }

    /// Makes a batch of the first sectors of a range, and takes them out of the range. Returns the sectors
    /// that it has looked at, too.
    pub(super) fn collect(&mut self, left: &mut Range<u64>, choice: &Choice) -> (Batch, Vec<u64>) {
        let (mut batch, mut visits) = (Batch::default(), Vec::new());
        let from = std::mem::replace(&mut left.start, left.end);
        for (index, sector) in self.sectors.range_mut(from..left.end) {
            if visits.len() == VISITS || batch.moves >= BATCH {
                left.start = *index;
                break;
            }
            visits.push(*index);
            let place = index * SECTOR..index * SECTOR + length_of(*index, self.size) as u64;
            take(
                sector,
                place,
                &self.writes,
                self.covered,
                choice,
                &mut batch,
            );
        }
        (batch, visits)
    }

    /// Takes the result of a batch for the sectors that it has looked at.
    pub(super) fn settled(&mut self, visits: &[u64], settled: &Settled) {
        let mut rest = settled.before.as_deref().unwrap_or_default();
        for index in visits {
            let Some(sector) = self.sectors.get_mut(index) else {
                continue;
            };
            if std::mem::take(&mut sector.reads_before) {
                let length = length_of(*index, self.size).min(rest.len());
                let (before, tail) = rest.split_at(length);
                rest = tail;
                if settled.before.is_some() {
                    sector.before = Some(before.into());
                }
            }
            let is_there = settled.outcome.is_ok();
            let mut settling = sector.versions.iter_mut();
            let settling = settling.by_ref().filter(|one| one.state == State::Settling);
            let mut is_touched = sector.stale;
            for version in settling {
                is_touched = true;
                version.state = if is_there {
                    State::Settled
                } else {
                    State::Cached
                };
            }
            // After a failure the medium may have any part of the batch.
            sector.stale = !is_there && is_touched && sector.before.is_some();
        }
        self.clean(visits);
    }

    /// Takes the durable versions that the medium has out of these sectors.
    fn clean(&mut self, indexes: &[u64]) {
        let mut counts = Vec::new();
        for index in indexes {
            let Some(sector) = self.sectors.get_mut(index) else {
                continue;
            };
            let writes = &self.writes;
            let is_durable = |number| {
                let write = writes.get(&number);
                write.is_none_or(|write| write.is_durable(self.covered))
            };
            sector.clean(*index, writes, is_durable, &mut counts);
            if sector.is_empty() {
                self.sectors.remove(index);
            }
        }
        for (number, count) in counts {
            self.count(number, count);
        }
    }

    /// Changes the number of a write's versions. Forgets the write if none is left.
    pub(super) fn count(&mut self, number: u64, change: i64) {
        if let Some(write) = self.writes.get_mut(&number) {
            write.versions = write.versions.saturating_add_signed(change);
            if write.versions == 0 {
                self.bytes -= write.length.max(SECTOR);
                self.writes.remove(&number);
            }
        }
    }
}

/// Adds to a batch what the medium lacks of a sector.
fn take(
    sector: &mut Sector,
    place: Range<u64>,
    writes: &Writes,
    covered: Option<Instant>,
    choice: &Choice,
    batch: &mut Batch,
) {
    let index = place.start / SECTOR;
    let durable = |number: u64| {
        writes
            .get(&number)
            .is_some_and(|write| write.is_durable(covered))
    };
    let chosen = |one: &Version| {
        let has = || {
            writes
                .get(&one.number)
                .is_some_and(|write| choice.has(one.number, write))
        };
        one.state == State::Settled || durable(one.number) || has()
    };
    let lacks = |one: &Version| one.state == State::Cached && chosen(one);
    if !sector.stale && !sector.versions.iter().any(lacks) {
        return;
    }
    let loses = |one: &Version| lacks(one) && !durable(one.number);
    if sector.before.is_none() && sector.versions.iter().any(loses) {
        sector.reads_before = true;
        batch.read_before(place.clone());
    }
    if let Some(before) = sector.before.as_ref().filter(|_| sector.stale) {
        batch.write(place.clone(), Some((before, 0..before.len())));
    }
    for version in &mut sector.versions {
        if !chosen(version) {
            continue;
        }
        if version.state == State::Cached {
            version.state = State::Settling;
        }
        if let Some(write) = writes.get(&version.number) {
            let range = version.range();
            let at = place.start + range.start as u64..place.start + range.end as u64;
            let data = write.data.as_ref();
            batch.write(at, data.map(|data| (data, write.place(index, &range))));
        }
    }
}

/// The cache holds this many bytes of writes.
pub(super) const MOST: u64 = 64 << 20;
/// A batch looks at this many sectors at most.
const VISITS: usize = 8 << 10;
/// A batch moves about this many bytes at most.
const BATCH: u64 = 1 << 20;
