//! Compares chunks with a naive map of the bytes that each must contain, and checks how much memory the
//! chunks hold.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::{Strategy, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::{CHUNK, CHUNKS_PER_GROUP, CHUNKS_PER_SLAB, Chunk, FEW, Slabs};

const GROUP: usize = CHUNKS_PER_GROUP as usize;

/// The chunks in use, by their user's number, each with the byte that it must contain.
#[derive(Default)]
struct Users {
    slabs: Slabs,
    chunks: BTreeMap<u64, (Chunk, u8)>,
    next: u64,
}

/// The offsets, within a chunk, of the bytes that the tests write and read.
const PLACES: [usize; 3] = [0, CHUNK as usize / 2 + 1, CHUNK as usize - 1];

impl Users {
    /// Takes a chunk and writes to it. Returns false if the chunk was not all zeroes before.
    fn take(&mut self) -> bool {
        let mut chunk = self.slabs.take(self.next);
        let byte = (self.next % 251) as u8 + 1;
        let bytes = self.slabs.bytes_mut(&mut chunk);
        let was_zero = PLACES.iter().all(|at| bytes[*at] == 0);
        for at in PLACES {
            bytes[at] = byte;
        }
        self.chunks.insert(self.next, (chunk, byte));
        self.next += 1;
        was_zero
    }

    /// Gives back the chunks that `which` selects. `which` gets the place of a chunk in the order of the
    /// users' numbers.
    fn give(&mut self, which: impl Fn(usize) -> bool) {
        let all: Vec<u64> = self.chunks.keys().copied().collect();
        for (_, user) in all.iter().enumerate().filter(|(at, _)| which(*at)) {
            let (chunk, _) = self.chunks.remove(user).unwrap();
            self.slabs.give(chunk);
        }
        let chunks = &mut self.chunks;
        self.slabs
            .tighten(|user, chunk| chunks.get_mut(&user).unwrap().0 = chunk);
    }

    fn are_whole(&self) -> bool {
        self.chunks.values().all(|(chunk, byte)| {
            let bytes = self.slabs.bytes(chunk);
            PLACES.iter().all(|at| bytes[*at] == *byte)
        })
    }

    /// How many chunks have memory, because a chunk of their group is in use.
    fn held(&self) -> usize {
        let mut groups: Vec<_> = self
            .chunks
            .values()
            .map(|(chunk, _)| chunk.group())
            .collect();
        groups.sort_unstable();
        groups.dedup();
        groups.len() * GROUP
    }

    /// Whether all groups without a chunk in use read as zeroes, as memory does after it was given back.
    fn rest_is_zero(&self) -> bool {
        let per_slab = (CHUNKS_PER_SLAB / CHUNKS_PER_GROUP) as usize;
        let unused =
            (0..self.slabs.groups.len()).filter(|group| self.slabs.groups[*group].used == 0);
        unused.into_iter().all(|group| {
            let chunks = group % per_slab * GROUP..(group % per_slab + 1) * GROUP;
            let slab = &self.slabs.slabs[group / per_slab];
            chunks.into_iter().all(|chunk| {
                PLACES
                    .iter()
                    .all(|at| slab[chunk * CHUNK as usize + at] == 0)
            })
        })
    }
}

#[derive(Clone, Debug)]
enum Step {
    Take(usize),
    /// From a given place on, gives back all chunks except those whose place is a multiple of n.
    Thin(usize, usize),
    /// Gives back every n-th chunk.
    Riddle(usize),
    /// Gives back a range of the chunks. The bounds of the range are percentages of all chunks in use.
    Cut(Range<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..600_usize).prop_map(Step::Take),
        1 => (2..40_usize, 0..300_usize).prop_map(|(nth, from)| Step::Thin(nth, from)),
        1 => (1..40_usize).prop_map(Step::Riddle),
        1 => (0..100_usize, 1..60_usize).prop_map(|(from, more)| Step::Cut(from..from + more)),
    ]
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(48))]
    #[test]
    fn bytes_stay_and_little_more_than_they_is_held(steps in proptest::collection::vec(step(), 1..12)) {
        let mut users = Users::default();
        for step in steps {
            let count = users.chunks.len();
            match step {
                Step::Take(more) => {
                    for _ in 0..more {
                        prop_assert!(users.take());
                    }
                }
                Step::Thin(nth, from) => users.give(|at| at >= from && at % nth != 0),
                Step::Riddle(nth) => users.give(|at| at % nth == 0),
                Step::Cut(percent) => users.give(|at| percent.contains(&(at * 100 / count))),
            }
            prop_assert!(users.are_whole());
            prop_assert!(users.rest_is_zero());
            prop_assert_eq!(users.slabs.in_use, users.chunks.len());
            prop_assert_eq!(users.slabs.held * GROUP, users.held());
            let in_use = users.chunks.len();
            prop_assert!(users.held() - in_use <= FEW.max(in_use / 8), "{} held for {in_use}", users.held());
        }
    }
}

#[test]
fn with_the_last_chunk_the_mappings_go() {
    let mut users = Users::default();
    assert!((0..=CHUNKS_PER_SLAB).all(|_| users.take()));
    assert_eq!(users.slabs.slabs.len(), 2);
    users.give(|_| true);
    assert_eq!(users.slabs.slabs.len(), 0);
    assert!(users.take());
}

#[test]
fn chunks_that_are_given_one_by_one_move_at_most_seven_others_each() {
    let mut users = Users::default();
    assert!((0..8 * GROUP).all(|_| users.take()));
    assert!((0..64 * GROUP).all(|_| users.take()));
    let (mut given, mut moves) = (0, 0);
    while let Some(user) = users
        .chunks
        .keys()
        .nth(given * 31 % users.chunks.len().max(1))
        .copied()
    {
        users.slabs.give(users.chunks.remove(&user).unwrap().0);
        given += 1;
        let chunks = &mut users.chunks;
        users.slabs.tighten(|user, chunk| {
            moves += 1;
            chunks.get_mut(&user).unwrap().0 = chunk;
        });
        assert!(moves <= 7 * given, "{moves} moves for {given}");
    }
    assert!(users.are_whole());
}

#[test]
fn memory_that_has_come_and_is_not_needed_goes_back() {
    let mut users = Users::default();
    (0..GROUP).for_each(|_| _ = users.take());
    users.slabs.restock();
    assert_eq!(users.slabs.asked, 1);
    // The filler drops its share of the list once the memory has come.
    let ready = users.slabs.ready.clone().unwrap();
    while Arc::strong_count(&ready) > 2 {
        std::thread::yield_now();
    }
    users.give(|_| false);
    assert_eq!(users.slabs.asked, 0);
    assert!(users.slabs.empty() <= 1);
}
