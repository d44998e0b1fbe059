//! Records with small, dense, reusable names.

use alloc::vec::Vec;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    records: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            records: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, record: T) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.records[id as usize] = Some(record);
                id
            }
            None => {
                self.records.push(Some(record));
                self.records.len() as u32 - 1
            }
        }
    }

    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.records.get(id as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.records.get_mut(id as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<T> {
        let record = self.records.get_mut(id as usize)?.take();
        self.free.extend(record.is_some().then_some(id));
        record
    }
}
