//! Real time around the engine: shards, stores and frontends.
//!
//! A [`Server`] owns one thread per shard and one door thread that shakes hands with clients. The
//! rest of the program talks to it through a [`Handle`]; what it asks is answered from the shard,
//! after it took effect.

mod config;
mod handle;
pub mod nbd;
pub mod store;

pub use config::{Address, DiskConfig, ServerConfig};
pub use handle::{ClientView, DiskInfo, DiskSnapshot, Handle, RuleSnapshot, ShardGone, ShardView};
