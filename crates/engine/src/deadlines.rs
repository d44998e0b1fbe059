//! The deadlines of zios: a queue ordered by time, and by order of issue for equal times.
//!
//! Most rules hold zios for a constant time, so most deadlines are set in the order in which they fall due.
//! The engine appends each new deadline to a list, called the run, if it is not earlier than the last
//! deadline in the run. Appending a deadline to the run and taking one from its front cost almost nothing. A
//! deadline that would break the order of the run goes to a heap. The next deadline is the earlier of the
//! first deadline in the run and the first deadline in the heap.
//!
//! The run is a linked list of zios, so that a deadline can also be taken out of the middle. A zio
//! has one deadline at a time.

use alloc::vec::Vec;

use crate::heap::IndexedHeap;
use crate::time::Instant;
use crate::zio::ZioId;

#[derive(Debug)]
pub(crate) struct Deadlines {
    /// The earliest deadline, kept because every step asks for it. [`Instant::NEVER`] if there is no
    /// deadline.
    next: Instant,
    /// The first zio of the run.
    first: u32,
    /// The last zio of the run.
    last: u32,
    heap: IndexedHeap<Deadline>,
    /// The entry of each zio, by its id.
    entries: Vec<Entry>,
    /// The number of zios issued so far.
    issued: u64,
}

/// A deadline in one integer, with the moment in the high bits and the order of issue in the low bits. One
/// integer makes comparisons fast, and the engine compares deadlines more often than anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Deadline(u128);

#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Filed,
    /// The deadline of the zio, in two fields, because one integer would need a larger alignment.
    at: Instant,
    order: u64,
    ahead: u32,
    behind: u32,
}

/// The place of a zio's deadline.
#[derive(Clone, Copy, Debug)]
enum Filed {
    Nowhere,
    Run,
    Heap,
}

impl Deadlines {
    /// The next number in the order of issue.
    pub(crate) fn next_order(&mut self) -> u64 {
        self.issued += 1;
        self.issued
    }

    /// Sets the deadline of a zio: the zio wakes at `at`, and not before. If `at` is [`Instant::NEVER`],
    /// the zio gets no deadline.
    pub(crate) fn set(&mut self, id: ZioId, order: u64, at: Instant) {
        self.clear(id);
        if at == Instant::NEVER {
            return;
        }
        let index = id.0 as usize;
        if self.entries.len() <= index {
            self.entries.resize(index + 1, Entry::NOWHERE);
        }
        self.next = self.next.min(at);
        let deadline = Deadline::new(at, order);
        match self.entries.get(self.last as usize) {
            Some(last) if last.deadline() > deadline => {
                self.heap.set(id.0, deadline);
                self.entries[index].place = Filed::Heap;
            }
            _ => self.append(id.0, order, at),
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self, id: ZioId) {
        match self.entries.get(id.0 as usize).map(|entry| entry.place) {
            None | Some(Filed::Nowhere) => {}
            Some(place) => self.take(id.0, place),
        }
    }

    /// The earliest deadline, or [`Instant::NEVER`].
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// The zios of the run that are due by `by`, the soonest first.
    pub(crate) fn due_by(&self, by: Instant) -> impl Iterator<Item = ZioId> {
        let entry = |id: u32| self.entries.get(id as usize);
        let behind = move |id: &u32| entry(*id).map(|entry| entry.behind);
        let run = core::iter::successors(Some(self.first), behind);
        run.take_while(move |id| entry(*id).is_some_and(|entry| entry.at <= by))
            .map(ZioId)
    }

    /// Takes out a zio that is due, which then has no deadline.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<ZioId> {
        if self.next > now {
            return None;
        }
        let run = self.entries.get(self.first as usize);
        let (id, place) = match (run.map(Entry::deadline), self.heap.peek()) {
            (Some(run), heap) if heap.is_none_or(|(heap, _)| run < heap) => {
                (self.first, Filed::Run)
            }
            (_, heap) => (heap?.1, Filed::Heap),
        };
        self.take(id, place);
        Some(ZioId(id))
    }

    fn take(&mut self, id: u32, place: Filed) {
        match place {
            Filed::Nowhere => {}
            Filed::Run => self.unlink(id),
            Filed::Heap => self.heap.remove(id),
        }
        self.entries[id as usize].place = Filed::Nowhere;
        self.next = self.earliest();
    }

