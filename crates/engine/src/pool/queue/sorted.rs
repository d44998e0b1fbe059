//! A sorted list for keys that mostly come and go side by side.
//!
//! A queue is filled in the order of offsets, emptied in that order, and searched for neighbours in
//! between. The keys lie in chunks; what follows the last change finds its chunk without a search,
//! and its place at an end of it. Anything else costs two binary searches and half a chunk's move.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Keys in a chunk that is full.
const FULL: usize = 128;

#[derive(Debug)]
pub(super) struct Sorted<K> {
    /// In order; none is empty.
    chunks: VecDeque<Chunk<K>>,
    /// Emptied ones, for the next that is needed.
    spare: Vec<Vec<K>>,
    /// Where the last change was.
    finger: usize,
}

#[derive(Debug)]
struct Chunk<K> {
    /// Its keys are not below this one, those of the chunk before are.
    low: K,
    /// Those from `begin` on are in the list. They leave from the front without a move.
    keys: Vec<K>,
    begin: usize,
}

impl<K: Copy + Ord> Sorted<K> {
    pub(super) fn first(&self) -> Option<K> {
        self.chunks.front()?.live().first().copied()
    }

    /// The keys that are not below `key`, upwards.
    #[inline]
    pub(super) fn from(&self, key: &K) -> impl Iterator<Item = K> {
        let at = self.chunk_of(key);
        let here = self
            .chunks
            .get(at)
            .map(|chunk| &chunk.keys[chunk.place_of(key)..]);
        let rest = self.chunks.range(self.chunks.len().min(at + 1)..);
        let rest = rest.flat_map(|chunk| chunk.live());
        here.unwrap_or_default().iter().chain(rest).copied()
    }

    /// The keys below `key`, downwards.
    #[inline]
    pub(super) fn below(&self, key: &K) -> impl Iterator<Item = K> {
        let at = self.chunk_of(key);
        let here = self
            .chunks
            .get(at)
            .map(|chunk| &chunk.keys[chunk.begin..chunk.place_of(key)]);
        let rest = self.chunks.range(..at).rev();
        let rest = rest.flat_map(|chunk| chunk.live().iter().rev());
        here.unwrap_or_default().iter().rev().chain(rest).copied()
    }

    /// Puts a key in that is not there.
    #[inline]
    pub(super) fn insert(&mut self, key: K) {
        let at = self.chunk_of(&key);
        match self.chunks.get_mut(at) {
            Some(chunk) if chunk.keys.len() < FULL => {
                chunk.insert(key);
                self.finger = at;
            }
            _ => self.insert_after_split(at, key),
        }
    }

    /// Takes a key out that is there.
    #[inline]
    pub(super) fn remove(&mut self, key: &K) {
        let at = self.chunk_of(key);
        let Some(chunk) = self.chunks.get_mut(at) else {
            return;
        };
        self.finger = at;
        if chunk.remove(key) {
            self.drop_chunk(at);
        }
    }

    /// The last chunk that begins at or below `key`, or else the first.
    #[inline]
    fn chunk_of(&self, key: &K) -> usize {
        let begins_above = |at| self.chunks.get(at).is_none_or(|chunk| chunk.low > *key);
        if !begins_above(self.finger) && begins_above(self.finger + 1) {
            return self.finger;
        }
        let above = self.chunks.partition_point(|chunk| chunk.low <= *key);
        above.saturating_sub(1)
    }

    /// Inserts where there is no room. A key above all of its chunk begins one, so that the chunks
    /// of an ascending series are left full.
    fn insert_after_split(&mut self, at: usize, key: K) {
        let mut upper = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(FULL));
        upper.clear();
        let Some(chunk) = self.chunks.get_mut(at) else {
            upper.push(key);
            self.chunks.push_back(Chunk::new(upper));
            return;
        };
        let place = chunk.place_of(&key);
        let cut = match place {
            FULL => FULL,
            _ => chunk.begin.midpoint(FULL),
        };
        upper.extend(chunk.keys.drain(cut..));
        if place >= cut {
            upper.insert(place - cut, key);
        } else {
            chunk.insert(key);
        }
        self.chunks.insert(at + 1, Chunk::new(upper));
        self.finger = at + usize::from(place >= cut);
    }

    fn drop_chunk(&mut self, at: usize) {
        let emptied = self.chunks.remove(at);
        self.spare.extend(emptied.map(|chunk| chunk.keys));
    }
}

impl<K: Copy + Ord> Chunk<K> {
    fn new(keys: Vec<K>) -> Chunk<K> {
        Chunk {
            low: keys[0],
            keys,
            begin: 0,
        }
    }

    fn live(&self) -> &[K] {
        &self.keys[self.begin..]
    }

    /// Where a key is or belongs.
    #[inline]
    fn place_of(&self, key: &K) -> usize {
        let live = self.live();
        let place = match (live.first(), live.last()) {
            (Some(first), _) if key <= first => 0,
            (_, Some(last)) if key > last => live.len(),
            _ => live.partition_point(|other| other < key),
        };
        self.begin + place
    }

    #[inline]
    fn insert(&mut self, key: K) {
        self.keys.insert(self.place_of(&key), key);
        self.low = self.low.min(key);
    }

    /// Whether the chunk is empty now.
    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        let place = self.place_of(key);
        debug_assert!(self.keys.get(place) == Some(key));
        if place == self.begin {
            self.begin += 1;
        } else {
            self.keys.remove(place);
        }
        self.begin == self.keys.len()
    }
}

impl<K> Default for Sorted<K> {
    fn default() -> Self {
        Sorted {
            chunks: VecDeque::new(),
            spare: Vec::new(),
            finger: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FULL, Sorted};
    use crate::random::Random;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    /// What a set and the list say around a key.
    fn compare(sorted: &Sorted<u64>, set: &BTreeSet<u64>, key: u64) {
        assert_eq!(sorted.first(), set.first().copied());
        let up: Vec<u64> = sorted.from(&key).take(FULL).collect();
        assert!(up.iter().eq(set.range(key..).take(FULL)));
        let down: Vec<u64> = sorted.below(&key).take(FULL).collect();
        assert!(down.iter().eq(set.range(..key).rev().take(FULL)));
    }

    #[test]
    fn it_agrees_with_a_set_over_random_changes() {
        let mut random = Random::new(5);
        let (mut sorted, mut set) = (Sorted::default(), BTreeSet::new());
        let mut near = 0;
        for step in 0..60_000_u64 {
            // Mostly beside the one before; it grows for a while, then shrinks.
            near = match random.below(8) {
                0 => random.below(5_000),
                _ => near + random.below(3),
            };
            if random.below(8) < 3 + 2 * (step / 10_000 % 2) {
                if set.insert(near) {
                    sorted.insert(near);
                }
            } else if let Some(key) = set.range(near..).next().copied() {
                set.remove(&key);
                sorted.remove(&key);
            }
            if step % 16 == 0 {
                compare(&sorted, &set, random.below(5_000));
            }
        }
    }

    #[test]
    fn an_ascending_series_leaves_its_chunks_full() {
        let mut sorted = Sorted::default();
        for key in 0..10 * FULL {
            sorted.insert(key);
        }
        assert_eq!(sorted.chunks.len(), 10);
    }
}
