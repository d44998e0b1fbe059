//! The counts of some zios, in two forms: quick to update for the current second, and small for past seconds.

use dashpot_engine::Duration;
use dashpot_engine::histogram::{Histogram, Sparse};
use dashpot_export::FinishedZio;

/// The figures of one zio.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    ended: u64,
    failed: bool,
    bytes: u64,
    total: u64,
    disk: u64,
    /// How long the store took, if that is known.
    store: Option<u64>,
    /// The lateness of the zio, if a rule held it.
    lateness: Option<u64>,
}

impl Measured {
    #[inline]
    pub(super) fn of(zio: &FinishedZio) -> Measured {
        let waits = zio.waits();
        let failed = zio.outcome.is_err();
        let total = waits.total();
        Measured {
            ended: (zio.arrived + total).as_nanos(),
            failed,
            bytes: if failed { 0 } else { u64::from(zio.length) },
            total: total.as_nanos(),
            disk: zio.at_device().as_nanos(),
            store: zio.knows_store().then_some(waits.store.as_nanos()),
            lateness: (waits.hold > Duration::ZERO).then_some(waits.lateness.as_nanos()),
        }
    }

    /// The time at which the transport accepted the zio's reply.
    #[inline]
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }
}

/// Counts finished zios. These counts take 52 KiB, but zios touch only a little of this memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Counting {
    completed: u64,
    failed: u64,
    bytes: u64,
    /// Zios whose total and disk latencies are equal. Most zios are counted here, and not in `total` and
    /// `disk`.
    alike: Histogram,
    total: Histogram,
    disk: Histogram,
    /// Zios for which the store took no time, such as all zios of a store in memory.
    instant: u64,
    store: Histogram,
    lateness: Histogram,
}

impl Counting {
    #[inline]
    pub(super) fn count(&mut self, zio: &Measured) {
        self.completed += 1;
        self.failed += u64::from(zio.failed);
        self.bytes += zio.bytes;
        if zio.total == zio.disk {
            self.alike.record(zio.disk);
        } else {
            self.total.record(zio.total);
            self.disk.record(zio.disk);
        }
        match zio.store {
            Some(0) => self.instant += 1,
            Some(store) => self.store.record(store),
            None => {}
        }
        if let Some(lateness) = zio.lateness {
            self.lateness.record(lateness);
        }
    }

    /// The counts in compact histograms.
    pub(super) fn tally(&self) -> Tally {
        let with_alike = |histogram: &Histogram| {
            let mut all = self.alike.clone();
            all.merge(histogram);
            all.to_sparse()
        };
        let mut store = Histogram::of(0, self.instant);
        store.merge(&self.store);
        Tally {
            failed: self.failed,
            total: with_alike(&self.total),
            store: store.to_sparse(),
            lateness: self.lateness.to_sparse(),
            brief: Brief {
                completed: self.completed,
                bytes: self.bytes,
                disk: with_alike(&self.disk),
            },
        }
    }
}

/// The figures that the collector keeps for a past second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    /// Zios replied to, including failed zios.
    pub completed: u64,
    /// The total size of the zios that did not fail, in bytes.
    pub bytes: u64,
    /// Time from a zio's issue until the daemon offered its reply to the transport.
    pub disk: Sparse,
}

impl Brief {
    pub(super) fn merge(&mut self, other: &Brief) {
        self.completed += other.completed;
        self.bytes += other.bytes;
        self.disk.merge(&other.disk);
    }
}

/// The counts of some zios, in compact histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The figures that a past second has, too.
    pub brief: Brief,
    pub failed: u64,
    /// Time from a zio's arrival until the transport accepted its reply.
    pub total: Sparse,
    /// How long the store took.
    pub store: Sparse,
    /// The lateness of zios that were held.
    pub lateness: Sparse,
}

impl Tally {
    pub fn merge(&mut self, other: &Tally) {
        self.brief.merge(&other.brief);
        self.failed += other.failed;
        self.total.merge(&other.total);
        self.store.merge(&other.store);
        self.lateness.merge(&other.lateness);
    }
}
