//! Moves bytes between clients' requests and the blocks that volumes keep in memory.

use dashpot_engine::{Buf, Move, Span, ZioId};

use super::StoreWork;
use super::pool::whole;
use crate::shard::submission::Submission;

impl StoreWork<'_> {
    /// Carries out a move of bytes. `submission` is the write that the shard is submitting, if any.
    pub(crate) fn move_bytes(&mut self, action: Move, submission: &mut Option<Submission<'_>>) {
        if !matches!(action, Move::Free(_)) {
            self.fill_block(submission);
        }
        match action {
            Move::CopyIn { zio, from, to } => self.copy_in(zio, from, to, submission),
            Move::CopyOut { zio, to, from } => self.copy_out(zio, to, from),
            Move::Lend { zio, from } => self.zios.slots[zio].lend(from),
            Move::ZeroOut { zio, to, length } => self.zios.reply_part(zio, to, length).fill(0),
            Move::Zero(span) => {
                let size = self.size_of(span.buf);
                if let Some(bytes) = self.storage.blocks.write(span, size) {
                    bytes.fill(0);
                }
            }
            Move::Clone { from, to } => {
                let size = self.size_of(to);
                self.storage.blocks.copy(from, to, size);
            }
            Move::Free(block) => {
                self.storage.blocks.forget(block);
                if let Some(submission) = submission {
                    submission.forget(block);
                }
            }
        }
    }

    fn copy_in(
        &mut self,
        zio: ZioId,
        from: u32,
        to: Span,
        submission: &mut Option<Submission<'_>>,
    ) {
        let size = self.size_of(to.buf);
        let slot = &mut self.zios.slots[zio];
        let mut own = submission.as_mut().filter(|write| write.zio() == zio);
        let is_put_off = own.as_mut().is_some_and(|write| write.put_off(to, size));
        if !is_put_off {
            let payload = own.map_or(slot.payload(), |write| write.payload());
            let part = from as usize..(from + to.length) as usize;
            if let (Some(block), Some(bytes)) =
                (self.storage.blocks.write(to, size), payload.get(part))
            {
                block.copy_from_slice(bytes);
            }
        }
        if slot.copied(to.length) {
            self.zios.end_work(zio);
        }
    }

    fn copy_out(&mut self, zio: ZioId, to: u32, from: Span) {
        let reply = self.zios.reply_part(zio, to, from.length);
        match self.storage.blocks.on_disk(from.buf) {
            Some(place) => {
                let offset = place.offset + u64::from(from.at);
                self.storage
                    .stores
                    .read_in_memory(place.disk, offset, reply);
            }
            None => {
                if let Some(bytes) = self.storage.blocks.read(from) {
                    reply.copy_from_slice(bytes);
                }
            }
        }
    }

    /// Moves a block's content into memory, if the content was left on a disk.
    pub(crate) fn load(&mut self, block: Buf) {
        let size = self.size_of(block);
        if let Some(place) = self.storage.blocks.on_disk(block)
            && let Some(into) = self.storage.blocks.write(whole(block, size), size)
        {
            self.storage
                .stores
                .read_in_memory(place.disk, place.offset, into);
        }
    }

    /// Copies a write's payload to its block now, if the submission has put off the copy.
    pub(crate) fn fill_block(&mut self, submission: &mut Option<Submission<'_>>) {
        let Some(write) = submission else {
            return;
        };
        if let Some(block) = write.take_block()
            && let size = self.size_of(block)
            && let Some(block) = self.storage.blocks.write(whole(block, size), size)
        {
            block.copy_from_slice(write.payload());
        }
    }

    fn size_of(&self, buf: Buf) -> u32 {
        self.engine.buffer_size(buf).unwrap_or(0)
    }
}
