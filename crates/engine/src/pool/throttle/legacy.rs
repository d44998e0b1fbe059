//! The throttle of ZFS before 2013: an estimate of the throughput, and a limit for each txg.
//!
//! The model is OpenZFS before illumos 4045: `dsl_pool_sync`, `dsl_pool_tempreserve_space` and `txg_delay`.
//! The limit is the amount that the disks are expected to write in `zfs_txg_synctime_ms`. A txg that is more
//! than 7/8 full delays each writer by 10 ms, unless the txg could quiesce now. A full txg stops all writers
//! until the next txg opens.
//!
//! In ZFS, a delay held a lock of its processor, and later writers on that processor queued behind the
//! sleeper. Here, each slot stands for a processor, and a writer that finds all slots asleep joins one queue
//! for all slots. One queue per slot would give another result only when a series of delays begins or ends,
//! because during the series every slot takes its next writer after 10 ms.
//!
//! The throttle's dependence on memory use (ARC) is not modelled.

use crate::pool::config::LegacyConfig;
use crate::pool::stats::ThrottleLevel;
use crate::pool::tunable::{Tunable, Tunables};
use crate::time::Duration;

#[derive(Debug)]
pub(crate) struct Legacy {
    bounds: Bounds,
    /// The throughput in bytes per millisecond; zero before the first measurement.
    throughput: u64,
    /// The maximum number of inflated bytes that a txg takes, computed from the throughput.
    limit: u64,
    /// How many bytes have become dirty in the open txg.
    to_write: u64,
    /// How many bytes sleeping writers may add to the open txg.
    reserved: u64,
    /// How many bytes the admitted writers will make dirty in later steps.
    coming: u64,
    /// The number of dirty bytes in the syncing txg when its sync began.
    writing: u64,
    /// The number of the open txg.
    open: u64,
    /// The number of the last txg whose sync has begun.
    syncing: u64,
    /// Whether a request waits for the open txg to quiesce.
    quiesce_asked: bool,
    delay_slots: u32,
    asleep: u32,
}

/// The values of the tunables, in the form in which the throttle uses them.
#[derive(Debug)]
struct Bounds {
    least: u64,
    most: u64,
    forced: Option<u64>,
    inflation: u64,
    synctime_ms: u64,
    delay: Duration,
}

/// The fate of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The writer continues.
    Admitted,
    /// The writer sleeps for this long, then continues.
    Delayed(Duration),
    /// The writer waits for the next txg, then tries again.
    Blocked,
    /// The writer waits until a sleeping writer wakes, then tries again.
    Behind,
}

impl Legacy {
    pub(crate) fn new(config: LegacyConfig, tunables: &Tunables, open: u64) -> Legacy {
        let bounds = Bounds::new(tunables);
        let throughput = config.full_pipeline.unwrap_or(0);
        Legacy {
            limit: bounds.limit(throughput),
            bounds,
            throughput,
            to_write: 0,
            reserved: 0,
            coming: 0,
            writing: 0,
            open,
            syncing: open - 1,
            quiesce_asked: false,
            delay_slots: config.delay_slots.map_or(u32::MAX, |slots| slots.max(1)),
            asleep: 0,
        }
    }

    /// Notes how many bytes the admitted writers will make dirty in later steps.
    pub(crate) fn comes(&mut self, coming: u64) {
        self.coming = coming;
    }

    /// The maximum number of inflated bytes that a txg takes.
    pub(crate) fn limit(&self) -> u64 {
        self.bounds.forced.unwrap_or(self.limit)
    }

    /// Asks whether a write that may make `bytes` dirty can join the open txg.
    pub(crate) fn attempt(&mut self, bytes: u64) -> Attempt {
        if !self.slot_is_free() {
            return Attempt::Behind;
        }
        let (limit, taken) = (self.limit(), self.taken());
        if taken > limit {
            self.quiesce_asked = true;
            return Attempt::Blocked;
        }
        if !self.is_to_delay(taken) {
            return Attempt::Admitted;
        }
        self.reserved += bytes;
        self.asleep += 1;
        Attempt::Delayed(self.bounds.delay)
    }

