//! A table of the blocks of a volume. The table has two levels, because a map would cost more than all other
//! work of a write. The table allocates a leaf when one of the leaf's blocks is first touched.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

/// A value for each block, at first the default.
#[derive(Debug)]
pub(super) struct Table<T> {
    leaves: Vec<Option<Box<Leaf<T>>>>,
}

#[derive(Debug)]
struct Leaf<T> {
    values: [T; LEAF],
    /// How many of these values differ from the default.
    used: u32,
}

impl<T: Copy + Default + PartialEq> Table<T> {
    /// The values of all blocks that have been touched.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        let leaves = self.leaves.iter().flatten();
        leaves.flat_map(|leaf| leaf.values.iter())
    }

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
        let at = block as usize / LEAF;
        if self.leaves.len() <= at {
            self.leaves.resize_with(at + 1, || None);
        }
        let leaf = self.leaves[at].get_or_insert_with(|| {
            Box::new(Leaf {
                values: [T::default(); LEAF],
                used: 0,
            })
        });
        let value = &mut leaf.values[block as usize % LEAF];
        let before = *value != T::default();
        let answer = change(value);
        let after = *value != T::default();
        leaf.used = leaf.used + u32::from(after) - u32::from(before);
        answer
    }

    /// The blocks of a range whose values differ from the default. The time grows with the leaves that
    /// have such blocks, not with the range.
    pub(super) fn used(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let (start, end) = (range.start as usize, range.end as usize);
        let leaves = self.leaves.iter().enumerate();
        let leaves = leaves.take(end.div_ceil(LEAF)).skip(start / LEAF);
        let leaves = leaves.filter_map(|(at, leaf)| Some((at * LEAF, leaf.as_ref()?)));
        leaves
            .filter(|(_, leaf)| leaf.used > 0)
            .flat_map(move |(first, leaf)| {
                let from = start.max(first);
                let values = leaf.values[from - first..].iter().zip(from..end);
                let used = values.filter(|(value, _)| **value != T::default());
                used.map(|(_, at)| at as u32)
            })
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { leaves: Vec::new() }
    }
}

pub(super) const LEAF: usize = 512;
