//! The sources of reports: they watch devices, interval by interval or I/O by I/O. This crate runs no
//! simulation; [`simulated`] gives the state of one in the same types.
//!
//! This crate prints nothing but warnings, and makes no text of what it sees.

mod counted;
mod counters;
mod daemon;
mod devices;
mod diskstats;
mod earlier;
mod errno;
mod failed;
mod ios;
mod kernel;
mod kernel_ios;
mod known;
mod named;
mod owner;
mod pools;
mod priority;
mod reader;
mod recorded;
mod remembered;
mod served;
mod signals;
pub mod simulated;
mod source;
mod target;
mod vanished;
mod wall;

pub use daemon::between;
pub use dashpot_probe::UNKNOWN_DISK;
pub use failed::warn_of_failed;
pub use kernel::KernelSource;
pub use known::{check_dimensions, check_known};
pub use named::Named;
pub use owner::Owner;
pub use priority::run_first;
pub use recorded::{KERNEL_DISK, KERNEL_FS, Recorded, watch_recorded};
pub use signals::{Stop, now_ns};
pub use source::Source;
pub use target::Target;
pub use wall::{Axis, shown_moment, unix_ns, zone_ns};
