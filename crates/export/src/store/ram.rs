//! A sparse store in memory. It takes memory for a chunk when the chunk is first written, and gives it back
//! when a single request zeroes or trims the whole chunk.
//!
//! A chunk of which less than half is written lies in [small pages](super::sparse), so that a few small writes
//! take little memory. A dense one lies in a [huge page](super::slabs). If there is none yet, the chunk is moved
//! later, in a step of a later write.
//!
//! A leaf holds the chunks of one range of 64 MiB, and a small tree holds the leaves. So a disk of many TiB
//! takes no memory until it is used. Because the data has to fit into memory, the tree has few entries, and a
//! look-up takes a few nanoseconds.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::extent::Found;
use super::pieces::pieces;
use super::slabs::{CHUNK, Chunk, Slabs};
use super::sparse::Sparse;

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
    sparse: Sparse,
    /// The indexes of chunks in small pages that were dense when they came here.
    dense: VecDeque<u64>,
}

impl Ram {
    pub(crate) const fn new() -> Ram {
        Ram {
            leaves: BTreeMap::new(),
            slabs: Slabs::new(),
            sparse: Sparse::new(),
            dense: VecDeque::new(),
        }
    }

    /// How many chunks lie in huge pages.
    #[cfg(test)]
    pub(super) fn in_huge_pages(&self) -> usize {
        self.slabs.in_use()
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
            self.allocated(index, range).copy_from_slice(part);
            rest = tail;
        }
        if !self.dense.is_empty() {
            self.move_dense(1 + from.len() / CHUNK as usize);
        }
    }

    pub(crate) fn zero(&mut self, offset: u64, length: u64, no_hole: bool) {
        for (index, range) in pieces(CHUNK, offset, length) {
            if no_hole {
                self.allocated(index, range).fill(0);
            } else {
                self.punch(index, range);
            }
        }
        if no_hole && !self.dense.is_empty() {
            self.move_dense(1 + (length / CHUNK) as usize);
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
            match place.take().map(|chunk| (chunk.as_sparse(), chunk)) {
                Some((Some(number), _)) => self.sparse.give(number),
                Some((None, chunk)) => self.slabs.give(chunk),
                None => {}
            }
        } else if let Some(chunk) = place {
            match chunk.as_sparse() {
                Some(number) => self.sparse.zero(number, range),
                None => self.slabs.bytes_mut(chunk)[range].fill(0),
            }
        }
    }

    pub(crate) fn extents(&self, offset: u64, length: u64, mut found: Found<'_>) {
        for (leaf, range) in pieces(LEAF, offset, length) {
            let length = range.len() as u64;
            let more = if self.leaves.contains_key(&leaf) {
                self.leaf_extents(leaf * LEAF + range.start as u64, length, &mut found)
            } else {
                found.push(length, true)
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
        Some(match chunk.as_sparse() {
            Some(number) => self.sparse.bytes(number),
            None => self.slabs.bytes(chunk),
        })
    }

    /// A part of a chunk, to write to it.
    fn allocated(&mut self, index: u64, range: Range<usize>) -> &mut [u8] {
        let leaf = self.leaves.entry(index / CHUNKS_PER_LEAF);
        let leaf = leaf.or_insert_with(|| (0..CHUNKS_PER_LEAF).map(|_| None).collect());
        let place = &mut leaf[(index % CHUNKS_PER_LEAF) as usize];
        if place.is_none() && range.len() >= CHUNK as usize / 2 {
            self.slabs.restock();
        }
        let chunk = place.get_or_insert_with(|| {
            if range.len() >= CHUNK as usize / 2 && self.slabs.has_room() {
                self.slabs.take(index)
            } else {
                Chunk::sparse(self.sparse.take())
            }
        });
        let Some(number) = chunk.as_sparse() else {
            return &mut self.slabs.bytes_mut(chunk)[range];
        };
        if !self.sparse.is_dense(number) {
            self.sparse.touch(number, &range);
            if self.sparse.is_dense(number) {
                self.dense.push_back(index);
            }
        }
        self.sparse.bytes_mut(number, range)
    }

    /// Moves at most this many dense chunks to huge pages, as far as these have come.
    fn move_dense(&mut self, most: usize) {
        self.slabs.restock();
        for _ in 0..most {
            let Some(index) = self.dense.front().copied() else {
                return;
            };
            let leaf = self.leaves.get_mut(&(index / CHUNKS_PER_LEAF));
            let place = leaf.map(|leaf| &mut leaf[(index % CHUNKS_PER_LEAF) as usize]);
            let Some(Some(chunk)) = place else {
                self.dense.pop_front();
                continue;
            };
            let dense = |number: &u32| self.sparse.is_dense(*number);
            let Some(number) = chunk.as_sparse().filter(dense) else {
                self.dense.pop_front();
                continue;
            };
            if !self.slabs.has_room() {
                return;
            }
            self.dense.pop_front();
            let mut to = self.slabs.take(index);
            for page in self.sparse.pages(number, 0..CHUNK as usize) {
                let from = &self.sparse.bytes(number)[page.clone()];
                self.slabs.bytes_mut(&mut to)[page].copy_from_slice(from);
            }
            *chunk = to;
            self.sparse.give(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::extent::{Extent, Found};
    use super::{CHUNK, Ram};
    use dashpot_engine::Random;

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

    #[test]
    fn a_small_write_takes_one_small_page_until_half_of_its_chunk_is_written() {
        let mut ram = Ram::default();
        for page in (0..8).rev() {
            assert_eq!(ram.dense.len(), 0);
            let bytes = [page as u8 + 1; 4096];
            ram.write(page * 4096, &bytes);
            let chunk = ram.leaves[&0][0].as_ref().unwrap().as_sparse();
            if let Some(chunk) = chunk {
                let pages = ram.sparse.pages(chunk, 0..CHUNK as usize).count();
                assert_eq!(pages as u64, 8 - page);
            }
        }
        // The huge page comes from another thread.
        while ram.in_huge_pages() == 0 {
            ram.write(0, &[1]);
            std::thread::yield_now();
        }
        let mut bytes = [9; CHUNK as usize];
        ram.read(0, &mut bytes);
        for (page, bytes) in (1..).zip(bytes.chunks(4096)) {
            let expected = if page <= 8 { page } else { 0 };
            assert!(bytes.iter().all(|byte| *byte == expected), "page {page}");
        }
        ram.zero(0, CHUNK, false);
        assert_eq!(ram.in_huge_pages(), 0);
        assert!(extents(&ram, 0, CHUNK, 1)[0].hole);
    }

    #[test]
    fn a_part_of_a_sparse_chunk_is_zeroed_without_taking_memory() {
        let mut ram = Ram::default();
        ram.write(4096, &[7; 4096]);
        ram.zero(1, 2 * 4096, false);
        let chunk = ram.leaves[&0][0].as_ref().unwrap().as_sparse().unwrap();
        assert_eq!(ram.sparse.pages(chunk, 0..CHUNK as usize).count(), 1);
        let mut bytes = [9; 3 * 4096];
        ram.read(0, &mut bytes);
        assert_eq!(bytes, [0; 3 * 4096]);
    }

    /// Writes and trims at random, with huge pages that come at any time, against the value of each page.
    #[test]
    fn chunks_that_move_keep_their_bytes() {
        const PAGES: u64 = 16 << 10;
        let (mut ram, mut random) = (Ram::default(), Random::new(1));
        let mut values = vec![0; PAGES as usize];
        for step in 0..20_000_u32 {
            let most = [1, 16, 256, 4096][random.below(4) as usize];
            let page = random.below(PAGES);
            let count = (1 + random.below(most)).min(PAGES - page);
            let all = page as usize..(page + count) as usize;
            let value = if most == 4096 || step % 16 == 0 {
                0
            } else {
                step as u8
            };
            match value {
                0 => ram.zero(page * 4096, count * 4096, false),
                _ => ram.write(page * 4096, &vec![value; count as usize * 4096]),
            }
            values[all].fill(value);
        }
        let mut bytes = [9; 4096];
        for (page, value) in (0..).zip(values) {
            ram.read(page * 4096, &mut bytes);
            assert_eq!(bytes, [value; 4096], "page {page}");
        }
    }
}
