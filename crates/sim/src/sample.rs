//! The state of a simulation over time, for charts.

use dashpot_engine::{DiskId, Engine, Instant, PoolId};

use crate::device::Device;

/// The state at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The moment.
    pub at: Instant,
    /// The pools, in the scenario's order.
    pub pools: Vec<PoolSample>,
    /// The disks, in the scenario's order.
    pub disks: Vec<DiskSample>,
    /// How many calls have ended since the last sample.
    pub calls: u64,
    /// The total size, in bytes, of the calls that have ended since the last sample and did not fail.
    pub bytes: u64,
}

/// A pool at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolSample {
    /// Dirty data as the throttle counts it: acknowledged bytes that are not yet on the disks, and metadata.
    pub dirty: u64,
    /// How many writes wait for admission.
    pub throttled: u32,
}

/// A disk at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskSample {
    /// How many zios are in the disk's queue; 0 for a disk outside of pools.
    pub pending: u32,
    /// How many zios the disk works on.
    pub active: u32,
}

/// The calls that have ended since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
}

pub(crate) fn sample(
    engine: &Engine,
    pools: usize,
    devices: &[Device],
    now: Instant,
    since: Ended,
) -> Sample {
    let mut sample = Sample {
        at: now,
        pools: vec![PoolSample::default(); pools],
        disks: vec![DiskSample::default(); devices.len()],
        calls: since.calls,
        bytes: since.bytes,
    };
    for (disk, device) in sample.disks.iter_mut().zip(devices) {
        disk.active = device.active;
    }
    for at in 0..pools {
        let Some(pool) = engine.pool_state(PoolId(at as u32)) else {
            continue;
        };
        sample.pools[at] = PoolSample {
            dirty: pool.dirty + pool.dirty_metadata,
            throttled: pool.throttled,
        };
        for queue in &pool.queues {
            let DiskId(disk) = queue.disk;
            sample.disks[disk as usize].pending = queue.pending.iter().sum();
        }
    }
    sample
}
