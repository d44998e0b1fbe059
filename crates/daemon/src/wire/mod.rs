//! Converts the daemon's state to the types of the API.

mod crash;
mod device;
mod disk;
mod event;
mod export;
mod faults;
mod memory;
mod part;
mod pool;
mod rule;
mod scenario;
mod second;
mod shard;
mod why;

pub(crate) use crash::{crashed, cut, pool_crashed};
pub(crate) use device::DeviceView;
pub(crate) use disk::{disk, interrupted, unheld, volume};
pub(crate) use event::{io_of, put};
pub(crate) use export::{disk_export, volume_export};
pub(crate) use faults::faults;
pub(crate) use memory::{memory, reclaim};
pub(crate) use part::part_latency;
pub(crate) use pool::{PoolFacts, tunables, txgs};
pub use rule::seen_rule;
pub(crate) use rule::{rule, rule_latency};
pub(crate) use scenario::scenario;
pub(crate) use second::second_latency;
pub(crate) use shard::shards;