    fn earliest(&self) -> Instant {
        let run = self.entries.get(self.first as usize);
        let run = run.map_or(Instant::NEVER, |entry| entry.at);
        let heap = self.heap.peek();
        run.min(heap.map_or(Instant::NEVER, |(deadline, _)| deadline.at()))
    }

    /// Puts a deadline at the end of the run.
    #[inline]
    fn append(&mut self, id: u32, order: u64, at: Instant) {
        self.entries[id as usize] = Entry {
            place: Filed::Run,
            at,
            order,
            ahead: self.last,
            behind: NOBODY,
        };
        match self.entries.get_mut(self.last as usize) {
            Some(last) => last.behind = id,
            None => self.first = id,
        }
        self.last = id;
    }

    /// Takes a deadline out of the run.
    fn unlink(&mut self, id: u32) {
        let Entry { ahead, behind, .. } = self.entries[id as usize];
        match self.entries.get_mut(ahead as usize) {
            Some(entry) => entry.behind = behind,
            None => self.first = behind,
        }
        match self.entries.get_mut(behind as usize) {
            Some(entry) => entry.ahead = ahead,
            None => self.last = ahead,
        }
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            next: Instant::NEVER,
            first: NOBODY,
            last: NOBODY,
            heap: IndexedHeap::default(),
            entries: Vec::new(),
            issued: 0,
        }
    }
}

impl Entry {
    const NOWHERE: Entry = Entry {
        place: Filed::Nowhere,
        at: Instant::NEVER,
        order: 0,
        ahead: NOBODY,
        behind: NOBODY,
    };

    fn deadline(&self) -> Deadline {
        Deadline::new(self.at, self.order)
    }
}

impl Deadline {
    fn new(at: Instant, order: u64) -> Deadline {
        Deadline(u128::from(at.as_nanos()) << 64 | u128::from(order))
    }

    fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }
}

/// Stands for no zio. The number is larger than every id, so no entry has this number.
const NOBODY: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::Deadlines;
    use crate::random::Random;
    use crate::time::Instant;
    use crate::zio::ZioId;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    /// The zio that wakes first, found by a search over all zios.
    fn first(all: &BTreeMap<u32, (u64, u64)>) -> Option<(u64, u32)> {
        let least = all.iter().min_by_key(|(_, key)| **key)?;
        Some((least.1.0, *least.0))
    }

    #[test]
    fn it_agrees_with_a_search_over_random_changes() {
        let mut random = Random::new(3);
        let (mut deadlines, mut all) = (Deadlines::default(), BTreeMap::new());
        for order in 0..50_000 {
            let id = random.below(40) as u32;
            match random.below(4) {
                0 => {
                    deadlines.clear(ZioId(id));
                    all.remove(&id);
                }
                // The deadlines are mostly in order, but not always.
                1 | 2 => {
                    let at = order / 4 + random.below(2) * random.below(20);
                    deadlines.set(ZioId(id), order, Instant::from_nanos(at));
                    all.insert(id, (at, order));
                }
                _ => {
                    let due = first(&all).filter(|(at, _)| *at <= order / 4 + 5);
                    let now = Instant::from_nanos(order / 4 + 5);
                    assert_eq!(deadlines.pop_due(now), due.map(|(_, id)| ZioId(id)));
                    due.map(|(_, id)| all.remove(&id));
                }
            }
            let next = first(&all).map(|(at, _)| Instant::from_nanos(at));
            assert_eq!(deadlines.next(), next.unwrap_or(Instant::NEVER));
        }
    }

    #[test]
    fn what_is_due_soon_is_named_in_its_order() {
        let mut deadlines = Deadlines::default();
        for (id, at) in [(4, 10), (2, 20), (3, 20), (1, 30)] {
            deadlines.set(ZioId(id), u64::from(id), Instant::from_nanos(at));
        }
        let due: Vec<ZioId> = deadlines.due_by(Instant::from_nanos(20)).collect();
        assert_eq!(due, [ZioId(4), ZioId(2), ZioId(3)]);
        assert_eq!(deadlines.due_by(Instant::from_nanos(9)).count(), 0);
    }
}
