//! The waiting I/O, in two orders: within each class by turn, and across all classes by offset.

use alloc::vec::Vec;

use super::io::{Limits, Queued};
use super::sorted::Sorted;
use crate::pool::slab::Slab;
use crate::pool::stats::Class;
use crate::time::Instant;
use crate::zio::Op;

/// For a tag whose I/O is not waiting, this value takes the place of a slot.
const ABSENT: u32 = u32::MAX;
/// The value of `next` that ends a list of members.
pub(super) const END: u32 = u32::MAX;
/// The binary logarithm of a period in nanoseconds, about half a second. I/Os that arrive within one period
/// may be sorted by offset without unfairness (OpenZFS: `VDQ_T_SHIFT`).
const BUCKET_SHIFT: u32 = 29;

/// An I/O from its arrival until the disk is done with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) io: Queued,
    pub(super) queued: Instant,
    rank: u64,
    /// The next member of the picked I/O.
    pub(super) next: u32,
}

/// A place in the order of a class. I/Os of one rank are served by offset, as by an elevator. In a
/// FIFO class, each I/O has a rank of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    rank: u64,
    spot: Spot,
}

/// A place on the disk, in one integer: the offset in the high bits, then the tag and the slot of the I/O.
/// The queue compares spots more often than anything else. The tag orders I/Os with equal offsets; ZFS orders
/// such I/Os by their addresses in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spot(u128);

#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) entries: Slab<Entry>,
    /// The slot of each I/O, by its tag.
    slots: Vec<u32>,
    turns: [Sorted<Turn>; Class::ALL.len()],
    /// The I/O that can be joined: one list for reads, one for writes and zeroes, and one for writes without
    /// bytes.
    by_offset: [Sorted<Spot>; 3],
    /// How many I/Os have arrived in FIFO classes.
    arrivals: u64,
}

