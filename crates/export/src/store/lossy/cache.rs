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

use smallvec::SmallVec;

use super::batch::{Batch, Settled};
use super::disk_sectors::SECTOR;
use super::run::{Before, Run, State, Version, Writes};
use super::write::{Asker, Covered, Write};

#[derive(Debug)]
pub(super) struct Cache {
    /// The disk's size in bytes. The last sector ends at the end of the disk.
    pub(super) size: u64,
    /// By their first sectors. No two runs share a sector.
    pub(super) runs: BTreeMap<u64, Run>,
    pub(super) writes: Writes,
    /// The number of the next write.
    next: u64,
    /// How much of the cache all writes take, and those take whose clients were not told, in bytes.
    bytes: u64,
    untold: u64,
    /// The number of the last result that a client was told.
    told: u64,
    pub(super) covered: Covered,
}

/// The runs that a batch looks at.
#[derive(Debug, Default)]
pub(super) struct Visits {
    /// Their sectors. Runs that lie side by side are one range.
    ranges: Vec<Range<u64>>,
    count: u64,
}

/// The writes that a batch moves to the medium, besides the durable ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    None,
    /// Writes that are among the first results that clients were told.
    First(u64),
    /// The writes with these numbers.
    These(Vec<u64>),
}

impl Choice {
    fn has(&self, number: u64, write: &Write) -> bool {
        match self {
            Choice::None => false,
            Choice::First(count) => write.told.is_some_and(|told| told <= *count),
            Choice::These(numbers) => numbers.binary_search(&number).is_ok(),
        }
    }
}

impl Cache {
    pub(super) fn new(size: u64) -> Cache {
        Cache {
            size,
            runs: BTreeMap::new(),
            writes: Writes::new(),
            next: 0,
            bytes: 0,
            untold: 0,
            told: 0,
            covered: Covered::default(),
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
        let versions = self.add_versions(number, offset..offset + length);
        if versions > 0 {
            let write = Write {
                number,
                client: asker.client,
                at: asker.at,
                offset,
                length,
                data,
                fua,
                told: asker.zio.is_none().then_some(0),
                sure: false,
                versions,
            };
            self.bytes += write.weight();
            if write.told.is_none() {
                self.untold += write.weight();
            }
            self.writes.insert(number, write);
        }
        number
    }

    /// Adds a version of a write to each run that it touches, and runs where there are none. Returns how many
    /// versions the write has.
    fn add_versions(&mut self, number: u64, at: Range<u64>) -> u64 {
        let sectors = at.start / SECTOR..at.end.div_ceil(SECTOR);
        if at.is_empty() {
            return 0;
        }
        self.split(sectors.start);
        self.split(sectors.end);
        let (mut next, mut gaps) = (sectors.start, Vec::new());
        for (index, run) in self.runs.range(sectors.clone()) {
            if next < *index {
                gaps.push(next..*index);
            }
            next = index + run.sectors();
        }
        if next < sectors.end {
            gaps.push(next..sectors.end);
        }
        for gap in gaps {
            let end = self.size.min(gap.end * SECTOR);
            self.runs
                .insert(gap.start, Run::new(end - gap.start * SECTOR));
        }
        let mut versions = 0;
        for (index, run) in self.runs.range_mut(sectors) {
            let start = index * SECTOR;
            let within = |at: u64| at.saturating_sub(start).min(run.length) as usize;
            let range = within(at.start)..within(at.end);
            run.versions.push(Version::new(number, &range));
            versions += 1;
        }
        versions
    }

    /// Splits the run that has this sector and an earlier one, so that a run may begin with the sector.
    pub(super) fn split(&mut self, sector: u64) {
        let Some((first, run)) = self.runs.range_mut(..sector).next_back() else {
            return;
        };
        if first + run.sectors() <= sector {
            return;
        }
        let mut counts = Vec::new();
        let tail = run.split_off((sector - first) * SECTOR, &mut counts);
        self.runs.insert(sector, tail);
        for (number, count) in counts {
            self.count(number, count);
        }
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
        let first = self.runs.range(..=offset / SECTOR).next_back();
        let first = first.map_or(0, |(index, _)| *index);
        for (index, run) in self.runs.range(first..end.div_ceil(SECTOR)) {
            let start = index * SECTOR;
            let within = |at: u64| at.saturating_sub(start).min(run.length) as usize;
            let part = within(offset)..within(end);
            // A run may end before the range begins.
            if part.is_empty() {
                continue;
            }
            run.paint(*index, &part, &self.writes, |range, bytes| {
                let at = |within: usize| (start + within as u64 - offset) as usize;
                paint(at(range.start)..at(range.end), bytes);
            });
        }
    }

    /// Notes that the client of a write was told so, as the result with the number `told`.
    pub(super) fn tell(&mut self, number: u64, told: u64) {
        self.told = self.told.max(told);
        if let Some(write) = self.writes.get_mut(&number)
            && write.told.replace(told).is_none()
        {
            self.untold -= write.weight();
        }
    }

    /// Makes the first results durable that clients were told.
    pub(super) fn cover(&mut self, results: u64) {
        self.covered.told = self.covered.told.max(Some(results));
    }

    /// Makes the told writes reach the medium, although no flush covers them. If too much of the cache is not
    /// told, makes all writes reach it.
    pub(super) fn make_sure(&mut self) {
        if self.untold > MOST / 2 {
            self.make_all_sure();
        } else {
            self.cover(self.told);
        }
    }

    pub(super) fn make_all_sure(&mut self) {
        self.covered.numbers = self.next;
    }

    /// Makes a batch of the first runs of a range, and takes them out of the range. Returns the runs that it
    /// has looked at, too.
    pub(super) fn collect(&mut self, left: &mut Range<u64>, choice: &Choice) -> (Batch, Visits) {
        let (mut batch, mut visits) = (Batch::default(), Visits::default());
        let end = left.end;
        while let Some((index, run)) = self.runs.range(left.clone()).next() {
            let index = *index;
            if visits.count == VISITS || batch.moves >= BATCH {
                left.start = index;
                return (batch, visits);
            }
            if run.length > RUN {
                self.split(index + RUN / SECTOR);
            }
            let Some(run) = self.runs.get_mut(&index) else {
                break;
            };
            let next = index + run.sectors();
            // A later write may have made a run that goes on beyond the range.
            left.start = next.min(end);
            visits.add(index..next);
            take(run, index, &self.writes, self.covered, choice, &mut batch);
        }
        left.start = end;
        (batch, visits)
    }

    /// Takes the result of a batch for the runs that it has looked at. Since then, writes may have split them.
    pub(super) fn settled(&mut self, visits: &Visits, settled: &Settled) {
        let mut rest = settled.before.as_deref().unwrap_or_default();
        let is_there = settled.outcome.is_ok();
        for range in &visits.ranges {
            for (_, run) in self.runs.range_mut(range.clone()) {
                if std::mem::take(&mut run.reads_before) {
                    let (before, tail) = rest.split_at(rest.len().min(run.length as usize));
                    rest = tail;
                    if settled.before.is_some() {
                        run.before = Some(Before::new(before.into()));
                    }
                }
                run.settled(is_there);
            }
        }
        self.clean(visits);
    }

    /// Takes the durable versions that the medium has out of these runs.
    fn clean(&mut self, visits: &Visits) {
        let (mut counts, mut empty) = (Vec::new(), Vec::new());
        for range in &visits.ranges {
            for (index, run) in self.runs.range_mut(range.clone()) {
                let writes = &self.writes;
                let is_durable = |number| {
                    let write = writes.get(&number);
                    write.is_none_or(|write| write.is_durable(self.covered))
                };
                run.clean(*index, writes, is_durable, &mut counts);
                if run.is_empty() {
                    empty.push(*index);
                }
            }
        }
        for index in empty {
            self.runs.remove(&index);
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
                self.bytes -= write.weight();
                if write.told.is_none() {
                    self.untold -= write.weight();
                }
                self.writes.remove(&number);
            }
        }
    }
}

