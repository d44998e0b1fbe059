//! The bytes of the blocks that volumes keep in memory. Each block has a name ([`Buf`]), which the engine
//! gives out.

use dashpot_engine::{Buf, DiskId, Span};

/// The memory of all blocks of a shard. When the engine frees the name of a block, the block's memory is
/// kept, because the engine reuses freed names first. So for each size of blocks, the shard holds memory
/// for no more blocks than were ever in use at once.
#[derive(Debug, Default)]
pub(super) struct BlockMemory {
    /// The blocks, by name.
    blocks: Vec<Block>,
    held: u64,
}

#[derive(Debug, Default)]
struct Block {
    /// The bytes. A block that was never written has none yet.
    memory: Box<[u8]>,
    /// The place of the content, if the content is still on a disk. The memory then means nothing.
    on_disk: Option<OnDisk>,
}

/// The place of a block on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnDisk {
    pub(super) disk: DiskId,
    pub(super) offset: u64,
}

impl BlockMemory {
    /// The number of bytes that all blocks hold.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// A part of a block whose content is in memory.
    pub(super) fn read(&self, span: Span) -> Option<&[u8]> {
        let block = self.blocks.get(span.buf.0 as usize)?;
        debug_assert_eq!(block.on_disk, None, "the content is not in memory");
        block.memory.get(range(span))
    }

    /// The place of a block's content, if the content was left on a disk.
    pub(super) fn on_disk(&self, buf: Buf) -> Option<OnDisk> {
        self.blocks.get(buf.0 as usize)?.on_disk
    }

    /// Notes that a block has the content of a place on a disk. The block needs no memory for it.
    pub(super) fn leave_on_disk(&mut self, buf: Buf, place: OnDisk) {
        self.block(buf).on_disk = Some(place);
    }

    /// Forgets the content of a block.
    pub(super) fn forget(&mut self, buf: Buf) {
        self.block(buf).on_disk = None;
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
            to.memory.copy_from_slice(&from.memory);
        }
    }

    /// The memory of a block. From now on, the block's content is in memory and not on a disk.
    fn allocate(&mut self, buf: Buf, size: u32) -> &mut [u8] {
        if self.block(buf).memory.is_empty() {
            self.block(buf).memory = vec![0; size as usize].into();
            self.held += u64::from(size);
        }
        let block = self.block(buf);
        block.on_disk = None;
        &mut block.memory
    }

    fn block(&mut self, buf: Buf) -> &mut Block {
        let at = buf.0 as usize;
        if self.blocks.len() <= at {
            self.blocks.resize_with(at + 1, Block::default);
        }
        &mut self.blocks[at]
    }
}

fn range(span: Span) -> std::ops::Range<usize> {
    let start = span.at as usize;
    start..start + span.length as usize
}

#[cfg(test)]
mod tests {
    use super::{BlockMemory, OnDisk};
    use dashpot_engine::{Buf, DiskId, Span};

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
    fn a_block_on_a_disk_takes_no_memory_until_it_is_overwritten() {
        let mut memory = BlockMemory::default();
        let (disk, offset) = (DiskId(1), 4096);
        memory.leave_on_disk(Buf(2), OnDisk { disk, offset });
        assert_eq!(memory.on_disk(Buf(2)), Some(OnDisk { disk, offset }));
        assert_eq!(memory.held(), 0);
        memory.write(span(2, 0, 8), 8).unwrap().fill(3);
        assert_eq!(memory.on_disk(Buf(2)), None);
        assert_eq!(memory.read(span(2, 0, 8)), Some(&[3; 8][..]));
        memory.leave_on_disk(Buf(2), OnDisk { disk, offset });
        memory.forget(Buf(2));
        assert_eq!(memory.on_disk(Buf(2)), None);
        assert_eq!(memory.held(), 8);
    }

    #[test]
    fn bytes_outside_of_blocks_are_none() {
        let mut memory = BlockMemory::default();
        assert_eq!(memory.read(span(0, 0, 1)), None);
        assert!(memory.write(span(0, 7, 2), 8).is_none());
        assert_eq!(memory.read(span(0, 7, 2)), None);
    }
}
