//! What devices did in an interval, whatever counted it.

use std::time::Duration;

use dashpot_engine::histogram::Histogram;

use crate::cli::Layer;
use crate::report::in_flight::InFlight;

/// What a device did in an interval.
pub(crate) struct DeviceInterval {
    /// Its name: of a disk of dashpot's, of a volume, or of a disk of the kernel's.
    pub(crate) device: String,
    pub(crate) elapsed: Duration,
    /// By operation, and by what was asked for beside it.
    pub(crate) ops: Vec<OpInterval>,
    pub(crate) busy: Duration,
    /// The integral of the number of I/Os in flight, in I/O-nanoseconds.
    pub(crate) depth_time_ns: u128,
    /// At the interval's end.
    pub(crate) in_flight: InFlight,
}

/// What a device did of one operation, and of one value of what it is broken down by.
pub(crate) struct OpInterval {
    /// dashpot's word for it: `read`, `write`, `flush`, `trim`, `zero`, `cache`, or `other`.
    pub(crate) op: String,
    /// The kernel's letters for it, on the kernel's disks.
    pub(crate) rwbs: Option<String>,
    /// The client, process, control group or size, if a breakdown was asked for; `other` of those
    /// that are too many to be told apart.
    pub(crate) by: Option<String>,
    pub(crate) completed: u64,
    pub(crate) bytes: u64,
    /// From arrival until the reply was accepted; of the kernel's disks from the moment of queueing,
    /// if [`Question::queued`](super::Question) was asked for, and else as `disk`.
    pub(crate) total: Histogram,
    /// From issue until the reply was offered; of the kernel's disks until completion.
    pub(crate) disk: Histogram,
    /// In the store alone, below the injection, where that is known.
    pub(crate) store: Option<Histogram>,
}

impl OpInterval {
    /// The latencies at a layer, if they are known there. A volume's are those that it has as a
    /// device.
    pub(crate) fn at(&self, layer: Layer) -> Option<&Histogram> {
        match layer {
            Layer::Volume | Layer::Disk => Some(&self.disk),
            Layer::Store => self.store.as_ref(),
        }
    }
}

/// The oldest I/O of several devices, and how many there are.
pub(crate) fn in_flight_of_all(intervals: &[DeviceInterval]) -> InFlight {
    let each = intervals.iter().map(|interval| &interval.in_flight);
    let zios = each.clone().map(|in_flight| in_flight.zios).sum();
    let oldest = each.max_by_key(|in_flight| in_flight.oldest_ns);
    InFlight {
        zios,
        ..oldest.cloned().unwrap_or_default()
    }
}

/// The length of an interval of several devices, which are looked at one after another.
pub(crate) fn elapsed_of_all(intervals: &[DeviceInterval]) -> Duration {
    let each = intervals.iter().map(|interval| interval.elapsed);
    each.max().unwrap_or_default()
}
