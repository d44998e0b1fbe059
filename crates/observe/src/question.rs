//! What a report asks of a source.

use dashpot_engine::{Duration, OpSet};

use super::intervals::Intervals;
use super::layer::Layer;

/// What a source is to look at and to tell apart. It always tells devices and types apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What is looked at.
    pub subject: Subject,
    /// What each operation is broken down by.
    pub by: Option<By>,
    /// Whether latencies from arrival are looked at. On the kernel's disks that takes more events.
    pub queued: bool,
    /// How far back the report begins, if it is of the past.
    pub past: Option<Past>,
}

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Devices, at these layers, with their latencies.
    Latencies(Vec<Layer>),
    /// Devices at a layer: counts and sums only, which the kernel counts without being watched.
    Averages(Layer),
    /// Pools.
    Pools,
}

/// A stretch of time up to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// Its length.
    pub last: Duration,
    /// Whether each second is an interval. If not, the whole is one.
    pub each_second: bool,
}

/// Which intervals a report takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The length of an interval; [`Duration::MAX`] lasts until the source ends.
    pub interval: Duration,
    /// How many there are; without a number, they go on until the source ends.
    pub count: Option<u64>,
    /// Whether an interval from the devices' start to now comes before them.
    pub since_start: bool,
}

/// Which finished I/Os are taken one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Those of disks, or those of volumes.
    pub layer: Layer,
    /// Those of these operations; `None` takes all.
    pub ops: Option<OpSet>,
    /// Those that took at least this long, in nanoseconds.
    pub min_ns: u64,
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

    /// The layers of the devices that are looked at.
    pub fn layers(&self) -> &[Layer] {
        match &self.subject {
            Subject::Latencies(layers) => layers,
            Subject::Averages(layer) => std::slice::from_ref(layer),
            Subject::Pools => &[],
        }
    }

    /// Whether latencies of stores are looked at, which are known from events only.
    pub fn has_store(&self) -> bool {
        self.layers().contains(&Layer::Store)
    }
}

impl Schedule {
    /// Intervals of this length: as many as `count`, or without an end.
    pub fn every(interval: Duration, count: Option<u64>) -> Schedule {
        Schedule {
            interval,
            count,
            since_start: false,
        }
    }

    /// The first of its intervals begins at a moment.
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
