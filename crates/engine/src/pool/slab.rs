//! A list of values, each named by its index. Names are small numbers with few gaps, and are reused.

use alloc::vec;
use alloc::vec::Vec;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    values: Vec<T>,
    /// Slots whose values were removed.
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    /// Inserts a value. The slot of the value stays the same until the value is removed.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.values[slot as usize] = value;
                slot
            }
            None => {
                self.values.push(value);
                self.values.len() as u32 - 1
            }
        }
    }

    /// How many slots have a value.
    pub(crate) fn count(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// The slots that have a value.
    pub(crate) fn live(&self) -> impl Iterator<Item = u32> + use<T> {
        let mut live = vec![true; self.values.len()];
        for slot in &self.free {
            live[*slot as usize] = false;
        }
        let slots = (0..).zip(live);
        slots.filter(|(_, live)| *live).map(|(slot, _)| slot)
    }

    /// Removes all values. Keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.free.clear();
    }

    /// The values, in no order.
    pub(crate) fn into_values(self) -> Values<T> {
        let mut is_free = vec![false; self.values.len()];
        for slot in &self.free {
            is_free[*slot as usize] = true;
        }
        Values {
            values: self.values,
            is_free,
        }
    }

    pub(crate) fn remove(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.values[slot as usize]
    }
}

/// Takes the values out of a slab, one by one.
#[derive(Debug)]
pub(crate) struct Values<T> {
    values: Vec<T>,
    is_free: Vec<bool>,
}

impl<T> Iterator for Values<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            let value = self.values.pop()?;
            if !self.is_free.pop()? {
                return Some(value);
            }
        }
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            values: Vec::new(),
            free: Vec::new(),
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
