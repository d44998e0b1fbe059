//! Cuts the power of a lossy store: decides which unsynced writes have reached the medium, and counts the
//! bytes that are missing.

use std::collections::BTreeMap;
use std::mem;

use dashpot_engine::{Errno, Instant, Random};

use super::super::medium::Medium;
use super::super::pieces::pieces;
use super::{Lossy, SECTOR, Unsynced, Version, length_of, put};
use crate::power::{Cut, Keep, Loss, LostWrite};

/// The fate of a piece of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The piece has reached the medium.
    Kept,
    /// The piece is lost.
    Lost,
    /// The piece stays in the cache.
    Stays,
}

/// The fates of all unsynced writes.
struct Fates {
    /// The size of the pieces into which writes are torn, in bytes; `None` if no write is torn.
    tear: Option<u64>,
    /// For each write, by its number: the index of its first piece on the disk, and the fates of its pieces.
    drawn: BTreeMap<u64, (u64, Vec<Fate>)>,
}

/// The bytes of a write that a cut has lost and left. Bytes that a later write has replaced count as neither.
#[derive(Clone, Copy, Default)]
struct Left {
    missing: u64,
    survived: u64,
}

impl<M: Medium> Lossy<M> {
    /// Empties the cache as a power cut does. If the disk keeps serving, unacknowledged writes stay in the
    /// cache, as if they had been made after the cut.
    pub(crate) fn cut(&mut self, cut: &Cut, now: Instant) -> Result<Loss, Errno> {
        let fates = Fates::draw(&self.writes, cut);
        let versions: Vec<((u64, u64), Version)> =
            mem::take(&mut self.versions).into_iter().collect();
        let mut left = BTreeMap::<u64, Left>::new();
        for sector in versions.chunk_by(|one, other| one.0.0 == other.0.0) {
            self.cut_sector(sector, &fates, &mut left)?;
        }
        let loss = self.describe(&left, now);
        self.writes.retain(|_, write| stays(write, cut));
        self.early = 0;
        Ok(loss)
    }

    /// Writes the newest surviving version of a sector to the medium, and counts its bytes as survived, and
    /// the bytes of newer, lost versions as missing. Older versions count as neither, because a newer version
    /// has replaced them.
    fn cut_sector(
        &mut self,
        versions: &[((u64, u64), Version)],
        fates: &Fates,
        left: &mut BTreeMap<u64, Left>,
    ) -> Result<(), Errno> {
        let fate = |((sector, number), _): &&((u64, u64), Version)| fates.of(*number, *sector);
        let mut newest_first = versions.iter().rev();
        if let Some(((sector, number), version)) =
            newest_first.clone().find(|one| fate(one) == Fate::Kept)
        {
            put(&mut self.medium, *sector, version.as_deref(), self.size)?;
            left.entry(*number).or_default().survived += self.bytes_in(*number, *sector);
        }
        for ((sector, number), _) in newest_first
            .by_ref()
            .take_while(|one| fate(one) == Fate::Lost)
        {
            left.entry(*number).or_default().missing += self.bytes_in(*number, *sector);
        }
        for (key, version) in versions.iter().filter(|one| fate(one) == Fate::Stays) {
            self.versions.insert(*key, version.clone());
        }
        Ok(())
    }

    /// How many bytes of a sector a write covers.
    fn bytes_in(&self, number: u64, sector: u64) -> u64 {
        let Some(write) = self.writes.get(&number) else {
            return 0;
        };
        let start = sector * SECTOR;
        let end = start + length_of(sector, self.size) as u64;
        end.min(write.offset + write.length) - start.max(write.offset)
    }

    fn describe(&self, left: &BTreeMap<u64, Left>, now: Instant) -> Loss {
        let mut loss = Loss {
            early_bytes: self.early * SECTOR,
            ..Loss::default()
        };
        for (number, write) in &self.writes {
            if !write.acknowledged {
                loss.unacknowledged += 1;
                continue;
            }
            loss.unflushed.add(write.length);
            let Left { missing, survived } = left.get(number).copied().unwrap_or_default();
            if missing == 0 {
                continue;
            }
            let client = write.client.to_string();
            loss.lost.add(missing);
            loss.torn += u64::from(survived > 0);
            loss.clients.entry(client.clone()).or_default().add(missing);
            loss.writes.push(LostWrite {
                client,
                offset: write.offset,
                length: write.length,
                missing,
                age: now.since(write.at),
            });
        }
        loss
    }
}

impl Fates {
    /// Draws the fates in the order of the writes, so that the same seed loses the same writes.
    fn draw(writes: &BTreeMap<u64, Unsynced>, cut: &Cut) -> Fates {
        let mut random = Random::new(cut.seed);
        let mut drawn = BTreeMap::new();
        for (number, write) in writes {
            let unit = cut.tear.unwrap_or(u64::MAX);
            let count = pieces(unit, write.offset, write.length).count();
            let mut fate = || match cut.keep {
                _ if stays(write, cut) => Fate::Stays,
                Keep::All => Fate::Kept,
                Keep::None => Fate::Lost,
                Keep::Random if random.below(2) == 0 => Fate::Kept,
                Keep::Random => Fate::Lost,
            };
            let fates = (0..count).map(|_| fate()).collect();
            drawn.insert(*number, (write.offset / unit, fates));
        }
        Fates {
            tear: cut.tear,
            drawn,
        }
    }

    fn of(&self, number: u64, sector: u64) -> Fate {
        let unit = self.tear.unwrap_or(u64::MAX);
        let drawn = self.drawn.get(&number);
        let piece = |first| (sector * SECTOR / unit).saturating_sub(first) as usize;
        let fate = drawn.and_then(|(first, fates)| fates.get(piece(*first)));
        fate.copied().unwrap_or(Fate::Lost)
    }
}

/// Whether a write stays in the cache, because the disk keeps serving and has yet to acknowledge the write.
fn stays(write: &Unsynced, cut: &Cut) -> bool {
    cut.goes_on() && !write.acknowledged
}
