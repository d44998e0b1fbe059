//! Where the bytes of a disk really are.
//!
//! A [`Store`] belongs to one shard, which must never wait. So every operation is an *attempt*:
//! it is done at once, or it [would block](Attempt::WouldBlock), and then the shard hands it to a
//! thread of the [`Pool`], which does it on the same [`FileStore`].
//!
//! Stores trust their caller with ranges: all of them lie within the size that [`open_all`] gave.

mod error;
mod extent;
mod file;
mod lossy;
mod memory;
mod open;
mod pieces;
mod pool;
mod ram;
mod slabs;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use dashpot_engine::{Errno, Instant, Outcome, ZioId};

use crate::power::{Cut, Loss};

pub use error::StoreError;
pub use memory::available_memory;

pub(crate) use error::Size;
pub(crate) use extent::Extent;
pub(crate) use file::FileStore;
pub(crate) use lossy::{Asker, Lossy};
pub(crate) use open::{Adoption, Opened, open_all};
pub(crate) use pool::{FileOperation, Finished, Job, Pool};
pub(crate) use ram::{Ram, SLICE};

/// How an attempt went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It is done.
    Done(Outcome),
    /// Nothing that counts has happened: the whole of it is for [`Store::blocking`].
    WouldBlock,
}

/// Where the bytes of one disk are.
#[derive(Debug)]
pub(crate) enum Store {
    Ram(Ram),
    /// Reads give zeroes, writes are forgotten.
    Null,
    File(Arc<FileStore>),
    Lossy(Box<Lossy>),
}

impl Store {
    /// Fills `into` from `offset`.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Attempt {
        match self {
            Store::Ram(ram) => ram.read(offset, into),
            Store::Null => into.fill(0),
            Store::File(file) => return file.try_read(offset, into),
            Store::Lossy(lossy) => return Attempt::Done(lossy.read(offset, into)),
        }
        Attempt::Done(Ok(()))
    }

    /// A range where it is, for stores that [read at reply](Store::reads_at_reply).
    pub(crate) fn slices(&self, offset: u64, length: u64) -> impl Iterator<Item = &[u8]> {
        // A null store reads as memory that was never written.
        let ram = match self {
            Store::Ram(ram) => ram,
            Store::Null | Store::File(_) | Store::Lossy(_) => const { &Ram::new() },
        };
        ram.slices(offset, length)
    }

    /// Writes `from` at `offset`; with `fua` it is durable when it is done.
    pub(crate) fn write(&mut self, offset: u64, from: &[u8], fua: bool) -> Attempt {
        match self {
            Store::Ram(ram) => ram.write(offset, from),
            Store::Null => {}
            Store::File(_) if fua => return Attempt::WouldBlock,
            Store::File(file) => return file.try_write(offset, from),
            Store::Lossy(lossy) => return Attempt::Done(lossy.write(offset, from, fua)),
        }
        Attempt::Done(Ok(()))
    }

    /// Makes a range read as zeroes; with `no_hole` its space stays, or becomes, allocated.
    pub(crate) fn zero(&mut self, offset: u64, length: u64, no_hole: bool, fua: bool) -> Attempt {
        match self {
            Store::Ram(ram) => ram.zero(offset, length, no_hole),
            Store::Null => {}
            Store::File(_) => return Attempt::WouldBlock,
            Store::Lossy(lossy) => return Attempt::Done(lossy.zero(offset, length, fua)),
        }
        Attempt::Done(Ok(()))
    }

    /// Gives a range back. It reads as zeroes, except on file systems that cannot give it back.
    pub(crate) fn trim(&mut self, offset: u64, length: u64, fua: bool) -> Attempt {
        self.zero(offset, length, false, fua)
    }

    /// Makes durable whatever was done before.
    pub(crate) fn flush(&mut self) -> Attempt {
        match self {
            Store::Ram(_) | Store::Null => Attempt::Done(Ok(())),
            Store::File(_) => Attempt::WouldBlock,
            Store::Lossy(lossy) => Attempt::Done(lossy.flush()),
        }
    }

    /// What a range is made of: at most `limit` extents in `out`, neighbours unlike each other.
    /// They may stop before the range does. For files this asks the file system, whose answer
    /// comes from its own memory, or in rare cases from the medium.
    pub(crate) fn extents(&self, offset: u64, length: u64, limit: usize, out: &mut Vec<Extent>) {
        let found = extent::Found::new(out, limit);
        match self {
            Store::Ram(ram) => ram.extents(offset, length, found),
            Store::Null => found.only(length, true),
            Store::File(file) => file.extents(offset, length, found),
            Store::Lossy(_) => found.only(length, false),
        }
    }

    /// Whether reading is cheap and never blocks, so that a held read need not hold its bytes.
    pub(crate) fn reads_at_reply(&self) -> bool {
        matches!(self, Store::Ram(_) | Store::Null)
    }

    /// Whether writing is cheap and never fails, so that it can be called done before it is.
    pub(crate) fn copies_later(&self) -> bool {
        matches!(self, Store::Ram(_))
    }

    /// What does the attempts that would block, from any thread.
    pub(crate) fn blocking(&self) -> Option<&Arc<FileStore>> {
        match self {
            Store::File(file) => Some(file),
            Store::Ram(_) | Store::Null | Store::Lossy(_) => None,
        }
    }

    /// Why what this store says of durability can no longer be trusted, if it cannot.
    pub(crate) fn fault(&self) -> Option<&str> {
        match self {
            Store::Ram(_) | Store::Null => None,
            Store::File(file) => file.fault(),
            Store::Lossy(lossy) => lossy.fault(),
        }
    }

    /// Whether a power cut loses what was not synced.
    pub(crate) fn loses(&self) -> bool {
        matches!(self, Store::Lossy(_))
    }

    /// Loses what was not synced, as a power cut does. `None` if this store never loses anything.
    pub(crate) fn cut(&mut self, cut: &Cut, now: Instant) -> Option<Result<Loss, Errno>> {
        self.lossy().map(|lossy| lossy.cut(cut, now))
    }

    /// Names the zio that the next write is for, to a store that must know.
    pub(crate) fn set_asker(&mut self, asker: impl FnOnce() -> Asker) {
        if let Some(lossy) = self.lossy() {
            lossy.set_asker(asker());
        }
    }

    /// A zio has been replied to.
    pub(crate) fn acknowledge(&mut self, zio: ZioId) {
        if let Some(lossy) = self.lossy() {
            lossy.acknowledge(zio);
        }
    }

    /// A zio is gone.
    pub(crate) fn forget(&mut self, zio: ZioId) {
        if let Some(lossy) = self.lossy() {
            lossy.forget(zio);
        }
    }

    fn lossy(&mut self) -> Option<&mut Lossy> {
        match self {
            Store::Lossy(lossy) => Some(lossy),
            Store::Ram(_) | Store::Null | Store::File(_) => None,
        }
    }
}
