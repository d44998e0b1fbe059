//! Memory of a RAM disk, handed out in chunks that lie side by side in huge pages.
//!
//! A random access to small pages misses the processor's TLB, and under virtualisation a miss costs
//! as much as copying 4 KiB. So chunks are cut from mappings for which the kernel is asked to use
//! huge pages. Chunks are handed out in the order of their first writes, wherever they are on the
//! disk, so even a sparsely used disk takes at most one huge page more than it needs. Where the
//! kernel has no huge pages, the memory comes in small ones.

use memmap2::{Advice, MmapMut};

/// The size of a chunk in bytes.
pub(super) const CHUNK: u64 = 64 << 10;

/// A chunk that is in use.
#[derive(Debug)]
pub(super) struct Chunk(u32);

#[derive(Debug, Default)]
pub(super) struct Slabs {
    slabs: Vec<MmapMut>,
    /// How many chunks have been handed out so far.
    begun: u32,
    /// Those that were given back.
    free: Vec<u32>,
}

impl Slabs {
    pub(super) const fn new() -> Slabs {
        Slabs {
            slabs: Vec::new(),
            begun: 0,
            free: Vec::new(),
        }
    }

    /// Takes a chunk of zeroes.
    pub(super) fn take(&mut self) -> Chunk {
        if let Some(again) = self.free.pop() {
            let mut chunk = Chunk(again);
            self.bytes_mut(&mut chunk).fill(0);
            return chunk;
        }
        if self.begun as usize == self.slabs.len() * CHUNKS_PER_SLAB {
            self.slabs.push(map());
        }
        self.begun += 1;
        Chunk(self.begun - 1)
    }

    /// Takes a chunk back. All memory goes back to the system when no chunk is in use.
    pub(super) fn give(&mut self, chunk: Chunk) {
        self.free.push(chunk.0);
        if self.free.len() == self.begun as usize {
            *self = Slabs::new();
        }
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

/// Maps memory. The kernel provides it when it is first used.
fn map() -> MmapMut {
    let length = CHUNKS_PER_SLAB * CHUNK as usize;
    let Ok(slab) = MmapMut::map_anon(length) else {
        // The same failure as that of the allocator without memory.
        std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; CHUNK as usize]>());
    };
    // A kernel without huge pages uses small ones.
    let _ = slab.advise(Advice::HugePage);
    slab
}

/// 64 MiB in a mapping: before Linux 6.7 the kernel uses only huge pages that lie within one
/// mapping.
const CHUNKS_PER_SLAB: usize = 1024;

#[cfg(test)]
mod tests {
    use super::{CHUNK, CHUNKS_PER_SLAB, Slabs};

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
}
