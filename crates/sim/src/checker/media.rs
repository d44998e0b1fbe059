//! The contents of a disk, and which of them are durable because they were flushed or written with FUA.
//!
//! If the power is lost, each sector of a write that is not durable may survive or be lost, independently of
//! every other sector. A disk writes its oldest cached data back by itself, so the cache is bounded.

use std::collections::VecDeque;

use dashpot_engine::Random;

use super::sectors::{Content, Sparse};

/// The contents of a disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Media {
    visible: Sparse<Content>,
    durable: Sparse<Content>,
    /// Writes that are perhaps not durable yet, in order.
    cache: VecDeque<Cached>,
    /// How many writes there have been so far.
    written: u64,
}

#[derive(Clone, Debug)]
struct Cached {
    order: u64,
    first: u64,
    contents: Vec<Content>,
    durable: bool,
}

impl Media {
    pub(crate) fn read(&self, sector: u64) -> Content {
        *self.visible.get(sector)
    }

    /// The first sector in which two disks differ.
    pub(crate) fn difference(&self, other: &Media) -> Option<u64> {
        let touched = self.visible.iter().chain(other.visible.iter());
        let mut touched = touched.map(|(sector, _)| sector);
        touched.find(|sector| self.read(*sector) != other.read(*sector))
    }

    pub(crate) fn write(&mut self, first: u64, contents: Vec<Content>, durable: bool) {
        for (sector, content) in (first..).zip(&contents) {
            *self.visible.get_mut(sector) = *content;
        }
        self.written += 1;
        self.cache.push_back(Cached {
            order: self.written,
            first,
            contents,
            durable,
        });
        if self.cache.len() > CACHE
            && let Some(oldest) = self.cache.front_mut()
        {
            oldest.durable = true;
        }
        self.write_back();
    }

    /// How many writes a flush that begins now will make durable.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Notes the end of a flush that began after `written` writes.
    pub(crate) fn flushed(&mut self, written: u64) {
        for cached in &mut self.cache {
            cached.durable |= cached.order <= written;
        }
        self.write_back();
    }

    /// The contents that the disk would have after a loss of power now.
    pub(crate) fn after_power_loss(&self, random: &mut Random) -> Sparse<Content> {
        let mut left = self.durable.clone();
        for cached in &self.cache {
            for (sector, content) in (cached.first..).zip(&cached.contents) {
                if cached.durable || random.below(2) == 0 {
                    *left.get_mut(sector) = *content;
                }
            }
        }
        left
    }

    fn write_back(&mut self) {
        while self.cache.front().is_some_and(|cached| cached.durable) {
            let Some(cached) = self.cache.pop_front() else {
                return;
            };
            for (sector, content) in (cached.first..).zip(cached.contents) {
                *self.durable.get_mut(sector) = content;
            }
        }
    }
}

/// A disk keeps at most this many writes in its cache.
const CACHE: usize = 1_024;
