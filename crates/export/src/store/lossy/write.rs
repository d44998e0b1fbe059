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
    /// When the zio arrived at the disk.
    pub(crate) arrived: Instant,
    /// When the shard asked the store.
    pub(crate) at: Instant,
}

/// A write that has at least one version in the cache.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) client: Arc<str>,
    /// When the shard asked the store for the write.
    pub(super) at: Instant,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// The written bytes. `None` stands for zeroes.
    pub(super) data: Option<Arc<[u8]>>,
    pub(super) fua: bool,
    /// When the client was told that the write is done.
    pub(super) told: Option<Instant>,
    /// Whether the write must reach the medium, although no flush covers it: the cache was full, or a power
    /// cut has kept the write.
    pub(super) sure: bool,
    /// How many versions in the cache come from this write.
    pub(super) versions: u64,
}

impl Write {
    /// Whether a power cut must not take the write. `covered` is the arrival of the last flush that a client
    /// was told of.
    pub(super) fn is_durable(&self, covered: Option<Instant>) -> bool {
        let told = |at| self.fua || Some(at) <= covered;
        self.sure || self.told.is_some_and(told)
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
