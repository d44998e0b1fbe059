//! A write that the shard is submitting, while the write's payload is still in the receive buffer.

use std::ops::Range;

use dashpot_engine::{Buf, Span, ZioId};

/// The write that the shard is submitting to the engine.
pub(super) struct Submission<'a> {
    zio: ZioId,
    /// The bytes of the receive buffer.
    received: &'a [u8],
    /// The place of the payload in the receive buffer.
    place: Range<usize>,
    /// The block that is to get the payload, as long as the shard has not copied the payload there. A volume
    /// that writes through often frees the block in the same step. The shard then never copies the payload
    /// to the block, but directly to the disk.
    block: Option<Buf>,
}

impl<'a> Submission<'a> {
    pub(super) fn new(zio: ZioId, received: &'a [u8], place: Range<usize>) -> Submission<'a> {
        Submission {
            zio,
            received,
            place,
            block: None,
        }
    }

    pub(super) fn zio(&self) -> ZioId {
        self.zio
    }

    pub(super) fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    pub(super) fn payload(&self) -> &'a [u8] {
        &self.received[self.place()]
    }

    /// Puts off the copy of the payload to a block of `size` bytes. Returns false if the payload is not the
    /// whole content of the block.
    pub(super) fn put_off(&mut self, to: Span, size: u32) -> bool {
        let whole = to.length == size && self.place.len() == size as usize;
        if whole {
            self.block = Some(to.buf);
        }
        whole
    }

    /// Whether the payload is the content of a block, but has not been copied to the block.
    pub(super) fn is_content_of(&self, block: Buf) -> bool {
        self.block == Some(block)
    }

    /// Forgets the copy to a block that is no longer in use.
    pub(super) fn forget(&mut self, block: Buf) {
        self.block.take_if(|put_off| *put_off == block);
    }

    /// The block to which the caller must now copy the payload.
    pub(super) fn take_block(&mut self) -> Option<Buf> {
        self.block.take()
    }
}
