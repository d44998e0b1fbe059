//! Watching disks: what they did in an interval, from whatever can say it.

pub(crate) mod collector;
mod daemon;
mod diskstats;
mod failed;
mod kernel;
mod pace;
mod priority;
mod question;
mod reader;
mod stream;
mod tally;
mod target;
mod ticks;
mod vanished;
mod watch;

pub(crate) use diskstats::{DiskstatsInterval, DiskstatsWatch, Transfers};
pub(crate) use failed::warn_of_failed;
pub(crate) use question::{By, Question};
pub(crate) use stream::{IoStream, Stream, Wanted, ZioStream};
pub(crate) use tally::KEYS_MAX;
pub(crate) use target::Target;
pub(crate) use ticks::Ticks;
pub(crate) use watch::Watch;
