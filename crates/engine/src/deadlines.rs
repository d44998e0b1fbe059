//! When zios wake up: a queue of what can be told apart by nothing but time and order of issue.
//!
//! Most deadlines are set in the order in which they come due, because most rules are constants.
//! Those go to the end of a run, and are taken from its front, for next to nothing. What would
//! break the order goes to a heap. The next deadline is the earlier of the two fronts.
//!
//! A zio has one deadline at a time. One that is changed or cleared leaves a gap in the run, which
//! is skipped when its turn comes; the run is swept when gaps are more than half of it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::heap::IndexedHeap;
use crate::time::Instant;
use crate::zio::ZioId;

#[derive(Debug)]
pub(crate) struct Deadlines {
    /// The earliest of all, kept because every step asks for it; [`Instant::NEVER`] of none.
    next: Instant,
    /// `None` is a gap. There is none in front.
    run: VecDeque<(Deadline, Option<ZioId>)>,
    /// How many have left the front of the run: the turn of the one that is there.
    turn: u64,
    /// Gaps in the run.
    gaps: usize,
    heap: IndexedHeap<Deadline>,
    /// By zio: where its deadline is.
    places: Vec<Place>,
    /// Zios issued so far.
    issued: u64,
}

/// A moment and, for those of equal moments, the order of issue: one integer, because it is
/// compared more often than anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Deadline(u128);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    /// In the run, with this turn.
    Run(u64),
    Heap,
}

impl Deadlines {
    /// The next number in the order of issue.
    pub(crate) fn next_order(&mut self) -> u64 {
        self.issued += 1;
        self.issued
    }

    /// Wakes a zio at `at`, and not before. One that never wakes has no deadline.
    pub(crate) fn set(&mut self, id: ZioId, order: u64, at: Instant) {
        self.clear(id);
        if at == Instant::NEVER {
            return;
        }
        let deadline = Deadline::new(at, order);
        self.next = self.next.min(at);
        let place = match self.run.back() {
            Some((last, _)) if *last > deadline => {
                self.heap.set(id.0, deadline);
                Place::Heap
            }
            _ => {
                self.run.push_back((deadline, Some(id)));
                Place::Run(self.turn + self.run.len() as u64 - 1)
            }
        };
        self.put(id, place);
    }

    #[inline]
    pub(crate) fn clear(&mut self, id: ZioId) {
        match self.places.get(id.0 as usize) {
            None | Some(Place::Nowhere) => {}
            Some(place) => self.clear_at(*place, id),
        }
    }

    /// The earliest deadline, or [`Instant::NEVER`].
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// A zio whose deadline has come; it has none from then on.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<ZioId> {
        if self.next > now {
            return None;
        }
        let id = match (self.run.front(), self.heap.peek()) {
            (Some((run, id)), heap) if heap.is_none_or(|(heap, _)| *run < heap) => (*id)?,
            (_, heap) => ZioId(heap?.1),
        };
        self.clear(id);
        Some(id)
    }

    fn clear_at(&mut self, place: Place, id: ZioId) {
        self.put(id, Place::Nowhere);
        match place {
            Place::Nowhere => {}
            Place::Heap => self.heap.remove(id.0),
            Place::Run(turn) => {
                self.run[(turn - self.turn) as usize].1 = None;
                self.gaps += 1;
                self.sweep();
            }
        }
        self.next = self.earliest();
    }

    fn earliest(&self) -> Instant {
        let run = self.run.front().map(|(deadline, _)| deadline.at());
        let heap = self.heap.peek().map(|(deadline, _)| deadline.at());
        let (run, heap) = (
            run.unwrap_or(Instant::NEVER),
            heap.unwrap_or(Instant::NEVER),
        );
        run.min(heap)
    }

    /// Takes the gaps away that are in front, and all if they are most of the run.
    fn sweep(&mut self) {
        while let Some((_, None)) = self.run.front() {
            self.run.pop_front();
            self.turn += 1;
            self.gaps -= 1;
        }
        if self.gaps > self.run.len() / 2 + SWEEP_ABOVE {
            self.run.retain(|(_, id)| id.is_some());
            self.gaps = 0;
            for (turn, (_, id)) in (self.turn..).zip(&self.run) {
                if let Some(id) = id {
                    self.places[id.0 as usize] = Place::Run(turn);
                }
            }
        }
    }

    fn put(&mut self, id: ZioId, place: Place) {
        let index = id.0 as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, Place::Nowhere);
        }
        self.places[index] = place;
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            next: Instant::NEVER,
            run: VecDeque::new(),
            turn: 0,
            gaps: 0,
            heap: IndexedHeap::default(),
            places: Vec::new(),
            issued: 0,
        }
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

/// Fewer gaps are not worth sweeping for.
const SWEEP_ABOVE: usize = 32;

#[cfg(test)]
mod tests {
    use super::{Deadlines, SWEEP_ABOVE};
    use crate::random::Random;
    use crate::time::Instant;
    use crate::zio::ZioId;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    /// The zio that is to wake first, by looking at all of them.
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
                // Mostly in order, now and then not.
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
    fn what_was_cleared_does_not_pile_up() {
        let mut deadlines = Deadlines::default();
        deadlines.set(ZioId(0), 0, Instant::from_nanos(1));
        let lengths: Vec<usize> = (1..10_000)
            .map(|order| {
                deadlines.set(ZioId(1), order, Instant::from_nanos(1_000_000 + order));
                deadlines.run.len()
            })
            .collect();
        assert!(lengths.iter().all(|length| *length <= 2 * SWEEP_ABOVE + 5));
    }
}
