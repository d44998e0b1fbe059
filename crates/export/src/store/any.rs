//! A store of any kind.

use std::sync::Arc;

#[cfg(test)]
use dashpot_engine::Instant;
use dashpot_engine::{Errno, Outcome};

use super::attempt::Attempt;
use super::blocking::Blocking;
use super::device::DeviceStore;
use super::extent::{Extent, Found};
use super::file::FileStore;
use super::lossy::{Change, Lossy};
use super::medium::Medium;
use super::ram::Ram;
#[cfg(test)]
use crate::power::{Cut, Loss};

/// The bytes of one disk.
#[derive(Debug)]
pub(crate) enum Store {
    Ram(Box<Ram>),
    /// Reads give zeroes, and writes are dropped.
    Null,
    File(Arc<FileStore>),
    Device(Arc<DeviceStore>),
    Lossy(Box<Lossy<Store>>),
}

impl Store {
    /// Fills `into` with the bytes at `offset`.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Attempt {
        match self {
            Store::Ram(ram) => ram.read(offset, into),
            Store::Null => into.fill(0),
            Store::File(file) => return file.try_read(offset, into),
            Store::Device(_) => return Attempt::WouldBlock,
            Store::Lossy(lossy) => {
                let attempt = lossy.inner().read(offset, into);
                if attempt == Attempt::Done(Ok(())) {
                    lossy.fill_in(offset, into);
                }
                return attempt;
            }
        }
        Attempt::Done(Ok(()))
    }

    /// The bytes of a range, borrowed from a store that [reads at reply](Store::reads_at_reply).
    pub(crate) fn slices(&self, offset: u64, length: u64) -> impl Iterator<Item = &[u8]> {
        // A null store reads like a RAM disk that was never written.
        let ram = match self {
            Store::Ram(ram) => ram,
            Store::Null | Store::File(_) | Store::Device(_) | Store::Lossy(_) => {
                const { &Ram::new() }
            }
        };
        ram.slices(offset, length)
    }

    /// Writes the bytes of `from` at `offset`. With `fua`, the data is durable once the write is done.
    pub(crate) fn write(&mut self, offset: u64, from: &[u8], fua: bool) -> Attempt {
        match self {
            Store::Ram(ram) => ram.write(offset, from),
            Store::Null => {}
            Store::File(_) if fua => return Attempt::WouldBlock,
            Store::Device(_) => return Attempt::WouldBlock,
            Store::File(file) => return file.try_write(offset, from),
            Store::Lossy(lossy) => {
                let bytes = from;
                return Attempt::Done(lossy.change_now(Change::Write { offset, bytes, fua }));
            }
        }
        Attempt::Done(Ok(()))
    }

    /// Makes a range read as zeroes. With `no_hole`, the range keeps its space, or gets space if it has none.
    pub(crate) fn zero(&mut self, offset: u64, length: u64, no_hole: bool, fua: bool) -> Attempt {
        match self {
            Store::Ram(ram) => ram.zero(offset, length, no_hole),
            Store::Null => {}
            Store::File(_) | Store::Device(_) => return Attempt::WouldBlock,
            Store::Lossy(lossy) => {
                let last = true;
                let change = Change::Zero {
                    offset,
                    length,
                    fua,
                    last,
                };
                return Attempt::Done(lossy.change_now(change));
            }
        }
        Attempt::Done(Ok(()))
    }

    /// Frees the space of a range. The range then reads as zeroes, unless the file system cannot punch holes.
    pub(crate) fn trim(&mut self, offset: u64, length: u64, fua: bool) -> Attempt {
        self.zero(offset, length, false, fua)
    }

    /// Makes all earlier writes durable.
    pub(crate) fn flush(&mut self) -> Attempt {
        match self {
            Store::Ram(_) | Store::Null => Attempt::Done(Ok(())),
            Store::File(_) | Store::Device(_) => Attempt::WouldBlock,
            Store::Lossy(lossy) => Attempt::Done(lossy.sync_all()),
        }
    }

    /// Puts the extents of a range into `out`: data and holes in turn, and at most `limit` of them. They may
    /// cover only the beginning of the range. A store in a file asks the file system, which usually answers
    /// from memory.
    pub(crate) fn extents(&self, offset: u64, length: u64, limit: usize, out: &mut Vec<Extent>) {
        let found = Found::new(out, limit);
        match self {
            Store::Ram(ram) => ram.extents(offset, length, found),
            Store::Null => found.only(length, true),
            Store::File(file) => file.extents(offset, length, found),
            Store::Device(_) | Store::Lossy(_) => found.only(length, false),
        }
    }

    /// Whether reads are cheap and never block, so that the shard reads only when it sends the reply. Until
    /// then, a held read takes no memory.
    pub(crate) fn reads_at_reply(&self) -> bool {
        matches!(self, Store::Ram(_) | Store::Null)
    }

    /// Whether writes are cheap and never fail, so that the shard may report a write as done before it copies
    /// the bytes.
    pub(crate) fn copies_later(&self) -> bool {
        matches!(self, Store::Ram(_))
    }

    /// The store for worker threads, which repeat the attempts that would block. `None` if no attempt would.
    pub(crate) fn blocking(&self) -> Option<Arc<dyn Blocking>> {
        match self {
            Store::File(file) => Some(Arc::clone(file) as Arc<_>),
            Store::Device(device) => Some(Arc::clone(device) as Arc<_>),
            Store::Lossy(lossy) => lossy.inner().blocking(),
            Store::Ram(_) | Store::Null => None,
        }
    }

    /// The store below all caches, if it is in a file.
    pub(crate) fn file(&self) -> Option<&Arc<FileStore>> {
        match self.innermost() {
            Store::File(file) => Some(file),
            _ => None,
        }
    }

    /// The store below all caches.
    pub(crate) fn innermost(&self) -> &Store {
        match self {
            Store::Lossy(lossy) => lossy.inner().innermost(),
            store => store,
        }
    }

    /// Whether the store's bytes outlive this process, at least those bytes that a flush has covered.
    pub(crate) fn outlives(&self) -> bool {
        matches!(self.innermost(), Store::File(_) | Store::Device(_))
    }

    /// A text that identifies the store's bytes among those of all stores. `None` if these bytes do not
    /// survive the end of this process.
    pub(crate) fn identity(&self) -> Option<String> {
        match self {
            // When the process ends, a lossy store loses unflushed data, as in a power cut.
            Store::Ram(_) | Store::Null | Store::Lossy(_) => None,
            Store::File(file) => file.identity(),
            Store::Device(device) => device.identity(),
        }
    }

    /// This store, if it is on a block device. The shard's ring does the work of such a store.
    pub(crate) fn device(&self) -> Option<&Arc<DeviceStore>> {
        match self {
            Store::Device(device) => Some(device),
            Store::Ram(_) | Store::Null | Store::File(_) | Store::Lossy(_) => None,
        }
    }

    /// Whether a read of this length may block or take so long that the shard should not try it.
    pub(crate) fn reads_slowly(&self, length: u64) -> bool {
        match self {
            Store::File(_) => length > INLINE_MAX,
            Store::Device(_) => true,
            Store::Lossy(lossy) => lossy.inner().reads_slowly(length),
            Store::Ram(_) | Store::Null => false,
        }
    }

    /// Whether a call can make the shard wait, although the store tries to avoid it.
    pub(crate) fn may_wait(&self) -> bool {
        matches!(self.innermost(), Store::File(_) | Store::Device(_))
    }

    /// Whether the shard itself does trims and zeroing, which keep it busy if they are long.
    pub(crate) fn zeroes_in_memory(&self) -> bool {
        matches!(self, Store::Ram(_) | Store::Null | Store::Lossy(_))
    }

    /// The reason that the store's durability can no longer be trusted, if there is one.
    pub(crate) fn fault(&self) -> Option<&str> {
        match self {
            Store::Ram(_) | Store::Null => None,
            Store::File(file) => file.fault(),
            Store::Device(device) => device.fault(),
            Store::Lossy(lossy) => lossy.fault(),
        }
    }

    /// Whether a power cut makes the store lose unsynced writes.
    pub(crate) fn loses(&self) -> bool {
        matches!(self, Store::Lossy(_))
    }

    /// Loses unsynced writes, as a power cut does, and waits for the medium. `None` if this store never loses
    /// anything.
    #[cfg(test)]
    pub(crate) fn cut(&mut self, cut: &Cut, now: Instant) -> Option<Result<Loss, Errno>> {
        let lossy = self.lossy_mut()?;
        let loss = lossy.cut(cut, now);
        Some(lossy.finish().map(|()| loss))
    }

    /// This store, if it can lose writes.
    pub(crate) fn lossy_mut(&mut self) -> Option<&mut Lossy<Store>> {
        match self {
            Store::Lossy(lossy) => Some(lossy),
            Store::Ram(_) | Store::Null | Store::File(_) | Store::Device(_) => None,
        }
    }
}

