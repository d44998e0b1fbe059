//! The counters of a queue (OpenZFS: `vdev_stat_update`).

use alloc::boxed::Box;

use crate::histogram::Histogram;
use crate::pool::stats::ClassStats;
use crate::time::Instant;

/// When an I/O was queued, when it went to the disk, and when it was done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) queued: Instant,
    pub(super) issued: Instant,
    pub(super) done: Instant,
}

impl ClassStats {
    /// Records an I/O that the disk has done successfully. Several I/Os that were joined into one count as
    /// one.
    pub(super) fn record(&mut self, times: Times, length: u32, joined: bool) {
        let Times {
            queued,
            issued,
            done,
        } = times;
        record(&mut self.total_wait, done.since(queued).as_nanos());
        record(&mut self.queue_wait, issued.since(queued).as_nanos());
        record(&mut self.disk_wait, done.since(issued).as_nanos());
        let sizes = if joined {
            &mut self.joined
        } else {
            &mut self.alone
        };
        record(sizes, length.into());
    }
}

fn record(histogram: &mut Option<Box<Histogram>>, value: u64) {
    histogram.get_or_insert_default().record(value);
}
