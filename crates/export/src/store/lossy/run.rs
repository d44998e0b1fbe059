//! A run of sectors in the cache of a lossy store: the versions that writes have left, and the content that a
//! power cut must bring back.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::bytes::Bytes;
use super::disk_sectors::SECTOR;
use super::write::Write;

/// The writes in the cache, by their numbers.
pub(super) type Writes = BTreeMap<u64, Write>;

/// Adjacent sectors that the same writes have touched.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// How many bytes the run has. Only the last sector of the disk may be in it in part.
    pub(super) length: u64,
    /// The content that clients have been told is durable, unless the medium has exactly this content. The
    /// durable versions of the cache come on top.
    pub(super) before: Option<Before>,
    /// Whether a power cut has taken versions that the medium still has. Then the medium must get `before`
    /// back.
    pub(super) stale: bool,
    /// Whether the batch at the medium reads `before`.
    pub(super) reads_before: bool,
    /// In the order of the writes.
    pub(super) versions: SmallVec<[Version; 1]>,
}

/// The part of a write that lies in one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    /// The number of the write.
    pub(super) number: u64,
    /// The range of bytes within the run.
    from: u64,
    to: u64,
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
            from: range.start as u64,
            to: range.end as u64,
            state: State::Cached,
        }
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.from as usize..self.to as usize
    }
}

impl Run {
    pub(super) fn new(length: u64) -> Run {
        Run {
            length,
            ..Run::default()
        }
    }

    /// How many sectors the run touches.
    pub(super) fn sectors(&self) -> u64 {
        self.length.div_ceil(SECTOR)
    }

    /// Takes the bytes from `at` on into a run of its own. Adds the numbers of the writes that have versions
    /// in both runs now to `split`.
    pub(super) fn split_off(&mut self, at: u64, split: &mut Vec<(u64, i64)>) -> Run {
        let mut tail = Run {
            length: self.length - at,
            before: self
                .before
                .as_mut()
                .map(|before| before.split_off(at as usize)),
            stale: self.stale,
            reads_before: self.reads_before,
            versions: SmallVec::new(),
        };
        self.length = at;
        self.versions.retain(|version| {
            if version.to <= at {
                return true;
            }
            tail.versions.push(Version {
                from: version.from.max(at) - at,
                to: version.to - at,
                ..*version
            });
            let stays = version.from < at;
            if stays {
                split.push((version.number, 1));
                version.to = at;
            }
            stays
        });
        tail
    }

    /// Passes the newest bytes of a part of the run to `paint`, oldest first, each with its place in the run.
    /// `None` stands for zeroes. Bytes that are not passed are those of the medium.
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
            paint(part.clone(), before.bytes().get(part.clone()));
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

    /// Notes whether the medium has the versions that a batch has written.
    pub(super) fn settled(&mut self, is_there: bool) {
        let mut is_touched = self.stale;
        let settling = self.versions.iter_mut();
        for version in settling.filter(|one| one.state == State::Settling) {
            is_touched = true;
            version.state = if is_there {
                State::Settled
            } else {
                State::Cached
            };
        }
        // After a failure the medium may have any part of the batch.
        self.stale = !is_there && is_touched && self.before.is_some();
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
        let mut told = before.bytes().to_vec();
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
        self.before = Some(Before::new(told.into()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.before.is_none()
    }
}

pub(super) fn intersection(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    one.start.max(other.start)..one.end.min(other.end)
}

/// The bytes of a run before the writes of the cache: a part of what was read at once.
#[derive(Clone, Debug)]
pub(super) struct Before {
    bytes: Arc<[u8]>,
    part: Range<usize>,
}

impl Before {
    pub(super) fn new(bytes: Arc<[u8]>) -> Before {
        let part = 0..bytes.len();
        Before { bytes, part }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.part.clone()]
    }

    /// The bytes to write again.
    pub(super) fn source(&self) -> (&Arc<[u8]>, Range<usize>) {
        (&self.bytes, self.part.clone())
    }

    fn split_off(&mut self, at: usize) -> Before {
        let middle = self.part.start + at;
        let mut tail = Before {
            bytes: Arc::clone(&self.bytes),
            part: middle..self.part.end,
        };
        self.part.end = middle;
        self.shrink();
        tail.shrink();
        tail
    }

    /// Copies a small part of many bytes, so that the others can go.
    fn shrink(&mut self) {
        if self.part.len() < self.bytes.len() / 2 {
            *self = Before::new(self.bytes().into());
        }
    }
}
