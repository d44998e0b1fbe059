//! What rules have done to the data of a disk: the bytes that are wrong now, and the I/Os that made them so.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use dashpot_engine::inject::{Damage, DataFault, RuleId};
use dashpot_engine::{Instant, Op, Random};
use smallvec::{SmallVec, smallvec};

/// A damaged I/O.
#[derive(Clone, Debug)]
pub struct DamagedIo {
    /// When the shard asked the store.
    pub at: Instant,
    pub rule: RuleId,
    pub damage: Damage,
    pub seed: u64,
    pub client: Arc<str>,
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
    /// The bytes of the disk that are wrong since then; for a read, the bytes of the reply that are wrong.
    pub wrong: SmallVec<[Range<u64>; 2]>,
    /// The other place of a misdirected I/O; `None` if the disk has none, so that a write is lost and a read gets
    /// zeroes.
    pub other: Option<u64>,
}

/// The damage of a disk at one moment.
#[derive(Clone, Debug, Default)]
pub struct DamageReport {
    /// The bytes that are wrong now, in the order of their offsets.
    pub wrong: Vec<Range<u64>>,
    /// The last damaged I/Os, the oldest first.
    pub ios: Vec<DamagedIo>,
    /// How many I/Os have been damaged.
    pub total: u64,
    /// Whether there are so many places with wrong bytes that rules spare the disk.
    pub is_full: bool,
    /// Whether there was no room to note that some of these bytes are right again.
    pub is_inexact: bool,
    /// How many wrong bytes the disk's pool has read. It may have written them elsewhere.
    pub read_by_pool: u64,
}

/// The damage of a disk.
#[derive(Debug, Default)]
pub(crate) struct DamageLog {
    /// The places with wrong bytes: the end of each, by its beginning. They do not touch each other.
    wrong: BTreeMap<u64, u64>,
    wrong_bytes: u64,
    /// Whether there was no room to note that some bytes are right again.
    is_inexact: bool,
    ios: VecDeque<DamagedIo>,
    total: u64,
    /// How many wrong bytes the disk's pool has read.
    read_by_pool: u64,
}

impl DamageLog {
    /// Notes an I/O, and the bytes of the disk that it has left wrong.
    pub(crate) fn note(&mut self, io: DamagedIo) {
        if io.op != Op::Read {
            for range in &io.wrong {
                self.add(range.clone());
            }
        }
        if self.ios.len() == IOS_MAX {
            self.ios.pop_front();
        }
        self.ios.push_back(io);
        self.total += 1;
    }

    fn add(&mut self, range: Range<u64>) {
        self.overwrite(&range);
        let mut range = range;
        let before = self.wrong.range(..range.start).next_back();
        if let Some((start, end)) = before.map(|(start, end)| (*start, *end))
            && end == range.start
        {
            self.take(start);
            range.start = start;
        }
        if let Some(end) = self.wrong.get(&range.end).copied() {
            self.take(range.end);
            range.end = end;
        }
        self.put(range);
    }

    /// Notes that a client has written these bytes, so that they are right.
    pub(crate) fn overwrite(&mut self, range: &Range<u64>) {
        let before = self.wrong.range(..range.start).next_back();
        if let Some((start, end)) = before.map(|(start, end)| (*start, *end))
            && end > range.start
        {
            if end > range.end && self.wrong.len() >= 2 * PLACES_MAX {
                self.is_inexact = true;
                return;
            }
            self.take(start);
            self.put(start..range.start);
            self.put(range.start..end);
        }
        while let Some((start, end)) = self.wrong.range(range.clone()).next() {
            let (start, end) = (*start, *end);
            self.take(start);
            self.put(range.end.max(start)..end);
        }
    }

    /// Notes that the disk's pool reads these bytes.
    pub(crate) fn read_by_pool(&mut self, range: &Range<u64>) {
        let before = self.wrong.range(..range.start).next_back();
        let places = before.into_iter().chain(self.wrong.range(range.clone()));
        let read = places.map(|(start, end)| {
            let (start, end) = (*start.max(&range.start), *end.min(&range.end));
            end.saturating_sub(start)
        });
        self.read_by_pool += read.sum::<u64>();
    }

    fn put(&mut self, range: Range<u64>) {
        if range.start < range.end {
            self.wrong_bytes += range.end - range.start;
            self.wrong.insert(range.start, range.end);
        }
    }

    fn take(&mut self, start: u64) {
        if let Some(end) = self.wrong.remove(&start) {
            self.wrong_bytes -= end - start;
        }
    }

    /// Whether more places with wrong bytes might exceed the memory for them.
    pub(crate) fn is_full(&self) -> bool {
        self.wrong.len() >= PLACES_MAX
    }

    pub(crate) fn has_wrong(&self) -> bool {
        !self.wrong.is_empty()
    }

