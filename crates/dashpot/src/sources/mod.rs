//! The sources of reports: they watch devices, interval by interval or I/O by I/O.

mod counted;
mod counters;
mod daemon;
mod devices;
mod diskstats;
mod errno;
mod failed;
mod ios;
mod kernel;
mod kernel_ios;
mod known;
mod owner;
mod pools;
mod priority;
mod reader;
mod recorded;
mod remembered;
mod served;
mod signals;
mod source;
mod target;
mod vanished;
mod wall;

pub(crate) use daemon::between;
pub(crate) use failed::warn_of_failed;
pub(crate) use kernel::KernelSource;
pub(crate) use known::{check_dimensions, check_known};
pub(crate) use owner::Owner;
pub(crate) use priority::run_first;
pub(crate) use recorded::{KERNEL_DISK, KERNEL_FS, Recorded, watch_recorded};
pub(crate) use signals::{Stop, now_ns};
pub(crate) use source::Source;
pub(crate) use target::Target;
pub(crate) use wall::{Axis, unix_ns, zone_ns};
