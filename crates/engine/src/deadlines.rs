//! When zios wake up: a queue of what can be told apart by nothing but time and order of issue.
//!
//! Most deadlines are set in the order in which they come due, because most rules are constants.
//! Those go to the end of a run, and are taken from its front, for next to nothing. What would
//! break the order goes to a heap. The next deadline is the earlier of the two fronts.
//!
//! A zio has one deadline at a time. One that is changed or cleared leaves its old entry in the
//! run, where it is skipped when its turn comes; the run is swept before such entries are more
//! than half of it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::heap::IndexedHeap;
use crate::time::Instant;
use crate::zio::ZioId;

#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    run: VecDeque<(Deadline, ZioId)>,
    /// Entries of the run that still stand.
    standing: usize,
    heap: IndexedHeap<Deadline>,
    /// By zio: where its deadline is.
    places: Vec<Place>,
}

/// A moment and, for those of equal moments, the order of issue: one integer, because it is
/// compared more often than anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Deadline(u128);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Run(Deadline),
    Heap,
}

impl Deadlines {
    /// Wakes a zio at `at`, and not before. One that never wakes has no deadline.
    pub(crate) fn set(&mut self, id: ZioId, order: u64, at: Instant) {
        self.clear(id);
        if at == Instant::NEVER {
            return;
        }
        let deadline = Deadline::new(at, order);
        let place = match self.run.back() {
            Some((last, _)) if *last > deadline => {
                self.heap.set(id.0, deadline);
                Place::Heap
            }
            _ => {
                self.run.push_back((deadline, id));
                self.standing += 1;
                Place::Run(deadline)
            }
        };
        self.put(id, place);
    }

    #[inline]
    pub(crate) fn clear(&mut self, id: ZioId) {
        match self.places.get_mut(id.0 as usize) {
            None | Some(Place::Nowhere) => {}
            Some(place) => match core::mem::replace(place, Place::Nowhere) {
                Place::Heap => self.heap.remove(id.0),
                _ => {
                    self.standing -= 1;
                    self.sweep();
                }
            },
        }
    }

    /// The zios of the run that are due by `by`, the soonest first, and perhaps some that were.
    pub(crate) fn due_by(&self, by: Instant) -> impl Iterator<Item = ZioId> {
        let due = move |entry: &&(Deadline, ZioId)| entry.0.at() <= by;
        self.run.iter().take_while(due).map(|(_, id)| *id)
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        let run = self.run.front().map(|(deadline, _)| *deadline);
        let heap = self.heap.peek().map(|(deadline, _)| deadline);
        let next = match (run, heap) {
            (Some(run), Some(heap)) => run.min(heap),
            (run, heap) => run.or(heap)?,
        };
        Some(next.at())
    }

    /// A zio whose deadline has come; it has none from then on.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<ZioId> {
        if self.next()? > now {
            return None;
        }
        let from_heap = match (self.run.front(), self.heap.peek()) {
            (Some((run, _)), Some((heap, _))) => heap < *run,
            (run, _) => run.is_none(),
        };
        let id = match from_heap {
            true => ZioId(self.heap.peek()?.1),
            false => self.run.front()?.1,
        };
        self.clear(id);
        Some(id)
    }

    /// Keeps the front of the run standing, and most of the rest.
    fn sweep(&mut self) {
        while let Some((deadline, id)) = self.run.front() {
            if self.place(*id) == Place::Run(*deadline) {
                break;
            }
            self.run.pop_front();
        }
        if self.run.len() > 2 * self.standing + SWEEP_ABOVE {
            let places = &self.places;
            self.run
                .retain(|(deadline, id)| places[id.0 as usize] == Place::Run(*deadline));
        }
    }

    fn place(&self, id: ZioId) -> Place {
        self.places
            .get(id.0 as usize)
            .copied()
            .unwrap_or(Place::Nowhere)
    }

    fn put(&mut self, id: ZioId, place: Place) {
        let index = id.0 as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, Place::Nowhere);
        }
        self.places[index] = place;
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

/// A run that is shorter is not worth sweeping.
const SWEEP_ABOVE: usize = 64;

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
            assert_eq!(deadlines.next(), next);
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
        assert!(lengths.iter().all(|length| *length <= SWEEP_ABOVE + 5));
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
