//! A report's question to a source.

use dashpot_engine::{Duration, OpSet};

use super::intervals::Intervals;
use super::layer::Layer;

/// The subject of a report, and its breakdown. A source always tells devices and types apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The devices or pools that the report is about.
    pub subject: Subject,
    /// The breakdown of each operation.
    pub by: Option<By>,
    /// Whether latencies from arrival are needed. On the kernel's disks they take more events.
    pub queued: bool,
    /// The past that the report covers; `None` if it begins now.
    pub past: Option<Past>,
}

/// The subject of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Devices at these layers, with their latencies.
    Latencies(Vec<Layer>),
    /// Devices at a layer, with counts and sums only. The kernel has these even if nothing watches it.
    Averages(Layer),
    /// Pools.
    Pools,
    /// Finished I/Os, one by one. The source gives them as soon as it can, several times in one interval of
    /// the schedule.
    Ios(Wanted),
}

/// A stretch of time up to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// Its length.
    pub last: Duration,
    /// Whether each second is an interval. If not, the whole is one.
    pub each_second: bool,
}

/// The intervals of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The length of an interval; [`Duration::MAX`] lasts until the source ends.
    pub interval: Duration,
    /// The number of intervals; `None` if they follow until the source ends.
    pub count: Option<u64>,
    /// Whether another interval comes first, from the devices' start until now.
    pub since_start: bool,
}

/// The finished I/Os that a report takes one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The layer: disks or volumes.
    pub layer: Layer,
    /// The operations; `None` for all.
    pub ops: Option<OpSet>,
    /// The least time of an I/O, in nanoseconds.
    pub min_ns: u64,
    /// The watch ends after this many; `None` if only its schedule ends it.
    pub count: Option<u64>,
}

/// The dimension of a breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The client that sent the I/O to dashpot.
    Client,
    /// The name of the process that asked the kernel for the I/O.
    Process,
    /// The control group of that process.
    Cgroup,
    /// Their number of bytes, in powers of two.
    Size,
}

impl Question {
    /// A question about devices at these layers.
    pub fn latencies(layers: &[Layer]) -> Question {
        Question::of(Subject::Latencies(layers.to_vec()))
    }

    /// A question about a subject, without a breakdown.
    pub fn of(subject: Subject) -> Question {
        Question {
            subject,
            by: None,
            queued: false,
            past: None,
        }
    }

    /// The layers of the subject.
    pub fn layers(&self) -> &[Layer] {
        match &self.subject {
            Subject::Latencies(layers) => layers,
            Subject::Averages(layer) | Subject::Ios(Wanted { layer, .. }) => {
                std::slice::from_ref(layer)
            }
            Subject::Pools => &[],
        }
    }

    /// Whether latencies of stores are needed, which are known only from events.
    pub fn has_store(&self) -> bool {
        self.layers().contains(&Layer::Store)
    }
}

impl Schedule {
    /// Intervals of this length: `count` of them, or without an end.
    pub fn every(interval: Duration, count: Option<u64>) -> Schedule {
        Schedule {
            interval,
            count,
            since_start: false,
        }
    }

    /// The intervals, the first of which begins at this moment.
    pub fn begin(&self, start_ns: u64) -> Intervals {
        Intervals::new(start_ns, self.interval.as_nanos(), self.count)
    }

    /// One interval.
    pub fn once(interval: Duration) -> Schedule {
        Schedule::every(interval, Some(1))
    }
}

impl By {
    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            By::Client => "client",
            By::Process => "process",
            By::Cgroup => "cgroup",
            By::Size => "size",
        }
    }
}
