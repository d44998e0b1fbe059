//! The I/O of pools in an interval.

use std::time::Duration;

use dashpot_engine::histogram::Histogram;
use dashpot_engine::pool::{Class, Traffic, TxgStats, VolumeTraffic};

/// The I/O of a pool in an interval.
#[derive(Clone, Debug)]
pub struct PoolInterval {
    pub name: String,
    /// The length of the interval.
    pub elapsed: Duration,
    /// Bytes that are allocated.
    pub allocated: u64,
    /// Bytes that are free.
    pub free: u64,
    /// The operations that clients sent to the volumes.
    pub volumes: Traffic,
    /// The zios that the disks have done, counted before adjacent zios were joined.
    pub queued: Traffic,
    /// The zios and bytes that the pool sent to its disks.
    pub traffic: Traffic,
    /// The overhead of txgs within `queued` and `traffic`.
    pub overhead: VolumeTraffic,
    /// The volumes' shares of these counts, by name. Repairs of mirrors and the overhead of txgs belong to no
    /// volume.
    pub by_volume: Vec<(String, VolumeTraffic)>,
    /// The queues of all disks together, in the order of [`Class::ALL`].
    pub classes: Box<[ClassInterval; Class::ALL.len()]>,
    /// The transaction groups that the pool remembers at the interval's end, the oldest first.
    pub txgs: Vec<TxgStats>,
}

/// The I/O of one class of a pool's queues in an interval.
#[derive(Clone, Debug)]
pub struct ClassInterval {
    pub class: Class,
    /// The number of zios in the queues at the interval's end.
    pub pending: u64,
    /// The number of zios at the disks at the interval's end.
    pub active: u64,
    /// The times of zios from entering the queue until their end.
    pub total_wait: Histogram,
    /// The times of zios at the disk.
    pub disk_wait: Histogram,
    /// The times of zios in the queue.
    pub queue_wait: Histogram,
    /// The sizes, in bytes, of the zios that were not joined with other zios.
    pub alone: Histogram,
    /// The sizes, in bytes, of the zios that the queue made by joining several zios.
    pub joined: Histogram,
}

impl PoolInterval {
    /// The I/O of a class in the interval.
    pub fn class(&self, class: Class) -> &ClassInterval {
        &self.classes[class as usize]
    }

    /// A count over the interval, as a whole number per second.
    pub fn per_second(&self, count: u64) -> u64 {
        let elapsed = self.elapsed.as_nanos().max(1);
        let rate = u128::from(count) * 1_000_000_000 / elapsed;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

impl ClassInterval {
    /// A class without I/O.
    pub fn empty(class: Class) -> ClassInterval {
        ClassInterval {
            class,
            pending: 0,
            active: 0,
            total_wait: Histogram::default(),
            disk_wait: Histogram::default(),
            queue_wait: Histogram::default(),
            alone: Histogram::default(),
            joined: Histogram::default(),
        }
    }
}
