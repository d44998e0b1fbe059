//! What a queue counts (OpenZFS: `vdev_stat_update`).

use alloc::boxed::Box;

use crate::histogram::Histogram;
use crate::pool::{ClassStats, Traffic};
use crate::time::Instant;
use crate::zio::Op;

/// When something was put into the queue, went to the disk, and was done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) queued: Instant,
    pub(super) issued: Instant,
    pub(super) done: Instant,
}

impl ClassStats {
    /// Records what reached the disk as one, and ended well.
    pub(super) fn record(&mut self, times: Times, length: u32, joined: bool) {
        let Times {
            queued,
            issued,
            done,
        } = times;
        record(&mut self.total_wait, done.since(queued).as_nanos());
        record(&mut self.queue_wait, issued.since(queued).as_nanos());
        record(&mut self.disk_wait, done.since(issued).as_nanos());
        let sizes = match joined {
            true => &mut self.joined,
            false => &mut self.alone,
        };
        record(sizes, length.into());
    }
}

impl Traffic {
    /// Counts one operation, unless it is a flush.
    pub(super) fn count(&mut self, op: Op, bytes: u32) {
        let (operations, total) = match op {
            Op::Flush => return,
            Op::Read | Op::Cache => (&mut self.reads, &mut self.bytes_read),
            Op::Write | Op::Trim | Op::Zero => (&mut self.writes, &mut self.bytes_written),
        };
        *operations += 1;
        *total += u64::from(bytes);
    }
}

fn record(histogram: &mut Option<Box<Histogram>>, value: u64) {
    histogram.get_or_insert_default().record(value);
}
