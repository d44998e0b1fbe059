//! A sorted list for keys that are mostly inserted and removed next to the previous change.
//!
//! A queue is filled in the order of offsets, emptied in that order, and searched for neighbours in between.
//! The keys lie in chunks, and a finger marks the last change. The next change is usually at the finger, or
//! at an end of a chunk. Any other change costs two binary searches, and moves half a chunk.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The number of keys in a full chunk.
const FULL: usize = 128;

#[derive(Debug)]
pub(super) struct Sorted<K> {
    /// The chunks in order. No chunk is empty.
    chunks: VecDeque<Chunk<K>>,
    /// Empty buffers, kept for new chunks.
    spare: Vec<Vec<K>>,
    finger: Position,
}

/// The place of a key: the chunk, and the index among its live keys.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    chunk: usize,
    index: usize,
}

#[derive(Debug)]
struct Chunk<K> {
    /// A lower bound of the chunk's keys. This bound is above all keys of the previous chunk.
    low: K,
    /// The keys, of which those before `begin` have been removed.
    keys: Vec<K>,
    /// The index of the first live key. When this key is removed, `begin` grows, and no other key moves.
    begin: usize,
}

impl<K: Copy + Ord> Sorted<K> {
    /// Removes all keys. Keeps the memory.
    pub(super) fn clear(&mut self) {
        for mut chunk in self.chunks.drain(..) {
            chunk.keys.clear();
            self.spare.push(chunk.keys);
        }
        self.finger = Position::default();
    }

    pub(super) fn first(&self) -> Option<K> {
        self.chunks.front()?.live().first().copied()
    }

    /// The keys at or above `key`, in ascending order.
    #[inline]
    pub(super) fn from(&self, key: &K) -> impl Iterator<Item = K> {
        let Position { chunk, index } = self.place_of(key);
        let here = self.chunks.get(chunk).map(|chunk| &chunk.live()[index..]);
        let rest = self.chunks.range(self.chunks.len().min(chunk + 1)..);
        let rest = rest.flat_map(Chunk::live);
        here.unwrap_or_default().iter().chain(rest).copied()
    }

    /// The keys below `key`, in descending order.
    #[inline]
    pub(super) fn below(&self, key: &K) -> impl Iterator<Item = K> {
        let Position { chunk, index } = self.place_of(key);
        let rest = self.chunks.range(..chunk).rev();
        let rest = rest.flat_map(|chunk| chunk.live().iter().rev());
        let here = self.chunks.get(chunk);
        let here = here.map(|chunk| &chunk.live()[..index]);
        here.unwrap_or_default().iter().rev().chain(rest).copied()
    }

    /// Puts the finger on a key, so that the next change need not search for it.
    #[inline]
    pub(super) fn seek(&mut self, key: &K) {
        self.finger = self.place_of(key);
    }

    /// Inserts a key that is not in the list.
    #[inline]
    pub(super) fn insert(&mut self, key: K) {
        // The blocks of a txg come in order, above all keys in the list.
        if let Some(last) = self.chunks.back_mut()
            && last.keys.len() < FULL
            && last.live().last() < Some(&key)
        {
            last.keys.push(key);
            return;
        }
        self.seek(&key);
        let Position { chunk, index } = self.finger;
        match self.chunks.get_mut(chunk) {
            Some(chunk) if chunk.keys.len() < FULL => chunk.insert(index, key),
            Some(_) => self.make_room_and_insert(key),
            None => self.insert_chunk(0, [key]),
        }
    }

    /// Removes a key that is in the list. The finger is then on the next key.
    #[inline]
    pub(super) fn remove(&mut self, key: &K) {
        self.seek(key);
        let Position { chunk: at, index } = self.finger;
        let Some(chunk) = self.chunks.get_mut(at) else {
            return;
        };
        debug_assert!(chunk.live().get(index) == Some(key));
        if chunk.remove(index) {
            let emptied = self.chunks.remove(at);
            self.spare.extend(emptied.map(|chunk| chunk.keys));
        }
    }