impl Visits {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds a run that comes after the others.
    fn add(&mut self, sectors: Range<u64>) {
        self.count += 1;
        match self.ranges.last_mut() {
            Some(last) if last.end == sectors.start => last.end = sectors.end,
            _ => self.ranges.push(sectors),
        }
    }
}

/// Adds to a batch what the medium lacks of a run.
fn take(
    run: &mut Run,
    index: u64,
    writes: &Writes,
    covered: Covered,
    choice: &Choice,
    batch: &mut Batch,
) {
    let start = index * SECTOR;
    let place = start..start + run.length;
    let durable = |write: &Write| write.is_durable(covered);
    let mut wanted = SmallVec::<[_; 1]>::new();
    let (mut lacks, mut loses) = (false, false);
    for version in &run.versions {
        let write = writes.get(&version.number);
        let is_durable = write.is_some_and(durable);
        let chosen = || write.is_some_and(|write| choice.has(version.number, write));
        let is_wanted = version.state == State::Settled || is_durable || chosen();
        let is_new = is_wanted && version.state == State::Cached;
        lacks |= is_new;
        loses |= is_new && !is_durable;
        wanted.push(write.filter(|_| is_wanted));
    }
    if !run.stale && !lacks {
        return;
    }
    if run.before.is_none() && loses {
        run.reads_before = true;
        batch.read_before(place.clone());
    }
    if let Some(before) = run.before.as_ref().filter(|_| run.stale) {
        batch.write(place.clone(), Some(before.source()));
    }
    for (version, write) in run.versions.iter_mut().zip(wanted) {
        let Some(write) = write else {
            continue;
        };
        if version.state == State::Cached {
            version.state = State::Settling;
        }
        let range = version.range();
        let at = start + range.start as u64..start + range.end as u64;
        let data = write.data.as_ref();
        batch.write(at, data.map(|data| (data, write.place(index, &range))));
    }
}

/// The cache holds this many bytes of writes.
pub(super) const MOST: u64 = 64 << 20;
/// A batch looks at this many runs at most.
pub(super) const VISITS: u64 = 1 << 10;
/// A batch moves about this many bytes at most.
pub(super) const BATCH: u64 = 1 << 20;
/// A batch takes at most this many bytes of a run. In tests runs are split often.
pub(super) const RUN: u64 = if cfg!(test) { 3 * SECTOR } else { 256 << 10 };
