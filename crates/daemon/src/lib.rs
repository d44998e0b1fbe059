//! The control plane: the disks that the daemon serves, the rules that it arms on them, the HTTP API
//! and the metrics that show disks and rules, and the collector of finished I/O.
//!
//! The control plane talks to shards through their [`Handle`](dashpot_export::Handle) and never touches
//! the data path. This crate uses neither a terminal nor the command line.

mod answers;
mod collector;
mod daemon;
pub mod host;
pub mod http;
mod limits;
pub mod metrics;
pub mod promises;
mod refusal;
mod registry;
mod runs;
mod scenario;
mod wire;

pub use collector::Collector;
pub use daemon::{Cleared, Daemon, Scope};
pub use refusal::{Refusal, RefusalKind};
pub use registry::{Gone, Record, Registry};
pub use wire::seen_rule;
