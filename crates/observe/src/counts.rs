//! The counter of finished I/Os that tallies, intervals and groups share.

use dashpot_engine::histogram::Histogram;

use super::finished::FinishedIo;
use super::layer::Layer;

/// Counts of finished I/Os, with the distributions of their times. Because a histogram takes 10 KiB, it is
/// allocated only when its first value is recorded.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// How many I/Os ended.
    pub completed: u64,
    /// How many bytes the ended I/Os moved. A failed zio moved none.
    pub bytes: u64,
    /// How many I/Os were joined to other I/Os before they were issued, if the source counts them.
    pub merged: u64,
    /// Latencies from issue until the reply was offered; for the kernel's disks, until completion.
    pub disk: Option<Box<Histogram>>,
    /// Latencies from arrival until the reply was accepted; for the kernel's disks, from the queueing if `-Q`
    /// asked for that. `None` while the latency of each I/O equals its latency in `disk`.
    pub total: Option<Box<Histogram>>,
    /// Latencies of the store alone, without the injection, if the source knows them.
    pub store: Option<Box<Histogram>>,
    /// The distribution of the dimension that the question measures, if it measures one and the I/Os have
    /// values of it.
    pub measured: Option<Box<Histogram>>,
}

impl Counts {
    /// The latencies at a layer, if they are known; if `queued`, the latencies from arrival. For a volume, these
    /// are the latencies that its clients see. A store has no queue.
    pub fn latencies(&self, layer: Layer, queued: bool) -> Option<&Histogram> {
        let latencies = match (layer, queued) {
            (Layer::Store, _) => &self.store,
            (_, true) if self.total.is_some() => &self.total,
            _ => &self.disk,
        };
        latencies.as_deref()
    }

    pub(crate) fn add_times(&mut self, io: &FinishedIo) {
        let (disk_ns, total_ns) = (io.at_device_ns(), io.total_ns());
        if self.total.is_none() && total_ns != disk_ns {
            self.total = Some(self.disk.clone().unwrap_or_default());
        }
        if let Some(total) = &mut self.total {
            total.record(total_ns);
        }
        if let Some(ns) = io.waits.in_store_ns() {
            record(&mut self.store, ns);
        }
        record(&mut self.disk, disk_ns);
    }

    /// Adds the counts of other I/Os.
    pub fn merge(&mut self, other: &Counts) {
        if self.total.is_some() || other.total.is_some() {
            self.total = self.total.take().or_else(|| self.disk.clone());
            merge(
                &mut self.total,
                other.total.as_deref().or(other.disk.as_deref()),
            );
        }
        merge(&mut self.store, other.store.as_deref());
        merge(&mut self.measured, other.measured.as_deref());
        merge(&mut self.disk, other.disk.as_deref());
        self.completed += other.completed;
        self.bytes += other.bytes;
        self.merged += other.merged;
    }
}

pub(crate) fn record(times: &mut Option<Box<Histogram>>, ns: u64) {
    times.get_or_insert_default().record(ns);
}

pub(crate) fn merge(times: &mut Option<Box<Histogram>>, more: Option<&Histogram>) {
    if let Some(more) = more {
        times.get_or_insert_default().merge(more);
    }
}