    #[inline]
    fn place_of(&self, key: &K) -> Position {
        let Position { chunk, index } = self.finger;
        let under_finger = self.chunks.get(chunk).map(|chunk| chunk.live().get(index));
        if under_finger == Some(Some(key)) {
            return self.finger;
        }
        let chunk = self.chunk_of(key);
        let index = self.chunks.get(chunk).map(|chunk| chunk.index_of(key));
        Position {
            chunk,
            index: index.unwrap_or(0),
        }
    }

    /// The last chunk that begins at or below `key`, or else the first chunk.
    #[inline]
    fn chunk_of(&self, key: &K) -> usize {
        let begins_above = |at| self.chunks.get(at).is_none_or(|chunk| chunk.low > *key);
        let Position { chunk, .. } = self.finger;
        if !begins_above(chunk) && begins_above(chunk + 1) {
            return chunk;
        }
        let above = self.chunks.partition_point(|chunk| chunk.low <= *key);
        above.saturating_sub(1)
    }

    /// Inserts a key at the finger, whose chunk has no room at its end. A key above all keys of a full chunk
    /// begins another chunk, so that an ascending series leaves full chunks.
    fn make_room_and_insert(&mut self, key: K) {
        let Position { chunk: at, index } = self.finger;
        let chunk = &mut self.chunks[at];
        if chunk.begin > 0 {
            chunk.keys.drain(..chunk.begin);
            chunk.begin = 0;
            chunk.insert(index, key);
        } else if index == FULL {
            self.insert_chunk(at + 1, [key]);
        } else {
            let upper = chunk.keys.split_off(FULL / 2);
            self.insert_chunk(at + 1, upper);
            self.insert(key);
        }
    }

    fn insert_chunk(&mut self, at: usize, live: impl IntoIterator<Item = K>) {
        let mut keys = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(FULL));
        keys.clear();
        keys.extend(live);
        let chunk = Chunk {
            low: keys[0],
            keys,
            begin: 0,
        };
        self.chunks.insert(at, chunk);
        self.finger = Position {
            chunk: at,
            index: 0,
        };
    }
}

impl<K: Copy + Ord> Chunk<K> {
    fn live(&self) -> &[K] {
        &self.keys[self.begin..]
    }

    /// The place of a key.
    #[inline]
    fn index_of(&self, key: &K) -> usize {
        let live = self.live();
        match (live.first(), live.last()) {
            (Some(first), _) if key <= first => 0,
            (_, Some(last)) if key > last => live.len(),
            _ => live.partition_point(|other| other < key),
        }
    }

    #[inline]
    fn insert(&mut self, index: usize, key: K) {
        self.keys.insert(self.begin + index, key);
        self.low = self.low.min(key);
    }

    /// Removes a key. Returns whether the chunk is empty now.
    #[inline]
    fn remove(&mut self, index: usize) -> bool {
        if index == 0 {
            self.begin += 1;
        } else {
            self.keys.remove(self.begin + index);
        }
        self.begin == self.keys.len()
    }
}

impl<K> Default for Sorted<K> {
    fn default() -> Self {
        Sorted {
            chunks: VecDeque::new(),
            spare: Vec::new(),
            finger: Position::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FULL, Sorted};
    use crate::random::Random;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    /// Checks that the list and a set have the same keys around a given key.
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
        for step in 0..120_000_u64 {
            // Most keys are next to the previous key. The list grows for a while, then shrinks.
            near = match random.below(8) {
                0 => random.below(5_000),
                1 => set.first().map_or(0, |first: &u64| first.saturating_sub(1)),
                _ => near + random.below(3),
            };
            let grows = 3 + 2 * (step / 10_000 % 2);
            let gone = match random.below(8) {
                turn if turn < grows => None,
                6 => set.first().copied(),
                _ => set.range(near..).next().copied(),
            };
            if let Some(key) = gone {
                set.remove(&key);
                sorted.remove(&key);
            } else if set.insert(near) {
                sorted.insert(near);
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
