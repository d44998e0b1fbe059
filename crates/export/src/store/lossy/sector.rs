//! A sector in the cache of a lossy store: the versions that writes have left, and the content that a power
//! cut must bring back.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::disk_sectors::SECTOR;
use super::write::Write;

/// The writes in the cache, by their numbers.
pub(super) type Writes = BTreeMap<u64, Write>;

#[derive(Debug, Default)]
pub(super) struct Sector {
    /// The content that clients have been told is durable, unless the medium has exactly this content. The
    /// durable versions of the cache come on top.
    pub(super) before: Option<Arc<[u8]>>,
    /// Whether a power cut has taken versions that the medium still has. Then the medium must get `before`
    /// back.
    pub(super) stale: bool,
    /// Whether the batch at the medium reads `before`.
    pub(super) reads_before: bool,
    /// In the order of the writes.
    pub(super) versions: SmallVec<[Version; 1]>,
}

/// The part of a write that lies in one sector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    /// The number of the write.
    pub(super) number: u64,
    /// The range of bytes within the sector.
    from: u16,
    to: u16,
    pub(super) state: State,
}

/// Whether the medium has a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Cached,
    /// The medium is writing the version now.
    Settling,
    Settled,
}

impl Version {
    pub(super) fn new(number: u64, range: &Range<usize>) -> Version {
        Version {
            number,
            from: range.start as u16,
            to: range.end as u16,
            state: State::Cached,
        }
    }

    pub(super) fn range(&self) -> Range<usize> {
        usize::from(self.from)..usize::from(self.to)
    }
}

impl Sector {
    /// Passes the newest bytes of a part of the sector to `paint`, oldest first, each with its place in the
    /// sector. `None` stands for zeroes. Bytes that are not passed are those of the medium.
    pub(super) fn paint(
        &self,
        index: u64,
        part: &Range<usize>,
        writes: &Writes,
        mut paint: impl FnMut(Range<usize>, Option<&[u8]>),
    ) {
        let covers = |version: &Version| {
            let range = version.range();
            range.start <= part.start && part.end <= range.end
        };
        // Versions below one that covers the whole part do not show.
        let first = self.versions.iter().rposition(covers);
        if first.is_none()
            && let Some(before) = &self.before
        {
            paint(part.clone(), before.get(part.clone()));
        }
        for version in &self.versions[first.unwrap_or(0)..] {
            let range = intersection(&version.range(), part);
            if !range.is_empty()
                && let Some(write) = writes.get(&version.number)
            {
                paint(range.clone(), write.bytes(index, &range));
            }
        }
    }

    /// Takes out the durable versions that the medium has, and the bytes of older versions below them. Adds
    /// to `counts` by how much the number of versions of each write has changed.
    pub(super) fn clean(
        &mut self,
        index: u64,
        writes: &Writes,
        is_durable: impl Fn(u64) -> bool,
        counts: &mut Vec<(u64, i64)>,
    ) {
        let leaves = |one: &Version| one.state == State::Settled && is_durable(one.number);
        if self.versions.iter().any(leaves) {
            self.keep_told(index, writes, leaves);
            let (mut owned, mut kept) = (Bytes::default(), SmallVec::<[Version; 1]>::new());
            for version in self.versions.iter().rev() {
                let mut count = -1;
                if leaves(version) {
                    owned.claim(&version.range());
                } else {
                    for range in owned.gaps(&version.range()).into_iter().rev() {
                        let state = version.state;
                        kept.push(Version {
                            state,
                            ..Version::new(version.number, &range)
                        });
                        count += 1;
                    }
                }
                if count != 0 {
                    counts.push((version.number, count));
                }
            }
            kept.reverse();
            self.versions = kept;
        }
        let mut states = self.versions.iter().map(|one| one.state);
        if !self.stale && states.all(|state| state == State::Cached) {
            self.before = None;
        }
    }

    /// Puts the versions that leave into the content that a power cut brings back.
    fn keep_told(&mut self, index: u64, writes: &Writes, leaves: impl Fn(&Version) -> bool) {
        let Some(before) = &self.before else {
            return;
        };
        let mut told = before.to_vec();
        for version in self.versions.iter().filter(|one| leaves(one)) {
            let range = version.range();
            match writes
                .get(&version.number)
                .map(|write| write.bytes(index, &range))
            {
                Some(Some(bytes)) => told[range].copy_from_slice(bytes),
                Some(None) => told[range].fill(0),
                None => {}
            }
        }
        self.before = Some(told.into());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.before.is_none()
    }
}

pub(super) fn intersection(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    one.start.max(other.start)..one.end.min(other.end)
}

/// A set of bytes of a sector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    has: [bool; SECTOR as usize],
    count: usize,
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes {
            has: [false; SECTOR as usize],
            count: 0,
        }
    }
}

impl Bytes {
    /// How many bytes of a range are not in the set.
    pub(super) fn free(&self, range: &Range<usize>) -> u64 {
        if self.count == 0 {
            return range.len() as u64;
        }
        self.has[range.clone()].iter().filter(|has| !**has).count() as u64
    }

    pub(super) fn claim(&mut self, range: &Range<usize>) {
        self.count += self.free(range) as usize;
        self.has[range.clone()].fill(true);
    }

    /// The parts of a range that are not in the set.
    fn gaps(&self, range: &Range<usize>) -> SmallVec<[Range<usize>; 1]> {
        let mut gaps = SmallVec::<[Range<usize>; 1]>::new();
        if self.count == 0 {
            gaps.push(range.clone());
            return gaps;
        }
        for at in range.clone().filter(|at| !self.has[*at]) {
            match gaps.last_mut().filter(|gap| gap.end == at) {
                Some(gap) => gap.end += 1,
                None => gaps.push(at..at + 1),
            }
        }
        gaps
    }
}
