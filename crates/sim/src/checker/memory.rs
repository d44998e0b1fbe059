//! The contents of buffers. A buffer must not change while a disk reads or fills it, or while it is lent to a
//! client's read.

use dashpot_engine::{Buf, Span};

use super::sectors::Content;

/// All buffers.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    buffers: Vec<Buffer>,
}

#[derive(Clone, Debug, Default)]
struct Buffer {
    /// The contents of the buffer's sectors, up to the last sector that was ever filled.
    sectors: Vec<Content>,
    /// The size of the buffer in bytes, if it is known. A buffer is as large as the blocks of its volume.
    size: Option<u32>,
    /// How many disks now write out the buffer, or read into it.
    disks: u32,
    /// Whether the buffer holds the data of a reply.
    lent: bool,
}

impl Memory {
    pub(crate) fn read(&self, span: Span) -> impl Iterator<Item = Content> {
        let buffer = self.buffers.get(span.buf.0 as usize);
        (sector(span.at)..sector(span.at + span.length)).map(move |at| {
            let content = buffer.and_then(|buffer| buffer.sectors.get(at));
            content.copied().unwrap_or(Content::UNKNOWN)
        })
    }

    pub(crate) fn write(
        &mut self,
        span: Span,
        contents: impl Iterator<Item = Content>,
    ) -> Result<(), String> {
        let buffer = self.changing(span.buf)?;
        buffer.fill(sector(span.at), contents);
        Ok(())
    }

    pub(crate) fn clone_buf(&mut self, from: Buf, to: Buf) -> Result<(), String> {
        let from = self.get_mut(from).clone();
        let to = self.changing(to)?;
        (to.sectors, to.size) = (from.sectors, from.size);
        Ok(())
    }

    pub(crate) fn free(&mut self, buf: Buf) -> Result<(), String> {
        let buffer = self.changing(buf)?;
        buffer.sectors.clear();
        buffer.size = None;
        Ok(())
    }

    /// Notes that the buffer belongs to a volume with blocks of this size.
    pub(crate) fn learn_size(&mut self, buf: Buf, size: u32) {
        self.get_mut(buf).size = Some(size);
    }

    /// Notes that a disk begins to work on a buffer.
    pub(crate) fn disk_begins(&mut self, buf: Buf) {
        self.get_mut(buf).disks += 1;
    }

    /// Notes that a disk has finished its work on a buffer.
    pub(crate) fn disk_ends(&mut self, buf: Buf) {
        self.get_mut(buf).disks -= 1;
    }

    /// Notes that the buffer holds the data of a reply.
    pub(crate) fn lend(&mut self, buf: Buf) {
        self.get_mut(buf).lent = true;
    }

    /// Notes that the reply with the buffer's data has left, or will never leave.
    pub(crate) fn take_back(&mut self, buf: Buf) {
        self.get_mut(buf).lent = false;
    }

    fn get_mut(&mut self, buf: Buf) -> &mut Buffer {
        let at = buf.0 as usize;
        if self.buffers.len() <= at {
            self.buffers.resize_with(at + 1, Buffer::default);
        }
        &mut self.buffers[at]
    }

    fn changing(&mut self, buf: Buf) -> Result<&mut Buffer, String> {
        let buffer = self.get_mut(buf);
        if buffer.disks > 0 {
            return Err(format!(
                "buffer {} is changed while a disk works on it",
                buf.0
            ));
        }
        if buffer.lent {
            return Err(format!("buffer {} is changed while it is lent", buf.0));
        }
        Ok(buffer)
    }
}

impl Buffer {
    fn fill(&mut self, first: usize, contents: impl Iterator<Item = Content>) {
        for (at, content) in (first..).zip(contents) {
            if self.sectors.len() <= at {
                self.sectors.resize(at + 1, Content::UNKNOWN);
            }
            self.sectors[at] = content;
        }
    }
}

fn sector(byte: u32) -> usize {
    byte as usize / 512
}