impl Waiting {
    /// Forgets all I/Os. Keeps the memory, because giving back the memory of many I/Os takes a long time.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.slots.clear();
        self.turns.iter_mut().for_each(Sorted::clear);
        self.by_offset.iter_mut().for_each(Sorted::clear);
        self.arrivals = 0;
    }

    pub(super) fn push(&mut self, now: Instant, io: Queued) {
        let entry = Entry {
            io,
            queued: now,
            rank: self.rank(now, io.class),
            next: END,
        };
        let slot = self.entries.insert(entry);
        self.turns[io.class as usize].insert(entry.turn(slot));
        if let Some(index) = index_of(&io) {
            self.by_offset[index].insert(entry.spot(slot));
        }
        let tag = io.tag as usize;
        if self.slots.len() <= tag {
            self.slots.resize(tag + 1, ABSENT);
        }
        self.slots[tag] = slot;
    }

    /// The next I/O of a class to serve. In a FIFO class, the next I/O is the oldest I/O. In any other
    /// class, the next I/O is an I/O of the oldest half second: the first at or above `last_end` or, if
    /// there is none, the first of all.
    pub(super) fn in_turn(&self, class: Class, last_end: u64) -> Option<u32> {
        let turns = &self.turns[class as usize];
        let oldest = turns.first()?;
        if is_fifo(class) || oldest.spot.offset() >= last_end {
            return Some(oldest.spot.slot());
        }
        let onwards = Turn {
            rank: oldest.rank,
            spot: Spot::new(last_end, 0, 0),
        };
        let next = turns.from(&onwards).next();
        let next = next.filter(|next| next.rank == oldest.rank);
        Some(next.unwrap_or(oldest).spot.slot())
    }

    /// Links the I/O in `slot` with all neighbours that can be joined with it, whatever their
    /// class. Returns the first and the last I/O of the chain (OpenZFS: `vdev_queue_aggregate`).
    pub(super) fn join(&mut self, slot: u32, limits: &Limits) -> (u32, u32) {
        let picked = self.entries[slot];
        let (mut first, mut last) = (slot, slot);
        let Some(index) = index_of(&picked.io).filter(|_| limits.aggregation_limit > 0) else {
            return (first, last);
        };
        let spot = picked.spot(slot);
        self.by_offset[index].seek(&spot);
        let by_offset = &self.by_offset[index];
        for below in by_offset.below(&spot) {
            let span = self.entries[last].io.end() - below.offset();
            if !self.adjoin(below.slot(), first, limits) || span > limits.aggregation_limit.into() {
                break;
            }
            self.entries[below.slot()].next = first;
            first = below.slot();
        }
        for above in by_offset.from(&spot).skip(1) {
            let span = self.entries[above.slot()].io.end() - self.entries[first].io.offset;
            if !self.adjoin(last, above.slot(), limits) || span > limits.aggregation_limit.into() {
                break;
            }
            self.entries[last].next = above.slot();
            last = above.slot();
        }
        (first, last)
    }

    /// Whether two I/Os have the same operation, and the second I/O begins at the end of the first, or after
    /// a small gap.
    fn adjoin(&self, first: u32, second: u32, limits: &Limits) -> bool {
        let (first, second) = (&self.entries[first].io, &self.entries[second].io);
        let gap_limit = match first.op {
            Op::Read => limits.read_gap_limit,
            _ => 0,
        };
        let gap = second.offset.checked_sub(first.end());
        first.op == second.op && gap.is_some_and(|gap| gap <= gap_limit.into())
    }

    /// Removes an I/O from the queue of its class and from the index by offset. The I/O keeps its slot.
    pub(super) fn take(&mut self, slot: u32) -> Entry {
        let entry = self.entries[slot];
        self.turns[entry.io.class as usize].remove(&entry.turn(slot));
        if let Some(index) = index_of(&entry.io) {
            self.by_offset[index].remove(&entry.spot(slot));
        }
        self.slots[entry.io.tag as usize] = ABSENT;
        entry
    }

    /// Moves the I/O in `slot` to another class.
    pub(super) fn change_class(&mut self, slot: u32, to: Class) {
        let entry = self.entries[slot];
        self.turns[entry.io.class as usize].remove(&entry.turn(slot));
        let rank = self.rank(entry.queued, to);
        let entry = &mut self.entries[slot];
        (entry.io.class, entry.rank) = (to, rank);
        self.turns[to as usize].insert(entry.turn(slot));
    }

    pub(super) fn slot_of(&self, tag: u32) -> Option<u32> {
        let slot = self.slots.get(tag as usize).copied();
        slot.filter(|slot| *slot != ABSENT)
    }

    fn rank(&mut self, queued: Instant, class: Class) -> u64 {
        if is_fifo(class) {
            self.arrivals += 1;
            return self.arrivals;
        }
        queued.as_nanos() >> BUCKET_SHIFT
    }
}

impl Entry {
    fn turn(&self, slot: u32) -> Turn {
        Turn {
            rank: self.rank,
            spot: self.spot(slot),
        }
    }

    fn spot(&self, slot: u32) -> Spot {
        Spot::new(self.io.offset, self.io.tag, slot)
    }
}

impl Spot {
    fn new(offset: u64, tag: u32, slot: u32) -> Spot {
        Spot(u128::from(offset) << 64 | u128::from(tag) << 32 | u128::from(slot))
    }

    fn offset(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn slot(self) -> u32 {
        self.0 as u32
    }
}

/// Whether a class is served in the order of arrival.
fn is_fifo(class: Class) -> bool {
    match class {
        Class::SyncRead | Class::SyncWrite | Class::Trim => true,
        Class::AsyncRead | Class::AsyncWrite => false,
    }
}

/// The index in `by_offset` of the list for this I/O, if the I/O can be joined at all.
fn index_of(io: &Queued) -> Option<usize> {
    match io.op {
        _ if io.alone => None,
        _ if io.beside => Some(2),
        Op::Read => Some(0),
        Op::Write | Op::Zero => Some(1),
        _ => None,
    }
}
