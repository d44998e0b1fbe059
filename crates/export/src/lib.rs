//! Real time around the engine: shards, stores and frontends.
//!
//! A [`Server`] owns one thread per shard and one door thread that shakes hands with clients. The
//! rest of the program talks to it through a [`Handle`]; what it asks is answered from the shard,
//! after it took effect.

mod buffers;
mod clients;
mod clock;
mod complain;
mod config;
mod conn;
mod door;
mod events;
mod fetch;
mod handle;
mod leave;
mod listen;
pub mod load;
mod mailbox;
pub mod nbd;
mod pace;
mod passes;
pub mod plain;
mod power;
mod probe;
mod quota;
mod room;
mod routes;
mod server;
mod shard;
mod shutdown;
mod slots;
mod snapshot;
mod stops;
pub mod store;
mod work;

pub use clock::now;
pub use complain::complain;
pub use config::{Address, DiskConfig, ServerConfig};
pub use events::{Bell, Drops, EventReader, FinishedZio, Record};
pub use handle::{ClientView, DiskInfo, DiskSnapshot, Handle, RuleSnapshot, ShardGone};
pub use listen::{ListenError, bind_private, keep_alive};
pub use pace::Spin;
pub use passes::Work;
pub use power::{Cut, CutError, Keep, Loss, LostWrite, Sum, Then};
pub use probe::ProbeReading;
pub use quota::{CpuQuota, Throttling, cpu_quota, cpu_throttling};
pub use server::{STORE_THREADS, Server, StartError};
pub use stops::{StopSum, Stops};
