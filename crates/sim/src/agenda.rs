//! The agenda: all future events of disks, workloads and the scenario.
//!
//! Most events are added in the order in which they fall due, because most sources of events have a constant
//! delay. The agenda therefore has several runs, which are sorted queues, and a heap. An entry goes to the
//! end of the first run whose last entry is not later, or else to the heap. The next event is the earliest
//! entry at the front of a run or of the heap. An entry that fits into a run costs almost nothing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use dashpot_engine::{Instant, ZioId};

/// An event of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    /// A disk has finished a zio.
    Done { zio: ZioId, disk: u32 },
    /// The scenario's command with this index is due.
    Command(u32),
    /// A workload's connection is lost.
    Disconnect(u32),
    /// A thread begins its next call.
    Turn { workload: u32, thread: u32 },
    /// A call reaches its client's link to the lab.
    Link(u32),
    /// A call reaches the lab.
    Submit(u32),
    /// A call's reply reaches its client.
    Reply(u32),
    /// The state must be sampled.
    Sample,
}

impl Happening {
    /// The order at equal times: events of disks, then of the scenario's commands, then of its clients, then
    /// samples. Within a class, entries keep the order in which they were added.
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

/// All future events.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    runs: [VecDeque<Entry>; RUNS],
    heap: BinaryHeap<Reverse<Entry>>,
    /// How many entries have been added so far.
    order: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Time, class and order in one integer, so that the most frequent comparison is fast.
    key: u128,
    happening: Happening,
}

impl Agenda {
    /// Adds an event that probably comes after the last event of a run.
    pub(crate) fn set(&mut self, at: Instant, happening: Happening) {
        let entry = self.entry(at, happening);
        let fits = |run: &&mut VecDeque<Entry>| run.back().is_none_or(|last| *last < entry);
        match self.runs.iter_mut().find(fits) {
            Some(run) => run.push_back(entry),
            None => self.heap.push(Reverse(entry)),
        }
    }

    /// Adds a rare event. It goes to the heap: at the end of a run, it would keep all events that are due
    /// before it out of that run.
    pub(crate) fn set_rare(&mut self, at: Instant, happening: Happening) {
        let entry = self.entry(at, happening);
        self.heap.push(Reverse(entry));
    }

    /// The time of the next event.
    pub(crate) fn next(&self) -> Option<Instant> {
        let (key, _) = self.first()?;
        Some(Instant::from_nanos((key >> 64) as u64))
    }

    /// Takes the next event.
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

/// One run for the disks, one for each kind of wait of a client, and a spare one.
const RUNS: usize = 4;
/// The lowest bit of the class in a key. The bits below it hold the order.
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
                // The delay is mostly one of three values, but sometimes random.
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
