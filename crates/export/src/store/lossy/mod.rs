//! A store for tests: another store behind a volatile write cache, which a power cut empties.
//!
//! This store models the effect of a power cut on a disk. `kill -9` does not show that effect, because the
//! page cache survives a killed process. After a cut, any subset of the acknowledged writes that no flush has
//! covered may be on the medium, as if these writes had been made in any order. Each of these writes may be
//! whole or torn. A sector of 512 bytes is never torn within a write. A zio whose client got
//! no reply has not happened: such a write is lost, and a flush or a FUA write takes effect when its reply has
//! left. Until then, the cache keeps the bytes that the flush has replaced on the medium.
//!
//! The cache keeps every write since the last flush, because after a power cut an older one may be on the
//! medium. Like a real cache, it is bounded: when it is full, it writes to the medium early, without a sync.
//!
//! The store itself never waits for the medium. It makes [batches](Batch) of work, which the shard does a
//! little at a time if the medium is in memory, and hands to worker threads otherwise.

mod batch;
mod bytes;
mod cache;
mod cut;
mod disk_sectors;
mod run;
mod task;
mod tasks;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use dashpot_engine::{Instant, ZioId};
use smallvec::{SmallVec, smallvec};

use self::cache::{Cache, Visits};
use self::task::{Kind, Task};
use self::write::Write;
use super::medium::Medium;
use crate::power::{Cut, Loss};

pub(crate) use self::batch::{Batch, Settled};
pub(super) use self::disk_sectors::SECTOR;
pub(crate) use self::task::{Ended, Going};
pub(crate) use self::write::Asker;

/// A store that can lose unsynced writes.
#[derive(Debug)]
pub(crate) struct Lossy<M> {
    medium: M,
    cache: Cache,
    /// The tasks that are left, in order.
    tasks: VecDeque<Task>,
    /// The runs of the batch that is at the medium. They belong to the first task.
    at_medium: Option<Visits>,
    /// The zios whose clients wait for a reply.
    asks: HashMap<ZioId, Ask>,
    /// For each read that a worker thread does: the cached bytes when it began.
    reads: HashMap<ZioId, Vec<CachedBytes>>,
    /// Whether no batch may begin, because a power cut waits for the last one.
    paused: bool,
    /// How many bytes a full cache has sent to the medium since the last flush or power cut.
    early: u64,
}

/// Cached bytes, with their place in a read. `None` stands for zeroes.
type CachedBytes = (Range<usize>, Option<Box<[u8]>>);

/// A zio whose client waits for a reply.
#[derive(Debug, Default)]
struct Ask {
    /// The numbers of its writes. A zio whose work is done in pieces has several.
    writes: SmallVec<[u64; 1]>,
    /// For a flush, how many results clients had been told when it arrived.
    flush: Option<u64>,
}

/// A change of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    Write {
        offset: u64,
        bytes: &'a [u8],
        fua: bool,
    },
    Zero {
        offset: u64,
        length: u64,
        /// Whether the zeroes must be durable at the end.
        fua: bool,
        /// Whether this is the last piece of the zio.
        last: bool,
    },
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeAnswer {
    Done,
    /// The change is done when a task has [ended](Ended::Done).
    Later,
    /// The cache is full. The caller must [park](Lossy::park) the zio and ask again later.
    Full,
}

/// The zios of clients.
impl<M: Medium> Lossy<M> {
    pub(crate) fn new(medium: M, size: u64) -> Lossy<M> {
        Lossy {
            medium,
            cache: Cache::new(size),
            tasks: VecDeque::new(),
            at_medium: None,
            asks: HashMap::new(),
            reads: HashMap::new(),
            paused: false,
            early: 0,
        }
    }

    pub(crate) fn inner(&self) -> &M {
        &self.medium
    }

    pub(crate) fn ask(&mut self, asker: Asker, change: Change<'_>) -> ChangeAnswer {
        let zio = asker.zio;
        let (offset, length, data, fua, last) = match change {
            Change::Flush => {
                let covers = asker.told_before;
                if let Some(zio) = zio {
                    self.asks.entry(zio).or_default().flush = Some(covers);
                }
                self.push(Kind::Flush { zio, covers }, 0..u64::MAX);
                return ChangeAnswer::Later;
            }
            Change::Write { offset, bytes, fua } => {
                (offset, bytes.len() as u64, Some(bytes.into()), fua, true)
            }
            Change::Zero {
                offset,
                length,
                fua,
                last,
            } => (offset, length, None, fua, last),
        };
        if self.is_full_for(length) {
            return ChangeAnswer::Full;
        }
        let number = self.cache.insert(asker, offset, length, data, fua);
        let numbers = match zio {
            Some(zio) => {
                let ask = self.asks.entry(zio).or_default();
                ask.writes.push(number);
                ask.writes.clone()
            }
            None => smallvec![number],
        };
        if !fua || !last {
            return ChangeAnswer::Done;
        }
        let sectors = self.sectors_of(&numbers);
        let numbers = numbers.into_vec();
        self.push(Kind::Fua { zio, numbers }, sectors);
        ChangeAnswer::Later
    }

