//! What dashpot counts, for Prometheus: snapshots rendered as OpenMetrics text, and the listener
//! that it is scraped from.
//!
//! Names follow Prometheus' conventions: base units (seconds, bytes), `_total` for what only grows,
//! and one metric for what may be summed. A daemon's disks are not counted here: each scrape takes
//! one snapshot of each, and what nobody scrapes costs nothing. Of the kernel's disks `observe` adds
//! up the intervals that it shows.

mod bounds;
mod client;
mod daemon;
mod disk;
mod format;
mod host;
mod kernel;
mod listener;
mod page;
mod rule;
mod shard;

pub use daemon::DaemonSource;
pub use kernel::{KernelSource, KernelTotals};
pub use listener::{Source, router};