/// The operations that a cache above this store needs. Each blocks until it is done.
impl Medium for Store {
    fn waits(&self) -> bool {
        self.blocking().is_some()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Outcome {
        let attempt = self.read(offset, into);
        wait(self, attempt, |store| store.read(offset, into))
    }

    fn write(&mut self, offset: u64, from: &[u8]) -> Outcome {
        let attempt = self.write(offset, from, false);
        wait(self, attempt, |store| store.write(offset, from, false))
    }

    fn zero(&mut self, offset: u64, length: u64) -> Outcome {
        let attempt = self.zero(offset, length, false, false);
        wait(self, attempt, |store| {
            store.zero(offset, length, false, false)
        })
    }

    fn flush(&mut self) -> Outcome {
        let attempt = self.flush();
        wait(self, attempt, |store| store.sync())
    }

    fn fault(&self) -> Option<&str> {
        self.fault()
    }
}

/// Returns the outcome of an attempt. If the attempt would have blocked, calls `block` to repeat the
/// operation.
pub(super) fn wait(
    store: &Store,
    attempt: Attempt,
    block: impl FnOnce(&dyn Blocking) -> Outcome,
) -> Outcome {
    match (attempt, store.blocking()) {
        (Attempt::Done(outcome), _) => outcome,
        (Attempt::WouldBlock, Some(blocking)) => block(&*blocking),
        (Attempt::WouldBlock, None) => Err(Errno::Io),
    }
}

/// The longest read of a file that the shard itself tries, in bytes.
const INLINE_MAX: u64 = 256 << 10;
