//! Watching disks: what they did in an interval, from whatever can say it.

mod daemon;
mod diskstats;
mod failed;
mod kernel;
mod priority;
mod reader;
mod signals;
mod stream;
mod tally;
mod target;
mod vanished;
mod watch;

pub(crate) use daemon::between;
pub(crate) use diskstats::{DiskstatsInterval, DiskstatsWatch, Transfers};
pub(crate) use failed::warn_of_failed;
pub(crate) use signals::{Stop, now_ns};
pub(crate) use stream::{IoStream, Stream, Wanted, ZioStream};
pub(crate) use tally::KEYS_MAX;
pub(crate) use target::Target;
pub(crate) use watch::Watch;
