//! The throttle of OpenZFS since 2013: delays that grow with the dirty data of the pool.
//!
//! Source: OpenZFS 2.2 to master, `dmu_tx_delay` and `vdev_queue_max_async_writes`. The integer
//! arithmetic is the original's; that no product overflows, the bounds of the tunables see to.

use crate::pool::config::DELAY_MAX;
use crate::pool::tunable::{Tunable, Tunables};
use crate::time::{Duration, Instant};

/// What begins at which amount of dirty data.
#[derive(Debug)]
pub(crate) struct Marks {
    /// Writes stop at this amount.
    pub(crate) stop_at: u64,
    /// Writes are delayed above this amount.
    pub(crate) delay_above: u64,
    /// A txg with more is synced at once.
    pub(crate) sync_above: u64,
    delay_scale: u64,
    fewest_writes: Point,
    most_writes: Point,
}

/// An amount of dirty data, and the async writes at one disk that go with it.
#[derive(Debug)]
struct Point {
    dirty: u64,
    writes: u64,
}

impl Marks {
    pub(crate) fn new(tunables: &Tunables) -> Marks {
        let stop_at = tunables.get(Tunable::DirtyDataMax);
        let percent = |tunable| stop_at * tunables.get(tunable) / 100;
        Marks {
            stop_at,
            delay_above: percent(Tunable::DelayMinDirtyPercent),
            sync_above: percent(Tunable::DirtyDataSyncPercent),
            delay_scale: tunables.get(Tunable::DelayScale),
            fewest_writes: Point {
                dirty: percent(Tunable::AsyncWriteActiveMinDirtyPercent),
                writes: tunables.get(Tunable::AsyncWriteMinActive),
            },
            most_writes: Point {
                dirty: percent(Tunable::AsyncWriteActiveMaxDirtyPercent),
                writes: tunables.get(Tunable::AsyncWriteMaxActive),
            },
        }
    }

    /// How far apart writes are let go while so much is dirty.
    ///
    /// The curve has a pole where writes stop, and is cut off at ZFS's cap below it; at the pole
    /// and above it is the cap as well. No write gets there: the hard stop comes before.
    pub(crate) fn delay(&self, dirty: u64) -> Duration {
        if dirty <= self.delay_above {
            return Duration::ZERO;
        }
        if dirty >= self.stop_at {
            return DELAY_MAX;
        }
        let above = self.delay_scale * (dirty - self.delay_above);
        Duration::from_nanos(above / (self.stop_at - dirty)).min(DELAY_MAX)
    }

    /// How many async writes one disk is given. All that are allowed while a `sync_waiting`, and
    /// while dirty data is high; few while it is low, so that reads find the disk free.
    pub(crate) fn max_async_writes(&self, dirty: u64, sync_waiting: bool) -> u32 {
        let (low, high) = (&self.fewest_writes, &self.most_writes);
        let writes = if sync_waiting || dirty >= high.dirty {
            high.writes
        } else if dirty < low.dirty {
            low.writes
        } else {
            let rise = (dirty - low.dirty) * (high.writes - low.writes);
            low.writes + rise / (high.dirty - low.dirty)
        };
        writes as u32
    }
}

/// The clock that all delayed writes of a pool share: each is let go at least its own delay after
/// the one before, however many there are.
#[derive(Debug, Default)]
pub(crate) struct WakeUps {
    last: Instant,
}

impl WakeUps {
    /// When a write that began at `started` and is to be delayed is let go; `None` if it has spent
    /// its delay already, which leaves the clock as it is.
    pub(crate) fn book(
        &mut self,
        now: Instant,
        started: Instant,
        delay: Duration,
    ) -> Option<Instant> {
        if delay == Duration::ZERO || now > started + delay {
            return None;
        }
        self.last = (started + delay).max(self.last + delay);
        Some(self.last)
    }

    /// Frees what was booked after `last`: those who had booked it are gone.
    pub(crate) fn give_back(&mut self, last: Instant) {
        self.last = self.last.min(last);
    }
}

#[cfg(test)]
mod tests;
