//! A write in the cache of a lossy store.

use std::ops::Range;
use std::sync::Arc;

use dashpot_engine::{Instant, ZioId};

use super::disk_sectors::SECTOR;

/// The cause of a write.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    /// The zio that waits for the result. Without one, the result counts as told at once.
    pub(crate) zio: Option<ZioId>,
    /// The name of the client. A pool's disk has the pool and its volumes as clients.
    pub(crate) client: Arc<str>,
    /// How many results the clients of disks had been told when the zio arrived at the disk.
    pub(crate) told_before: u64,
    /// When the shard asked the store.
    pub(crate) at: Instant,
}

/// A write that has at least one version in the cache.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) number: u64,
    pub(super) client: Arc<str>,
    /// When the shard asked the store for the write.
    pub(super) at: Instant,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// The written bytes. `None` stands for zeroes.
    pub(super) data: Option<Arc<[u8]>>,
    pub(super) fua: bool,
    /// The number of the result that the client was told: the write is done.
    pub(super) told: Option<u64>,
    /// Whether a power cut has kept the write, so that it must reach the medium, although no flush covers it.
    pub(super) sure: bool,
    /// How many versions in the cache come from this write.
    pub(super) versions: u64,
}

/// The writes that are durable whatever their replies say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Covered {
    /// How many results are covered: a client was told of a flush that covers them, or the cache was full.
    pub(super) told: Option<u64>,
    /// Writes with lower numbers are durable, whether or not their clients were told.
    pub(super) numbers: u64,
}

impl Write {
    /// Whether a power cut must not take the write.
    pub(super) fn is_durable(&self, covered: Covered) -> bool {
        let told = |at| self.fua || Some(at) <= covered.told;
        self.sure || self.number < covered.numbers || self.told.is_some_and(told)
    }

    /// How much of the cache the write takes, in bytes.
    pub(super) fn weight(&self) -> u64 {
        self.length.max(SECTOR)
    }

    /// The written bytes in a part of a sector. `None` stands for zeroes.
    pub(super) fn bytes(&self, index: u64, part: &Range<usize>) -> Option<&[u8]> {
        self.data.as_ref()?.get(self.place(index, part))
    }

    /// The place of a part of a sector in the written bytes.
    pub(super) fn place(&self, index: u64, part: &Range<usize>) -> Range<usize> {
        let place = |at: usize| (index * SECTOR + at as u64).saturating_sub(self.offset) as usize;
        place(part.start)..place(part.end)
    }

    /// The sectors that the write touches.
    pub(super) fn sectors(&self) -> Range<u64> {
        self.offset / SECTOR..(self.offset + self.length).div_ceil(SECTOR)
    }
}