    /// Whether the cache has no room for a change of this many bytes.
    pub(crate) fn is_full_for(&self, length: u64) -> bool {
        self.cache.is_full_for(length)
    }

    /// Keeps a zio that the cache had no room for. Of its bytes, `done` are in the cache.
    pub(crate) fn park(&mut self, zio: ZioId, done: u64) {
        if !self.tasks.iter().any(Task::makes_room) {
            self.push(Kind::Early { begun: false }, 0..u64::MAX);
        }
        self.push(Kind::Retry { zio, done }, 0..0);
    }

    /// Takes the zios that wait for room in the cache, each with the number of its bytes that are done.
    pub(crate) fn take_parked(&mut self) -> Vec<(ZioId, u64)> {
        let parked = self.tasks.iter().filter_map(Task::parked).collect();
        self.tasks.retain(|task| task.parked().is_none());
        parked
    }

    /// Notes that a zio's client has got the reply, so that the zio has happened. `told` is the number of
    /// this result. Returns whether the store has something to do now.
    pub(crate) fn told(&mut self, zio: ZioId, told: u64) -> bool {
        let Some(ask) = self.asks.remove(&zio) else {
            return false;
        };
        for number in &ask.writes {
            self.cache.tell(*number, told);
        }
        let is_fua = |number: &u64| self.cache.writes.get(number).is_some_and(|write| write.fua);
        if let Some(covers) = ask.flush {
            self.cache.cover(covers);
            self.early = 0;
            self.push(Kind::Clean, 0..u64::MAX);
        } else if ask.writes.iter().any(is_fua) {
            let sectors = self.sectors_of(&ask.writes);
            self.push(Kind::Clean, sectors);
        }
        self.has_tasks()
    }

    /// Notes that a zio is gone. If its client got no reply until now, it will never get one.
    pub(crate) fn forget(&mut self, zio: ZioId) {
        self.asks.remove(&zio);
        self.reads.remove(&zio);
    }

    /// Fills in the cached bytes of a range that the caller has read from the medium.
    pub(crate) fn fill_in(&self, offset: u64, into: &mut [u8]) {
        let length = into.len() as u64;
        self.cache
            .paint(offset, length, |range, bytes| put(into, range, bytes));
    }

    /// Remembers the cached bytes of a range, because a worker thread begins to read it. Later, the medium
    /// may have newer bytes than it had when the thread read it.
    pub(crate) fn begin_read(&mut self, zio: ZioId, offset: u64, length: u64) {
        let mut cached = Vec::new();
        self.cache.paint(offset, length, |range, bytes| {
            cached.push((range, bytes.map(Box::from)));
        });
        if !cached.is_empty() {
            self.reads.insert(zio, cached);
        }
    }

    /// Fills in what `begin_read` has remembered.
    pub(crate) fn end_read(&mut self, zio: ZioId, into: &mut [u8]) {
        for (range, bytes) in self.reads.remove(&zio).into_iter().flatten() {
            if range.end <= into.len() {
                put(into, range, bytes.as_deref());
            }
        }
    }

    pub(crate) fn fault(&self) -> Option<&str> {
        self.medium.fault()
    }

    /// The sectors of these writes, from the first to the last.
    fn sectors_of(&self, numbers: &[u64]) -> Range<u64> {
        let writes = numbers
            .iter()
            .filter_map(|number| self.cache.writes.get(number));
        let ranges = writes.map(Write::sectors);
        let join =
            |one: Range<u64>, other: Range<u64>| one.start.min(other.start)..one.end.max(other.end);
        ranges.reduce(join).unwrap_or(0..0)
    }
}

/// Power cuts.
impl<M: Medium> Lossy<M> {
    /// Makes no new batch begin until [`Lossy::resume`].
    pub(crate) fn pause(&mut self) {
        self.paused = true;
    }

    pub(crate) fn resume(&mut self) {
        self.paused = false;
    }

    /// Whether a worker thread does a batch.
    pub(crate) fn is_at_medium(&self) -> bool {
        self.at_medium.is_some()
    }

    /// Empties the cache as a power cut does. No batch may be at the medium. The loss is final when the task
    /// has [ended](Ended::Restored) that makes the medium agree with it.
    pub(crate) fn cut(&mut self, cut: &Cut, now: Instant) -> Loss {
        let asks = self.asks.values().filter(|_| cut.goes_on());
        let pending = asks.flat_map(|ask| ask.writes.iter().copied()).collect();
        let early_bytes = std::mem::take(&mut self.early);
        let loss = self.cache.cut(cut, &pending, now);
        let restore = Task::new(Kind::Restore, 0..u64::MAX);
        self.tasks.push_front(restore);
        Loss {
            early_bytes,
            ..loss
        }
    }
}

fn put(into: &mut [u8], range: Range<usize>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => into[range].copy_from_slice(bytes),
        None => into[range].fill(0),
    }
}
