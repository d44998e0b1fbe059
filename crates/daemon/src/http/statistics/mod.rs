//! Any statistic from any source, in columns of whole seconds in the past.
//!
//! A daemon takes counts and latencies by device, operation and client from the collector's memory of
//! seconds, minutes and hours. It counts all other statistics from the individual zios that the collector
//! remembers. In both cases the daemon first copies the data and counts afterwards, because the collector
//! cannot empty the rings while the daemon reads the collector's memory.

mod asked;
mod expect;
mod interval;
mod ios;
mod listed;
mod of_daemon;
mod parts;
mod rectangle;
mod seconds;
mod viewed;
mod watch;

pub(super) use asked::panicked;
pub(crate) use asked::{StatisticSource, check_known, parse};
pub(crate) use expect::expect;
pub(crate) use interval::{Interval, SECOND_NS, unit_word};
pub(crate) use ios::CopiedIos;
pub(crate) use listed::{Listed, list};
pub(crate) use rectangle::{Rectangle, compare};
pub(crate) use viewed::Viewed;
pub(crate) use watch::Watched;
