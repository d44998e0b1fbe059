//! What happens next: everything that disks, workloads and the scenario have in store.
//!
//! Most times are set in the order in which they come due, because most delays are constants, one
//! for each source. An entry goes to the end of the first run whose last entry is not after it, and
//! what fits none goes to a heap; what comes next is the least of their fronts. As in the engine's
//! deadlines this costs next to nothing while the runs suffice.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use dashpot_engine::{Instant, ZioId};

/// Something that happens at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    /// A disk has done its work.
    Done {
        /// What for.
        zio: ZioId,
        /// Which disk.
        disk: u32,
    },
    /// A command of the scenario, by its place.
    Command(u32),
    /// A workload's connection is lost.
    Disconnect(u32),
    /// It is a thread's turn to begin a call.
    Turn {
        /// The workload.
        workload: u32,
        /// Which of its threads.
        thread: u32,
    },
    /// A call reaches its link.
    Link(u32),
    /// A call reaches the lab.
    Submit(u32),
    /// A call's reply reaches its client.
    Reply(u32),
    /// The state is noted.
    Sample,
}

impl Happening {
    /// What comes first at equal times: disks, then what the scenario does, then its clients, then
    /// who looks at all that. Among equals it is the order in which they were set.
    fn class(self) -> u64 {
        match self {
            Happening::Done { .. } => 0,
            Happening::Command(_) | Happening::Disconnect(_) => 1,
            Happening::Turn { .. }
            | Happening::Link(_)
            | Happening::Submit(_)
            | Happening::Reply(_) => 2,
            Happening::Sample => 3,
        }
    }
}

/// All happenings to come.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    runs: [VecDeque<Entry>; RUNS],
    heap: BinaryHeap<Reverse<Entry>>,
    /// Entries so far.
    order: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Time, class and order in one integer, because it is compared more often than anything else.
    key: u128,
    happening: Happening,
}

impl Agenda {
    /// Sets what is likely to come in order.
    pub(crate) fn set(&mut self, at: Instant, happening: Happening) {
        let entry = self.entry(at, happening);
        let fits = |run: &&mut VecDeque<Entry>| run.back().is_none_or(|last| *last < entry);
        match self.runs.iter_mut().find(fits) {
            Some(run) => run.push_back(entry),
            None => self.heap.push(Reverse(entry)),
        }
    }

    /// Sets what is rare, and would keep what is frequent out of a run.
    pub(crate) fn set_rare(&mut self, at: Instant, happening: Happening) {
        let entry = self.entry(at, happening);
        self.heap.push(Reverse(entry));
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Instant> {
        let (key, _) = self.first()?;
        Some(Instant::from_nanos((key >> 64) as u64))
    }

    /// Takes what happens next.
    pub(crate) fn pop(&mut self) -> Option<Happening> {
        let (_, front) = self.first()?;
        let entry = match front {
            Front::Run(run) => self.runs[run].pop_front(),
            Front::Heap => self.heap.pop().map(|Reverse(entry)| entry),
        };
        entry.map(|entry| entry.happening)
    }

    fn entry(&mut self, at: Instant, happening: Happening) -> Entry {
        self.order += 1;
        let key = u128::from(at.as_nanos()) << 64
            | u128::from(happening.class()) << CLASS_SHIFT
            | u128::from(self.order);
        Entry { key, happening }
    }

    fn first(&self) -> Option<(u128, Front)> {
        let mut first = self
            .heap
            .peek()
            .map(|Reverse(entry)| (entry.key, Front::Heap));
        for (at, run) in self.runs.iter().enumerate() {
            if let Some(entry) = run.front()
                && first.is_none_or(|(least, _)| entry.key < least)
            {
                first = Some((entry.key, Front::Run(at)));
            }
        }
        first
    }
}

#[derive(Clone, Copy, Debug)]
enum Front {
    Run(usize),
    Heap,
}

/// One for the disks and one for each of what clients wait for, with one to spare.
const RUNS: usize = 4;
/// The order of entries has the bits below.
const CLASS_SHIFT: u32 = 62;

#[cfg(test)]
mod tests {
    use super::{Agenda, Happening};
    use dashpot_engine::{Instant, Random, ZioId};

    #[test]
    fn it_agrees_with_a_sorted_list_over_random_changes() {
        let mut random = Random::new(3);
        let (mut agenda, mut list, mut now) = (Agenda::default(), Vec::new(), 0);
        for order in 0..50_000_u32 {
            if random.below(2) == 0 || list.is_empty() {
                // Mostly one of three delays, now and then another.
                let delay = [5, 20, 100, random.below(60)][random.below(4) as usize];
                let happening = match random.below(3) {
                    0 => Happening::Done {
                        zio: ZioId(order),
                        disk: 0,
                    },
                    1 => Happening::Submit(order),
                    _ => Happening::Sample,
                };
                agenda.set(Instant::from_nanos(now + delay), happening);
                list.push((now + delay, happening.class(), order, happening));
                continue;
            }
            let least = list.iter().copied().min().unwrap();
            list.retain(|entry| *entry != least);
            now = least.0;
            assert_eq!(agenda.next(), Some(Instant::from_nanos(now)));
            assert_eq!(agenda.pop(), Some(least.3));
        }
    }
}
