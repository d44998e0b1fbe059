//! Pools: disks joined by a layout, the volumes carved from them, and the path of a write from its
//! acknowledgement to the disks.
//!
//! `pool.rs` has the state of a pool, its inputs, and the loop that carries out the consequences of a step. The
//! parts below it never call that loop. `job_parts.rs` starts and continues requests and jobs. Below it calls go one
//! way: a part that ends something for a request only notes it in `Requests`, and the loop continues the request.

mod beside;
mod block_io;
mod block_map;
mod blocks;
mod commit;
mod config;
mod crash;
mod cut;
mod disks;
mod durable;
mod early_ends;
mod edges;
mod ends;
mod extent_home;
mod extents;
mod failures;
mod home;
mod job_parts;
mod jobs;
mod limits;
mod locking;
mod locks;
mod mirror_record;
mod mirrors;
mod overhead;
mod piece;
mod placement;
mod placing;
#[expect(clippy::module_inception)]
mod pool;
mod queue;
mod read;
mod recording;
mod regions;
mod repair;
mod request;
mod slab;
pub(crate) mod stats;
mod step;
mod sync;
mod table;
mod tag;
mod throttle;
mod traffic;
pub(crate) mod tunable;
mod txg;
mod unplaced;
mod views;
mod volume;
mod watchers;
mod write;

pub use config::{
    DELAY_MAX, Layout, LegacyConfig, PoolConfig, PoolDisk, PoolError, ThrottleConfig, VolumeConfig,
    WritePolicy,
};
pub(crate) use pool::Pool;
pub use recording::{MirrorRecord, MirrorStart};
pub use stats::{
    Admissions, Class, ClassStats, MirrorStats, PoolState, PoolStats, QueueState, QueueStats,
    ThrottleLevel, Traffic, TxgState, TxgStats, VolumeTraffic,
};
pub(crate) use step::{Buffers, Child, Children, Ended, Step, Work};
pub use tunable::{Tunable, TunableError, TunableInfo, Tunables, Unit};
