//! A sparse store in memory. It takes memory for a chunk when the chunk is first written, and gives it back
//! when a single request zeroes or trims the whole chunk.
//!
//! A leaf holds the chunks of one range of 64 MiB, and a small tree holds the leaves. So a disk of many TiB
//! takes no memory until it is used. Because the data has to fit into memory, the tree has few entries, and a
//! look-up takes a few nanoseconds.

use std::collections::BTreeMap;
use std::ops::Range;

use super::extent::Found;
use super::pieces::pieces;
use super::slabs::{CHUNK, Chunk, Slabs};

/// The largest slice, in bytes. A disk's bytes are contiguous in memory only within a chunk.
pub(crate) const SLICE: u64 = CHUNK;
const CHUNKS_PER_LEAF: u64 = 1024;
const LEAF: u64 = CHUNK * CHUNKS_PER_LEAF;

/// The content of a chunk that was never written.
static ZEROES: [u8; CHUNK as usize] = [0; CHUNK as usize];

/// A store in memory.
#[derive(Debug, Default)]
pub(crate) struct Ram {
    leaves: BTreeMap<u64, Box<[Option<Chunk>]>>,
    slabs: Slabs,
}

impl Ram {
    pub(crate) const fn new() -> Ram {
        Ram {
            leaves: BTreeMap::new(),
            slabs: Slabs::new(),
        }
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        let mut rest = into;
        for slice in self.slices(offset, rest.len() as u64) {
            let (part, tail) = rest.split_at_mut(slice.len());
            part.copy_from_slice(slice);
            rest = tail;
        }
    }

    /// The slices of memory that hold a range, in order. Each lies within one chunk.
    pub(crate) fn slices(&self, offset: u64, length: u64) -> impl Iterator<Item = &[u8]> {
        let chunks = pieces(CHUNK, offset, length);
        chunks.map(|(index, range)| &self.chunk(index).unwrap_or(&ZEROES)[range])
    }

    pub(crate) fn write(&mut self, offset: u64, from: &[u8]) {
        let mut rest = from;
        for (index, range) in pieces(CHUNK, offset, from.len() as u64) {
            let (part, tail) = rest.split_at(range.len());
            self.allocated(index)[range].copy_from_slice(part);
            rest = tail;
        }
    }

    pub(crate) fn zero(&mut self, offset: u64, length: u64, no_hole: bool) {
        for (index, range) in pieces(CHUNK, offset, length) {
            if no_hole {
                self.allocated(index)[range].fill(0);
            } else {
                self.punch(index, range);
            }
        }
        let leaves = &mut self.leaves;
        self.slabs.tighten(|index, chunk| {
            if let Some(leaf) = leaves.get_mut(&(index / CHUNKS_PER_LEAF)) {
                leaf[(index % CHUNKS_PER_LEAF) as usize] = Some(chunk);
            }
        });
    }

    /// Zeroes a part of a chunk, or gives the whole chunk back.
    fn punch(&mut self, index: u64, range: Range<usize>) {
        let Some(place) = self.leaves.get_mut(&(index / CHUNKS_PER_LEAF)) else {
            return;
        };
        let place = &mut place[(index % CHUNKS_PER_LEAF) as usize];
        if range.len() == CHUNK as usize {
            place
                .take()
                .into_iter()
                .for_each(|chunk| self.slabs.give(chunk));
        } else if let Some(chunk) = place {
            self.slabs.bytes_mut(chunk)[range].fill(0);
        }
    }

    pub(crate) fn extents(&self, offset: u64, length: u64, mut found: Found<'_>) {
        for (leaf, range) in pieces(LEAF, offset, length) {
            let length = range.len() as u64;
            let more = match self.leaves.contains_key(&leaf) {
                true => self.leaf_extents(leaf * LEAF + range.start as u64, length, &mut found),
                false => found.push(length, true),
            };
            if !more {
                return;
            }
        }
    }

    /// Adds the extents within one leaf. Returns false if there is no room for more extents.
    fn leaf_extents(&self, offset: u64, length: u64, found: &mut Found<'_>) -> bool {
        let mut chunks = pieces(CHUNK, offset, length);
        chunks.all(|(index, range)| found.push(range.len() as u64, self.chunk(index).is_none()))
    }

    fn chunk(&self, index: u64) -> Option<&[u8]> {
        let leaf = self.leaves.get(&(index / CHUNKS_PER_LEAF))?;
        let chunk = leaf[(index % CHUNKS_PER_LEAF) as usize].as_ref()?;
        Some(self.slabs.bytes(chunk))
    }

    fn allocated(&mut self, index: u64) -> &mut [u8] {
        let leaf = self.leaves.entry(index / CHUNKS_PER_LEAF);
        let leaf = leaf.or_insert_with(|| (0..CHUNKS_PER_LEAF).map(|_| None).collect());
        let place = &mut leaf[(index % CHUNKS_PER_LEAF) as usize];
        let chunk = place.get_or_insert_with(|| self.slabs.take(index));
        self.slabs.bytes_mut(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::super::extent::{Extent, Found};
    use super::{CHUNK, Ram};

    const HUGE: u64 = 1 << 60;

    fn extents(ram: &Ram, offset: u64, length: u64, limit: usize) -> Vec<Extent> {
        let mut out = Vec::new();
        ram.extents(offset, length, Found::new(&mut out, limit));
        out
    }

    #[test]
    fn only_what_is_written_is_allocated() {
        let mut ram = Ram::default();
        ram.read(HUGE, &mut [1; 10]);
        ram.zero(HUGE, CHUNK, false);
        assert_eq!(ram.leaves.len(), 0);
        ram.write(HUGE - 1, &[7, 7]);
        let map = extents(&ram, HUGE - 2 * CHUNK, 4 * CHUNK, 9);
        let expected = [(CHUNK, true), (2 * CHUNK, false), (CHUNK, true)];
        assert_eq!(map, expected.map(|(length, hole)| Extent { length, hole }));
    }

    #[test]
    fn whole_chunks_are_freed_and_parts_are_not() {
        let mut ram = Ram::default();
        ram.write(0, &[7; 2 * CHUNK as usize]);
        ram.zero(1, 2 * CHUNK - 1, false);
        let map = extents(&ram, 0, 2 * CHUNK, 9);
        assert_eq!(map.iter().filter(|extent| extent.hole).count(), 1);
        let mut first = [9; 2];
        ram.read(0, &mut first);
        assert_eq!(first, [7, 0]);
    }

    #[test]
    fn without_a_hole_zeroes_take_space() {
        let mut ram = Ram::default();
        ram.zero(0, CHUNK, true);
        assert!(!extents(&ram, 0, CHUNK, 1)[0].hole);
    }

    #[test]
    fn extents_stop_at_the_limit() {
        let mut ram = Ram::default();
        ram.write(CHUNK, &[1]);
        let map = extents(&ram, 0, 3 * CHUNK, 2);
        assert_eq!(
            map.iter().map(|extent| extent.length).sum::<u64>(),
            2 * CHUNK
        );
    }
}