    pub(crate) fn wrong_bytes(&self) -> u64 {
        self.wrong_bytes
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn report(&self) -> DamageReport {
        DamageReport {
            wrong: self.wrong.iter().map(|(start, end)| *start..*end).collect(),
            ios: self.ios.iter().cloned().collect(),
            total: self.total,
            is_full: self.is_full(),
            is_inexact: self.is_inexact,
            read_by_pool: self.read_by_pool,
        }
    }
}

/// What the store is to do for a damaged I/O, and what is wrong afterwards.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Where the store reads, or the part of the payload that it writes and where; `None` if it does nothing.
    pub(crate) done: Option<(u64, Range<usize>)>,
    pub(crate) wrong: SmallVec<[Range<u64>; 2]>,
    pub(crate) other: Option<u64>,
}

impl Plan {
    /// The plan for an I/O at these bytes of a disk of `size` bytes.
    pub(crate) fn of(fault: &DataFault, op: Op, offset: u64, length: u32, size: u64) -> Plan {
        let all = offset..offset + u64::from(length);
        let whole = Some((offset, 0..length as usize));
        let plain = |done, wrong| Plan {
            done,
            wrong,
            other: None,
        };
        match fault.damage {
            Damage::Drop => plain(None, smallvec![all]),
            Damage::Lie => plain(whole.filter(|_| op != Op::Flush), smallvec![]),
            Damage::Torn(unit) => {
                let stored = fault.stored(offset, length, unit);
                let part = (stored.start - offset) as usize..(stored.end - offset) as usize;
                let lost = if stored.start == offset {
                    stored.end..all.end
                } else {
                    offset..stored.start
                };
                plain(Some((stored.start, part)), smallvec![lost])
            }
            Damage::Flip => {
                let (at, _) = fault.bit(offset, length);
                plain(whole, smallvec![at..at + 1])
            }
            Damage::Zero(unit) | Damage::Random(unit) => {
                plain(whole, smallvec![fault.spot(offset, length, unit)])
            }
            // Only calls are shortened, and these have no store.
            Damage::Short => plain(whole, smallvec![]),
            Damage::Misdirect => {
                let other = fault.other_place(offset, length, size);
                let mut wrong = smallvec![all];
                if op != Op::Read {
                    wrong.extend(other.map(|at| at..at + u64::from(length)));
                }
                Plan {
                    done: other.map(|at| (at, 0..length as usize)),
                    wrong,
                    other,
                }
            }
        }
    }
}

/// Makes the bytes of an I/O at `offset` wrong.
pub(crate) fn spoil(fault: &DataFault, offset: u64, bytes: &mut [u8]) {
    let length = bytes.len() as u32;
    match fault.damage {
        Damage::Flip => {
            let (at, bit) = fault.bit(offset, length);
            bytes[(at - offset) as usize] ^= bit;
        }
        Damage::Zero(unit) | Damage::Random(unit) => {
            let spot = fault.spot(offset, length, unit);
            let spot = &mut bytes[(spot.start - offset) as usize..(spot.end - offset) as usize];
            if fault.damage == Damage::Zero(unit) {
                return spot.fill(0);
            }
            let mut random = Random::new(!fault.seed);
            for byte in spot {
                *byte ^= 1 + random.below(255) as u8;
            }
        }
        Damage::Drop | Damage::Lie | Damage::Torn(_) | Damage::Misdirect | Damage::Short => {}
    }
}

/// How many damaged I/Os of a disk are kept.
const IOS_MAX: usize = 1_000;
/// How many places with wrong bytes a disk may have.
const PLACES_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::DamageLog;
    use std::ops::Range;

    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn is_apart(places: &[Range<u64>]) -> bool {
        places.windows(2).all(|pair| pair[0].end < pair[1].start)
    }

    proptest! {
        #[test]
        fn the_map_agrees_with_a_list_of_bytes(changes in vec((any::<bool>(), 0..60_u64, 1..20_u64), 1..60)) {
            let (mut log, mut bytes) = (DamageLog::default(), [false; 80]);
            for (is_wrong, start, length) in changes {
                let range = start..start + length;
                bytes[start as usize..range.end as usize].fill(is_wrong);
                if is_wrong {
                    log.add(range);
                } else {
                    log.overwrite(&range);
                }
                let report = log.report();
                let mut found = [false; 80];
                for place in &report.wrong {
                    found[place.start as usize..place.end as usize].fill(true);
                }
                prop_assert_eq!(found, bytes);
                let count = bytes.iter().filter(|byte| **byte).count();
                prop_assert_eq!(log.wrong_bytes(), count as u64);
                assert!(is_apart(&report.wrong), "{:?}", report.wrong);
            }
        }
    }
}
