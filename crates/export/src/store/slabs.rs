//! Memory of a RAM disk, handed out in chunks that lie side by side in huge pages.
//!
//! A random access to small pages misses the processor's TLB, and under virtualisation a miss costs
//! as much as copying 4 KiB. So the store cuts chunks from mappings for which it asks the kernel to use
//! huge pages. Chunks are handed out in the order of their first writes, wherever they are on the
//! disk, so even a sparsely used disk takes at most one huge page more than it needs. Where the
//! kernel has no huge pages, the memory comes in small ones.
//!
//! Chunks that lie in one huge page form a group. The memory of a group goes back to the system when none
//! of its chunks is in use.

use dashpot_sys::Pages;

/// The size of a chunk in bytes.
pub(super) const CHUNK: u64 = 64 << 10;

/// A chunk that is in use.
#[derive(Debug)]
pub(super) struct Chunk(u32);

#[derive(Debug, Default)]
pub(super) struct Slabs {
    slabs: Vec<Pages>,
    /// By group, how many of its chunks are in use.
    used: Vec<u8>,
    /// How many chunks have been handed out so far.
    begun: u32,
    /// Chunks that were given back.
    free: Vec<u32>,
}

impl Slabs {
    pub(super) const fn new() -> Slabs {
        Slabs {
            slabs: Vec::new(),
            used: Vec::new(),
            begun: 0,
            free: Vec::new(),
        }
    }

    /// Takes a chunk of zeroes.
    pub(super) fn take(&mut self) -> Chunk {
        let chunk = match self.free.pop() {
            Some(again) => {
                let mut chunk = Chunk(again);
                self.bytes_mut(&mut chunk).fill(0);
                chunk
            }
            None => self.begin(),
        };
        self.used[group(&chunk)] += 1;
        chunk
    }

    /// The next chunk that was never in use.
    fn begin(&mut self) -> Chunk {
        if self.begun as usize == self.slabs.len() * CHUNKS_PER_SLAB {
            self.slabs.push(map());
            let groups = self.slabs.len() * CHUNKS_PER_SLAB / CHUNKS_PER_GROUP;
            self.used.resize(groups, 0);
        }
        self.begun += 1;
        Chunk(self.begun - 1)
    }

    /// Takes a chunk back. Its memory goes back to the system with that of its group.
    pub(super) fn give(&mut self, chunk: Chunk) {
        let group = group(&chunk);
        self.free.push(chunk.0);
        self.used[group] -= 1;
        if self.free.len() == self.begun as usize {
            *self = Slabs::new();
        } else if self.used[group] == 0 {
            self.give_back(group);
        }
    }

    /// Gives the memory of a group back to the system.
    fn give_back(&mut self, group: usize) {
        let (slab, start) = place(&Chunk((group * CHUNKS_PER_GROUP) as u32));
        let range = start..start + CHUNKS_PER_GROUP * CHUNK as usize;
        // If the kernel refuses, the memory waits for the next chunks.
        let _ = self.slabs[slab].give_back(range);
    }

    pub(super) fn bytes(&self, chunk: &Chunk) -> &[u8] {
        let (slab, start) = place(chunk);
        &self.slabs[slab][start..start + CHUNK as usize]
    }

    pub(super) fn bytes_mut(&mut self, chunk: &mut Chunk) -> &mut [u8] {
        let (slab, start) = place(chunk);
        &mut self.slabs[slab][start..start + CHUNK as usize]
    }
}

fn place(chunk: &Chunk) -> (usize, usize) {
    let chunk = chunk.0 as usize;
    let start = chunk % CHUNKS_PER_SLAB * CHUNK as usize;
    (chunk / CHUNKS_PER_SLAB, start)
}

/// The group of a chunk, counted from the first slab's first.
fn group(chunk: &Chunk) -> usize {
    chunk.0 as usize / CHUNKS_PER_GROUP
}

/// Maps memory. The kernel provides it when it is first used.
fn map() -> Pages {
    let length = CHUNKS_PER_SLAB * CHUNK as usize;
    let Ok(slab) = Pages::map(length) else {
        // The same failure as that of the allocator without memory.
        std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; CHUNK as usize]>());
    };
    slab
}

/// 64 MiB in a mapping: before Linux 6.7 the kernel uses only huge pages that lie within one
/// mapping.
const CHUNKS_PER_SLAB: usize = 1024;
/// 2 MiB: a huge page of most processors.
const CHUNKS_PER_GROUP: usize = 32;

#[cfg(test)]
mod tests {
    use super::{CHUNK, CHUNKS_PER_GROUP, CHUNKS_PER_SLAB, Chunk, Slabs};

    #[test]
    fn chunks_are_apart_and_zero_however_often_they_are_used() {
        let mut slabs = Slabs::new();
        let mut chunks: Vec<_> = (0..=CHUNKS_PER_SLAB).map(|_| slabs.take()).collect();
        assert_eq!(slabs.slabs.len(), 2);
        for at in [0, 1, CHUNKS_PER_SLAB] {
            assert_eq!(slabs.bytes(&chunks[at]), [0; CHUNK as usize]);
            slabs.bytes_mut(&mut chunks[at]).fill(at as u8 + 1);
        }
        for at in [0, 1, CHUNKS_PER_SLAB] {
            assert_eq!(slabs.bytes(&chunks[at]), [at as u8 + 1; CHUNK as usize]);
        }
        slabs.give(chunks.remove(1));
        let again = slabs.take();
        assert_eq!(slabs.bytes(&again), [0; CHUNK as usize]);
        assert_eq!(slabs.begun as usize, CHUNKS_PER_SLAB + 1);
        chunks.push(again);
        chunks.into_iter().for_each(|chunk| slabs.give(chunk));
        assert_eq!((slabs.slabs.len(), slabs.begun), (0, 0));
    }

    #[test]
    fn the_memory_of_a_group_goes_back_when_none_of_its_chunks_is_in_use() {
        let mut slabs = Slabs::new();
        let mut chunks: Vec<Chunk> = (0..=CHUNKS_PER_GROUP).map(|_| slabs.take()).collect();
        for chunk in &mut chunks {
            slabs.bytes_mut(chunk).fill(7);
        }
        let group = ..CHUNKS_PER_GROUP * CHUNK as usize;
        let last = chunks.split_off(1);
        for chunk in chunks {
            slabs.give(chunk);
        }
        assert!(
            slabs.slabs[0][group].iter().all(|byte| *byte == 7),
            "others are in use"
        );
        let (of_the_group, next) = last.split_at(CHUNKS_PER_GROUP - 1);
        for Chunk(at) in of_the_group {
            slabs.give(Chunk(*at));
        }
        assert!(slabs.slabs[0][group].iter().all(|byte| *byte == 0));
        assert_eq!(slabs.bytes(&next[0]), [7; CHUNK as usize]);
        let again = slabs.take();
        assert_eq!(slabs.bytes(&again), [0; CHUNK as usize]);
    }
}