    /// How many inflated bytes the open txg has taken. Reserved bytes count half, because reservations are
    /// worst cases.
    fn taken(&self) -> u64 {
        let certain = self.to_write + self.coming;
        self.bounds.inflate(certain) + self.bounds.inflate(self.reserved) / 2
    }

    fn is_to_delay(&self, taken: u64) -> bool {
        taken > delays_above(self.limit()) && self.pipeline_is_full()
    }

    /// How close the throttle is to holding writes back.
    pub(crate) fn level(&self) -> ThrottleLevel {
        let (limit, taken) = (self.limit(), self.taken());
        let delayed = self.is_to_delay(taken);
        ThrottleLevel {
            filled: taken / self.bounds.inflation,
            delays_above: Some(delays_above(limit) / self.bounds.inflation),
            stops_at: limit / self.bounds.inflation,
            delay: if delayed {
                self.bounds.delay
            } else {
                Duration::ZERO
            },
        }
    }

    /// Ends the delay of a write, or forgets the write if it was aborted.
    pub(crate) fn slept(&mut self, bytes: u64) {
        self.reserved -= bytes;
        self.asleep -= 1;
    }

    pub(crate) fn slot_is_free(&self) -> bool {
        self.asleep < self.delay_slots
    }

    /// Whether the open txg cannot quiesce yet, because another txg is quiesced and waits for the syncing
    /// txg. Delays help only while the open txg cannot quiesce. Once a request waits for the open txg to
    /// quiesce, the throttle delays no more writers.
    pub(crate) fn pipeline_is_full(&self) -> bool {
        self.syncing + 1 < self.open && !self.quiesce_asked
    }

    pub(crate) fn dirtied(&mut self, txg: u64, bytes: u64) {
        if txg == self.open {
            self.to_write += bytes;
        }
    }

    pub(crate) fn quiesce_asked(&mut self) {
        self.quiesce_asked = true;
    }

    pub(crate) fn txg_opened(&mut self, txg: u64) {
        self.open = txg;
        self.to_write = 0;
        self.quiesce_asked = false;
    }

    pub(crate) fn sync_started(&mut self, txg: u64, dirty: u64) {
        self.syncing = txg;
        self.writing = dirty;
    }

    /// Updates the throughput from a sync, unless the sync was small or short.
    pub(crate) fn synced(&mut self, took: Duration) {
        let written = self.bounds.inflate(self.writing);
        if written <= self.bounds.least / 8 || took <= Duration::from_millis(1) {
            return;
        }
        let measured = written / (took.as_nanos() / 1_000_000);
        self.throughput = match self.throughput {
            0 => measured,
            before => measured / 4 + 3 * before / 4,
        };
        self.limit = self.bounds.limit(self.throughput);
    }

    /// Takes new tunables. The limit stays until the next sync, unless a tunable forces the limit.
    pub(crate) fn tuned(&mut self, tunables: &Tunables) {
        self.bounds = Bounds::new(tunables);
    }
}

impl Bounds {
    fn new(tunables: &Tunables) -> Bounds {
        let inflation = tunables.get(Tunable::WriteLimitInflation);
        let least = tunables.get(Tunable::WriteLimitMin);
        let most = tunables.ram() >> tunables.get(Tunable::WriteLimitShift);
        let forced = tunables.get(Tunable::WriteLimitOverride);
        Bounds {
            least,
            most: least.max(most.saturating_mul(inflation)),
            forced: (forced > 0).then_some(forced),
            inflation,
            synctime_ms: tunables.get(Tunable::TxgSynctimeMs),
            delay: Duration::from_nanos(tunables.get(Tunable::ThrottleDelay)),
        }
    }

    fn limit(&self, throughput: u64) -> u64 {
        let expected = throughput.saturating_mul(self.synctime_ms);
        expected.clamp(self.least, self.most)
    }

    fn inflate(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.inflation)
    }
}

/// The number of bytes above which a txg delays its writers: 7/8 of the limit.
fn delays_above(limit: u64) -> u64 {
    limit - limit / 8
}

#[cfg(test)]
mod tests;
