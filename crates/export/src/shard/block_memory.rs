//! The bytes of the blocks that volumes keep in memory. Each block has a name ([`Buf`]), which the engine
//! gives out.

use dashpot_engine::{Buf, Span};

/// The memory of all blocks of a shard. When the engine frees the name of a block, the block's memory is
/// kept, because the engine reuses freed names first. So the shard holds as many bytes as were ever in use at
/// once.
#[derive(Debug, Default)]
pub(super) struct BlockMemory {
    /// The memory of each block, by name. A block that was never written has no bytes yet.
    blocks: Vec<Box<[u8]>>,
    held: u64,
}

impl BlockMemory {
    /// The number of bytes that all blocks hold.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// A part of a block.
    pub(super) fn read(&self, span: Span) -> Option<&[u8]> {
        let block = self.blocks.get(span.buf.0 as usize)?;
        block.get(range(span))
    }

    /// A part of a block of `size` bytes, which the caller can overwrite.
    pub(super) fn write(&mut self, span: Span, size: u32) -> Option<&mut [u8]> {
        self.allocate(span.buf, size).get_mut(range(span))
    }

    /// Copies a whole block of `size` bytes to another block.
    pub(super) fn copy(&mut self, from: Buf, to: Buf, size: u32) {
        self.allocate(from, size);
        self.allocate(to, size);
        let places = [from.0 as usize, to.0 as usize];
        if let Ok([from, to]) = self.blocks.get_disjoint_mut(places) {
            to.copy_from_slice(from);
        }
    }

    fn allocate(&mut self, buf: Buf, size: u32) -> &mut [u8] {
        let at = buf.0 as usize;
        if self.blocks.len() <= at {
            self.blocks.resize_with(at + 1, Box::default);
        }
        let block = &mut self.blocks[at];
        if block.is_empty() {
            *block = vec![0; size as usize].into();
            self.held += u64::from(size);
        }
        block
    }
}

fn range(span: Span) -> std::ops::Range<usize> {
    let start = span.at as usize;
    start..start + span.length as usize
}

#[cfg(test)]
mod tests {
    use super::BlockMemory;
    use dashpot_engine::{Buf, Span};

    fn span(buf: u32, at: u32, length: u32) -> Span {
        let buf = Buf(buf);
        Span { buf, at, length }
    }

    #[test]
    fn a_block_keeps_its_bytes_and_its_memory() {
        let mut memory = BlockMemory::default();
        memory.write(span(3, 2, 2), 8).unwrap().fill(7);
        memory.copy(Buf(3), Buf(1), 8);
        let expected = [0, 0, 7, 7, 0, 0, 0, 0];
        assert_eq!(memory.read(span(1, 0, 8)), Some(&expected[..]));
        assert_eq!(memory.held(), 16);
        memory.write(span(1, 0, 8), 8).unwrap().fill(1);
        assert_eq!(memory.read(span(3, 2, 2)), Some(&[7, 7][..]));
        assert_eq!(memory.held(), 16);
    }

    #[test]
    fn bytes_outside_of_blocks_are_none() {
        let mut memory = BlockMemory::default();
        assert_eq!(memory.read(span(0, 0, 1)), None);
        assert!(memory.write(span(0, 7, 2), 8).is_none());
        assert_eq!(memory.read(span(0, 7, 2)), None);
    }
}
