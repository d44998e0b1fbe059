//! Watching disks: what they did in an interval, from whatever can say it.

pub(crate) mod collector;
mod daemon;
mod interval;
mod pace;
mod target;

pub(crate) use daemon::Watch;
pub(crate) use interval::{DeviceInterval, OpInterval, elapsed_of_all, in_flight_of_all};
pub(crate) use target::Target;
