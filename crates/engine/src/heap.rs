//! A min-heap in which the key of any item can change, and from which any item can be removed.
//!
//! Heaps order the lanes of a rule, the ends of suspensions, and the deadlines that are not set in the order
//! in which they fall due. Items are small integers with few gaps. The heap keeps the place of each
//! item, so a change needs no search and takes logarithmic time. Each node has four children to keep the tree
//! shallow, because with many items each level costs a cache miss.

use alloc::vec::Vec;

/// How many children a node has.
const ARITY: usize = 4;
/// The place of an item that is not in the heap.
const ABSENT: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct IndexedHeap<K> {
    entries: Vec<(K, u32)>,
    places: Vec<u32>,
}

impl<K> Default for IndexedHeap<K> {
    fn default() -> Self {
        IndexedHeap {
            entries: Vec::new(),
            places: Vec::new(),
        }
    }
}

impl<K: Copy + Ord> IndexedHeap<K> {
    /// The smallest key and its item.
    pub(crate) fn peek(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// Inserts `item`, or changes its key.
    pub(crate) fn set(&mut self, item: u32, key: K) {
        let index = item as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, ABSENT);
        }
        let place = self.places[index];
        if place == ABSENT {
            self.entries.push((key, item));
            self.rise(self.entries.len() - 1);
        } else {
            self.entries[place as usize].0 = key;
            self.settle(place as usize);
        }
    }

    /// Removes `item`, if it is in the heap.
    pub(crate) fn remove(&mut self, item: u32) {
        let Some(place) = self.places.get(item as usize).copied() else {
            return;
        };
        if place == ABSENT {
            return;
        }
        self.places[item as usize] = ABSENT;
        self.entries.swap_remove(place as usize);
        if (place as usize) < self.entries.len() {
            self.settle(place as usize);
        }
    }

    /// Moves the entry at `at` up or down to its place.
    fn settle(&mut self, at: usize) {
        let at = self.rise(at);
        self.sink(at);
    }

    fn rise(&mut self, mut at: usize) -> usize {
        let entry = self.entries[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.entries[parent].0 <= entry.0 {
                break;
            }
            self.put(at, self.entries[parent]);
            at = parent;
        }
        self.put(at, entry);
        at
    }

    fn sink(&mut self, mut at: usize) {
        let entry = self.entries[at];
        while let Some(child) = self.smallest_child(at) {
            if self.entries[child].0 >= entry.0 {
                break;
            }
            self.put(at, self.entries[child]);
            at = child;
        }
        self.put(at, entry);
    }

    fn smallest_child(&self, at: usize) -> Option<usize> {
        let first = at * ARITY + 1;
        let last = (first + ARITY).min(self.entries.len());
        let (least, others) = self.entries.get(first..last)?.split_first()?;
        let (mut child, mut key) = (first, least.0);
        for (at, other) in (first + 1..).zip(others) {
            if other.0 < key {
                (child, key) = (at, other.0);
            }
        }
        Some(child)
    }

    fn put(&mut self, at: usize, entry: (K, u32)) {
        self.entries[at] = entry;
        self.places[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::IndexedHeap;
    use crate::random::Random;
    use alloc::collections::BTreeMap;

    #[test]
    fn it_agrees_with_a_sorted_map_over_random_changes() {
        let mut random = Random::new(11);
        let mut heap = IndexedHeap::default();
        let mut keys: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
        for _ in 0..20_000 {
            let item = random.below(50) as u32;
            if random.below(3) == 0 {
                heap.remove(item);
                keys.remove(&item);
            } else {
                let key = (random.below(40), item);
                heap.set(item, key);
                keys.insert(item, key);
            }
            let least = keys.values().min().map(|key| (*key, key.1));
            assert_eq!(heap.peek(), least);
        }
    }
}
