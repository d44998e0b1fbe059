//! A list of values, each named by its index. Names are small numbers with few gaps, and are reused.

use alloc::vec::Vec;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    values: Vec<T>,
    /// Slots whose values were removed.
    free: Vec<u32>,
    /// A bit for each slot: whether it has a value.
    used: Vec<u64>,
}

impl<T: Copy> Slab<T> {
    /// Inserts a value. The slot of the value stays the same until the value is removed.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.values[slot as usize] = value;
                slot
            }
            None => {
                self.values.push(value);
                self.values.len() as u32 - 1
            }
        };
        let at = slot as usize / WORD;
        if self.used.len() <= at {
            self.used.push(0);
        }
        self.used[at] |= 1 << (slot as usize % WORD);
        slot
    }

    /// How many slots have a value.
    pub(crate) fn count(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// The first slot from this one on that has a value. The test of one word skips 64 slots.
    pub(crate) fn next_live(&self, from: u32) -> Option<u32> {
        let at = from as usize / WORD;
        let first = self.used.get(at)? & u64::MAX << (from as usize % WORD);
        let rest = self.used[at + 1..].iter().copied();
        let mut words = (at..).zip(core::iter::once(first).chain(rest));
        let (at, word) = words.find(|(_, word)| *word != 0)?;
        Some((at * WORD) as u32 + word.trailing_zeros())
    }

    /// Removes all values. Keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.free.clear();
        self.used.clear();
    }

    pub(crate) fn remove(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.used[slot as usize / WORD] &= !(1 << (slot as usize % WORD));
        self.values[slot as usize]
    }
}

/// The number of bits of a word.
const WORD: usize = u64::BITS as usize;

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            values: Vec::new(),
            free: Vec::new(),
            used: Vec::new(),
        }
    }
}

impl<T> core::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, slot: u32) -> &T {
        &self.values[slot as usize]
    }
}

impl<T> core::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.values[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;
    use alloc::vec::Vec;

    fn live(slab: &Slab<u32>) -> Vec<u32> {
        let next = |from: u32| slab.next_live(from);
        core::iter::successors(next(0), |slot| next(slot + 1)).collect()
    }

    #[test]
    fn the_slots_with_values_are_found_in_order() {
        let mut slab = Slab::default();
        assert_eq!(slab.next_live(0), None);
        for value in 0..1_000 {
            assert_eq!(slab.insert(value), value);
        }
        assert!(live(&slab).into_iter().eq(0..1_000));
        for slot in (0..1_000).filter(|slot| ![0, 63, 64, 500, 999].contains(slot)) {
            assert_eq!(slab.remove(slot), slot);
        }
        assert_eq!(live(&slab), [0, 63, 64, 500, 999]);
        assert_eq!(slab.count(), 5);
        let slot = slab.insert(7);
        assert_eq!(slab.next_live(slot), Some(slot));
        assert_eq!(slab.remove(slot), 7);
        assert_eq!(slab.next_live(65), Some(500));
        assert_eq!(slab.next_live(1_000), None);
        assert_eq!(slab.next_live(5_000), None);
        slab.clear();
        assert_eq!(slab.next_live(0), None);
        assert_eq!(slab.insert(1), 0);
        assert_eq!(live(&slab), [0]);
    }
}
