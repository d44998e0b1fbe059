//! Pools: disks joined by a layout, the volumes carved from them, and the way of a write from its
//! acknowledgement to the disks.

mod config;
mod stats;
mod throttle;
mod tunable;

pub use config::{
    DELAY_MAX, LegacyConfig, PoolConfig, PoolDisk, PoolError, ThrottleConfig, VolumeConfig,
    WritePolicy,
};
pub use stats::{
    Admissions, Class, ClassStats, PoolStats, QueueStats, Traffic, TxgState, TxgStats,
};
pub use tunable::{Tunable, TunableError, TunableInfo, Tunables, Unit};
