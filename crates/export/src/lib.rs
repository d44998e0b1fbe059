//! Runs the engine in real time, with shards, stores and frontends.
//!
//! A [`Server`] owns one thread per shard, and one acceptor thread that shakes hands with clients. The
//! rest of the program talks to the server through a [`Handle`]. A shard answers each message of the handle
//! after the change has taken effect.

mod acceptor;
mod cgroups;
mod clock;
mod complain;
mod config;
mod connection_limit;
mod damage;
mod deal;
mod events;
mod export;
pub mod frontend;
mod handle;
mod held;
mod info;
mod listen;
mod mailbox;
mod message;
mod power;
mod prober;
mod quota;
pub mod reclaim;
mod route;
mod server;
mod shard;
mod snapshot;
pub mod store;

pub use dashpot_sys::seccomp::why_out_of_reach;

pub use clock::now;
pub use complain::{complain, complain_lines};
pub use config::{ServerConfig, Spin};
pub use damage::{DamageReport, DamagedIo};
pub use events::{Bell, DeviceId, Drops, EventReader, EventRecord, FinishedZio};
pub use export::{
    Counts, ExportInfo, Followed, Follower, Mechanism, PathCounts, Power, Unheld, UnheldCounts,
    Uring,
};
pub use frontend::notified_calls;
pub use handle::{Handle, ShardGone};
pub use held::Held;
pub use info::{DiskInfo, PoolInfo, ServedDevice, VolumeInfo};
pub use listen::{
    ListenError, Occupant, Occupied, bind_private, keep_alive, remove_dead_socket, ways_out,
};
pub use message::{Attach, AttachError};
pub use power::{Cut, CutError, Keep, Loss, LostWrite, PoolLoss, Sum, Then};
pub use prober::ProbeReading;
pub use quota::{CpuQuota, Throttling, cpu_quota, cpu_throttling};
pub use server::{STORE_THREADS, Server, ShardsFailed, StartError};
pub use snapshot::{
    AttachmentView, ClientView, Counted, DiskSnapshot, PoolSnapshot, RuleSnapshot, StopSum, Stops,
    Work,
};
