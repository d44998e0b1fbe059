//! Metrics for Prometheus: snapshots rendered as OpenMetrics text, and the listener that Prometheus
//! scrapes.
//!
//! Names follow Prometheus' conventions: base units (seconds, bytes), `_total` for counters, and one metric,
//! with labels, for figures that users may add up. For a daemon's disks, this module counts nothing itself.
//! Each scrape takes one snapshot of each disk, so the metrics cost nothing between scrapes. For the kernel's
//! disks, the command `dashpot observe` adds each interval that it shows to [`KernelTotals`].

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
