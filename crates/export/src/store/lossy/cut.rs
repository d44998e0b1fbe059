//! Cuts the power of a lossy store: decides which writes survive, and counts the bytes that are missing.

use std::collections::{BTreeMap, HashSet};

use dashpot_engine::{Instant, Random};

use super::super::pieces::pieces;
use super::bytes::Bytes;
use super::cache::Cache;
use super::disk_sectors::SECTOR;
use super::run::{Run, State, Version, Writes};
use super::write::{Covered, Write};
use crate::power::{Cut, Keep, Loss, LostWrite};

/// The fate of a piece of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The piece was durable before the cut.
    Durable,
    /// The piece survives, although no flush has covered it.
    Kept,
    /// The piece is lost.
    Lost,
    /// The piece stays in the cache.
    Stays,
}

/// The fates of all writes in the cache.
struct Fates {
    /// The size of the pieces into which writes are torn, in bytes; `None` if no write is torn.
    tear: Option<u64>,
    /// For each write, by its number: the index of its first piece on the disk, and the fates of its pieces.
    drawn: BTreeMap<u64, (u64, Vec<Fate>)>,
}

/// The bytes of a write at a cut. Bytes that a later write has replaced are neither missing
/// nor have they survived.
#[derive(Clone, Copy, Default)]
struct Left {
    /// The bytes that no durable write had replaced before the cut.
    volatile: u64,
    missing: u64,
    survived: u64,
}

impl Cache {
    /// Loses writes as a power cut does. The writes of `pending` stay in the cache, as if they had been made
    /// after the cut. The medium must then get what the cache says that it lacks.
    pub(super) fn cut(&mut self, cut: &Cut, pending: &HashSet<u64>, now: Instant) -> Loss {
        let fates = Fates::draw(&self.writes, self.covered, pending, cut);
        let mut left = BTreeMap::<u64, Left>::new();
        let mut lost = Vec::new();
        if let Some(unit) = fates.tear {
            self.split_all(unit / SECTOR);
        }
        for (index, run) in &mut self.runs {
            count_run(*index, run, &fates, &mut left);
            lose_versions(*index, run, &fates, &mut lost);
        }
        let loss = self.describe(cut, &fates, &left, now);
        for (number, write) in &mut self.writes {
            write.sure |= fates.of_write(*number).contains(&Fate::Kept);
        }
        for number in lost {
            self.count(number, -1);
        }
        self.runs.retain(|_, run| !run.is_empty());
        loss
    }

    /// Splits all runs at the multiples of this many sectors.
    fn split_all(&mut self, unit: u64) {
        let runs = self.runs.iter();
        let places = runs.flat_map(|(first, run)| {
            let places = first / unit + 1..(first + run.sectors()).div_ceil(unit);
            places.map(|place| place * unit)
        });
        for place in places.collect::<Vec<_>>() {
            self.split(place);
        }
    }

    fn describe(&self, cut: &Cut, fates: &Fates, left: &BTreeMap<u64, Left>, now: Instant) -> Loss {
        let mut loss = Loss::default();
        for (number, write) in &self.writes {
            let left = left.get(number).copied().unwrap_or_default();
            if left.volatile == 0 || fates.of_write(*number).contains(&Fate::Durable) {
                continue;
            }
            if write.told.is_none() {
                let stays = fates.of_write(*number).contains(&Fate::Stays);
                loss.unacknowledged += u64::from(stays || !cut.goes_on());
                continue;
            }
            loss.unflushed.add(write.length);
            if left.missing == 0 {
                continue;
            }
            let client = write.client.to_string();
            loss.lost.add(left.missing);
            loss.torn += u64::from(left.survived > 0);
            let of_client = loss.clients.entry(client.clone()).or_default();
            of_client.add(left.missing);
            loss.writes.push(LostWrite {
                client,
                offset: write.offset,
                length: write.length,
                missing: left.missing,
                age: now.since(write.at),
            });
        }
        loss
    }
}

/// Counts the bytes of a run that are missing, and those that have survived. A byte counts for the newest
/// surviving write, and for the newer writes that are lost.
fn count_run(index: u64, run: &Run, fates: &Fates, left: &mut BTreeMap<u64, Left>) {
    let (mut survivors, mut durable) = (Bytes::default(), Bytes::default());
    for version in run.versions.iter().rev() {
        let range = version.range();
        let fate = fates.of(version.number, index);
        let left = left.entry(version.number).or_default();
        left.volatile += durable.free(&range);
        match fate {
            Fate::Lost => left.missing += survivors.free(&range),
            Fate::Kept => left.survived += survivors.free(&range),
            Fate::Durable => durable.claim(&range),
            Fate::Stays => {}
        }
        if matches!(fate, Fate::Kept | Fate::Durable) {
            survivors.claim(&range);
        }
    }
}

/// Takes the lost versions out of a run. Adds the number of each to `lost`.
fn lose_versions(index: u64, run: &mut Run, fates: &Fates, lost: &mut Vec<u64>) {
    let is_lost = |one: &Version| fates.of(one.number, index) == Fate::Lost;
    let lost_before = lost.len();
    for version in run.versions.iter().filter(|one| is_lost(one)) {
        lost.push(version.number);
        run.stale |= version.state != State::Cached;
    }
    if lost.len() > lost_before {
        run.versions.retain(|one| !is_lost(one));
    }
}

impl Fates {
    /// Draws the fates in the order of the writes, so that the same seed loses the same writes.
    fn draw(writes: &Writes, covered: Covered, pending: &HashSet<u64>, cut: &Cut) -> Fates {
        let mut random = Random::new(cut.seed);
        let mut drawn = BTreeMap::new();
        // Only a random choice tells the pieces of a write apart.
        let tear = cut.tear.filter(|_| cut.keep == Keep::Random);
        for (number, write) in writes {
            let unit = tear.unwrap_or(u64::MAX);
            let count = pieces(unit, write.offset, write.length).count();
            let stays = pending.contains(number);
            let fates = (0..count).map(|_| fate(write, covered, stays, cut.keep, &mut random));
            drawn.insert(*number, (write.offset / unit, fates.collect()));
        }
        Fates { tear, drawn }
    }

    fn of(&self, number: u64, sector: u64) -> Fate {
        let unit = self.tear.unwrap_or(u64::MAX);
        let drawn = self.drawn.get(&number);
        let piece = |first| (sector * SECTOR / unit).saturating_sub(first) as usize;
        let fate = drawn.and_then(|(first, fates)| fates.get(piece(*first)));
        fate.copied().unwrap_or(Fate::Lost)
    }

    fn of_write(&self, number: u64) -> &[Fate] {
        let drawn = self.drawn.get(&number);
        drawn.map_or(&[], |(_, fates)| fates)
    }
}

fn fate(write: &Write, covered: Covered, stays: bool, keep: Keep, random: &mut Random) -> Fate {
    match keep {
        _ if write.is_durable(covered) => Fate::Durable,
        _ if stays => Fate::Stays,
        // The client got no reply, so the write has not happened.
        _ if write.told.is_none() => Fate::Lost,
        Keep::All => Fate::Kept,
        Keep::None => Fate::Lost,
        Keep::Random if random.below(2) == 0 => Fate::Kept,
        Keep::Random => Fate::Lost,
    }
}
