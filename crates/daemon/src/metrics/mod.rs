//! Metrics for Prometheus: snapshots rendered as OpenMetrics text, and the listener that Prometheus
//! scrapes.
//!
//! Names follow Prometheus' conventions: base units (seconds, bytes), `_total` for counters, and a common
//! metric for figures that users may add up. This module does not count the I/O of a daemon's disks. Each
//! scrape takes one snapshot of each disk, so metrics cost nothing between scrapes. For the kernel's disks,
//! `observe` adds up the intervals that it shows.

mod bounds;
mod client;
mod daemon;
mod device;
mod disk;
mod format;
mod host;
mod kernel;
mod listener;
mod page;
mod pool;
mod rule;
mod shard;
mod volume;

pub use daemon::DaemonMetrics;
pub use kernel::{KernelMetrics, KernelTotals};
pub use listener::{Metrics, router};
