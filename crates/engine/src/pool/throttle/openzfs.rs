//! The throttle of OpenZFS since 2013: delays that grow with the dirty data of the pool.
//!
//! The model is `dmu_tx_delay` and `vdev_queue_max_async_writes` of OpenZFS from 2.2 to master, with the same
//! integer arithmetic. The bounds of the tunables keep products from overflowing.

use crate::pool::config::DELAY_MAX;
use crate::pool::tunable::{Tunable, Tunables};
use crate::time::{Duration, Instant};

/// The amounts of dirty data at which the throttle acts.
#[derive(Debug)]
pub(crate) struct Marks {
    /// The throttle admits no more writes at this amount.
    pub(crate) stop_at: u64,
    /// Writes are delayed above this amount.
    pub(crate) delay_above: u64,
    /// A txg with more dirty data than this is synced at once.
    pub(crate) sync_above: u64,
    delay_scale: u64,
    fewest_writes: Point,
    most_writes: Point,
}

/// An amount of dirty data, and the number of async writes that one disk gets at that amount.
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

    /// The time between two writes that the throttle releases, at this amount of dirty data.
    ///
    /// The curve has a pole at the amount where writes stop. Below the pole the delay is at most ZFS's cap,
    /// and from the pole on the delay is the cap. No write is delayed at the pole or above, because the
    /// throttle stops writes there.
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

    /// How many async writes one disk may have: the maximum if `sync_waiting` or if much data is dirty, and
    /// few if little data is dirty, so that reads find the disk free.
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

/// The clock that all delayed writes of a pool share. The throttle releases each write no sooner than the
/// write's own delay after the previous write.
#[derive(Debug, Default)]
pub(crate) struct WakeUps {
    last: Instant,
}

impl WakeUps {
    /// Books the wake-up of a write that began at `started`. `None` if the write has already waited
    /// for its delay; then the clock stays as it is.
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

    /// Frees all bookings after `last`, because their writers are gone.
    pub(crate) fn give_back(&mut self, last: Instant) {
        self.last = self.last.min(last);
    }
}

#[cfg(test)]
mod tests;
