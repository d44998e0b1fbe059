//! Watching disks: what they did in an interval, from whatever can say it.

pub(crate) mod collector;
mod daemon;
mod diskstats;
mod interval;
mod kernel;
mod pace;
mod question;
mod reader;
mod stream;
mod tally;
mod target;
mod ticks;
mod vanished;
mod watch;

pub(crate) use diskstats::{DiskstatsInterval, DiskstatsWatch, Transfers};
pub(crate) use interval::{DeviceInterval, OpInterval, elapsed_of_all, in_flight_of_all};
pub(crate) use question::{By, Question};
pub(crate) use stream::{IoStream, Stream, Wanted, ZioStream};
pub(crate) use tally::KEYS_MAX;
pub(crate) use target::Target;
pub(crate) use ticks::Ticks;
pub(crate) use watch::Watch;
