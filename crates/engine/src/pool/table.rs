//! A table of the blocks of a volume. The table has two levels, because a map would cost more than all other
//! work of a write. The table allocates a leaf when one of the leaf's blocks is first touched.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

/// A table with a value for each block. A block has the default value until the value is changed.
#[derive(Debug)]
pub(super) struct Table<T> {
    leaves: Vec<Option<Box<Leaf<T>>>>,
    /// A bit for each leaf: whether it has values other than the default.
    used: Vec<u64>,
}

#[derive(Debug)]
struct Leaf<T> {
    values: [T; LEAF],
    /// A bit for each value: whether it differs from the default.
    used: [u64; LEAF / WORD],
}

impl<T: Copy + Default + PartialEq> Table<T> {
    #[inline]
    pub(super) fn get(&self, block: u32) -> T {
        let leaf = self.leaves.get(block as usize / LEAF);
        match leaf {
            Some(Some(leaf)) => leaf.values[block as usize % LEAF],
            _ => T::default(),
        }
    }

    /// Changes the value of a block.
    #[inline]
    pub(super) fn edit<A>(&mut self, block: u32, change: impl FnOnce(&mut T) -> A) -> A {
        let (at, index) = (block as usize / LEAF, block as usize % LEAF);
        if self.leaves.len() <= at {
            self.grow(at + 1);
        }
        let leaf = self.leaves[at].get_or_insert_with(|| {
            Box::new(Leaf {
                values: [T::default(); LEAF],
                used: [0; LEAF / WORD],
            })
        });
        let value = &mut leaf.values[index];
        let before = *value != T::default();
        let answer = change(value);
        let after = *value != T::default();
        if before != after {
            leaf.used[index / WORD] ^= 1 << (index % WORD);
            // A comparison of arrays would call a function of the C library.
            let is_used = leaf.used.iter().fold(0, |all, word| all | word) != 0;
            let word = &mut self.used[at / WORD];
            *word = *word & !(1 << (at % WORD)) | u64::from(is_used) << (at % WORD);
        }
        answer
    }

    /// Those blocks of a range whose values differ from the default. The time depends on the number of these
    /// blocks, and hardly on the size of the range, because the test of one word skips 32768 blocks that have
    /// the default.
    pub(super) fn used(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let Range { mut start, end } = range;
        core::iter::from_fn(move || {
            let found = self.next_used(start..end)?;
            start = found + 1;
            Some(found)
        })
    }

    /// How many blocks of a range have values that differ from the default. Takes a small part of the time
    /// that [`Table::used`] takes.
    pub(super) fn count(&self, range: Range<u32>) -> usize {
        let Range { mut start, end } = range;
        let mut sum = 0;
        while let Some(found) = self.next_used(start..end) {
            let at = found as usize / LEAF;
            let next = (at + 1) * LEAF;
            let last = next.min(end as usize) - at * LEAF;
            let leaf = self.leaves[at].as_ref();
            sum += leaf.map_or(0, |leaf| {
                count_bits(&leaf.used, found as usize % LEAF..last)
            });
            start = u32::try_from(next).unwrap_or(end);
        }
        sum
    }

    /// The first block of a range whose value differs from the default.
    #[inline]
    pub(super) fn next_used(&self, range: Range<u32>) -> Option<u32> {
        let (mut at, end) = (range.start as usize, range.end as usize);
        while at < end {
            let place = next_bit(&self.used, at / LEAF)?;
            at = at.max(place * LEAF);
            let leaf = self.leaves.get(place)?.as_ref()?;
            if let Some(index) = next_bit(&leaf.used, at % LEAF) {
                let found = place * LEAF + index;
                return (found < end).then_some(found as u32);
            }
            at = (place + 1) * LEAF;
        }
        None
    }

    #[cold]
    fn grow(&mut self, leaves: usize) {
        self.leaves.resize_with(leaves, || None);
        self.used.resize(leaves.div_ceil(WORD), 0);
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            leaves: Vec::new(),
            used: Vec::new(),
        }
    }
}

/// The first set bit at or after the bit `from`.
#[inline]
fn next_bit(words: &[u64], from: usize) -> Option<usize> {
    let first = words.get(from / WORD)? & u64::MAX << (from % WORD);
    let mut words = words.iter().enumerate().skip(from / WORD + 1);
    let (at, word) = match first {
        0 => words.find(|(_, word)| **word != 0)?,
        _ => (from / WORD, &first),
    };
    Some(at * WORD + word.trailing_zeros() as usize)
}

/// How many bits of a range are set.
fn count_bits(words: &[u64], range: Range<usize>) -> usize {
    let of_word = |(at, word): (usize, &u64)| {
        let from = range.start.clamp(at * WORD, (at + 1) * WORD) - at * WORD;
        let to = range.end.clamp(at * WORD, (at + 1) * WORD) - at * WORD;
        let below = |bit: usize| 1u64.checked_shl(bit as u32).map_or(u64::MAX, |bit| bit - 1);
        (word & below(to) & !below(from)).count_ones() as usize
    };
    words.iter().enumerate().map(of_word).sum()
}

pub(super) const LEAF: usize = 512;
const WORD: usize = u64::BITS as usize;

#[cfg(test)]
mod tests {
    use super::{LEAF, Table};
    use crate::random::Random;
    use alloc::collections::BTreeMap;

    /// Changes random blocks of a table and of a map. Both must always have the same values.
    #[test]
    fn it_finds_the_values_that_differ_from_the_default() {
        const BLOCKS: u64 = 200 * LEAF as u64;
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut table = Table::<u8>::default();
            let mut naive = BTreeMap::new();
            for _ in 0..500 {
                let block = (random.below(BLOCKS) >> random.below(17)) as u32;
                let value = random.below(3) as u8;
                table.edit(block, |old| *old = value);
                naive.insert(block, value);
                assert_eq!(table.get(block), value, "seed {seed}");
                let start = random.below(BLOCKS) as u32;
                let range = start..start + random.below(BLOCKS) as u32;
                let used = naive.range(range.clone()).filter(|(_, value)| **value != 0);
                let used = used.map(|(block, _)| *block);
                assert_eq!(table.count(range.clone()), used.clone().count());
                assert!(table.used(range).eq(used), "seed {seed}");
            }
        }
    }
}
